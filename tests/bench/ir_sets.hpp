// Test collections in the shape of BEIR (corpus.jsonl, queries.jsonl, qrels.tsv), and the two measures of a ranking.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "retrieval/facts.hpp"

namespace muniment::bench {

using retrieval::ChunkId;

struct IrDocument {
  std::string title;
  std::string text;
  std::string corpus;  // what is searched together: of "c3/D1:2" c3, otherwise the set
};

struct IrQuery {
  std::string text;
  std::string corpus;
  std::map<ChunkId, double> relevant;  // gain by chunk
};

struct IrSet {
  std::string name;
  std::vector<IrDocument> documents;  // the document of chunk n is documents[n - 1]
  std::vector<IrQuery> queries;       // those with judgements
};

Result<IrSet> load_ir_set(const std::string& folder, const std::string& name);

// Normalised discounted cumulative gain of the first ten (Järvelin and Kekäläinen 2002), gains as judged.
double ndcg_at_10(const std::vector<ChunkId>& ranking, const std::map<ChunkId, double>& relevant);
// The share of all relevant ones that is among the first ten.
double recall_at_10(const std::vector<ChunkId>& ranking, const std::map<ChunkId, double>& relevant);

// The probability that so large a difference of means arises when each pair might as well be the other way
// round (two-sided randomisation test; Smucker, Allan and Carterette 2007), with a fixed seed.
double randomisation_p(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace muniment::bench
