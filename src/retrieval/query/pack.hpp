// Context packs: select passages for a prompt, and format them.
//
// A pack is a preface and one line per passage: its number and a JSON object. Document text occurs only in that
// object's strings, escaped so that it cannot end its string, its line, or a tag that the client puts around the pack:
// no quotation mark, no line break, no `<`, nothing that hides or reorders text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"

namespace muniment::retrieval {

// A candidate.
struct Passage {
  std::string pointer;
  std::string corpus;
  std::string document;
  std::string revision;
  std::string title;
  std::vector<std::string> anchors;
  std::string trust;
  std::string origin;    // origin of a run's event; empty: a document
  std::string language;  // ISO 639-1 or "none"
  std::string text;
  std::int64_t start = 0;  // its span in the document's text
  std::int64_t end = 0;
  std::optional<std::string> source_url;
  double score = 0;
  std::vector<std::pair<std::string, double>> lanes;  // raw score of each lane that found it
  std::vector<std::size_t> queries;                   // queries that found it
  std::size_t rank = 0;                               // its best rank in them, from 1
  bool after_question = false;                        // it is a candidate because it follows a question
  // For a fact, a short document of one passage: what a model needs to weigh it against others.
  bool whole = false;
  std::string statement;  // equal for facts that say the same (statement.hpp)
  std::string source;     // the name of its source; empty: none
  std::string time;       // RFC 3339
  std::string replaces;   // time of the revision that it replaced; empty: none
  std::string newer;      // pointer of a newer fact that may replace it; empty: none
};

// Merges the lists of several queries: all first ranks in the order of the queries, then all second ones. A passage
// that several queries found is placed where it occurs first.
std::vector<Passage> merged_by_rank(std::vector<std::vector<Passage>> lists);

enum class BudgetUnit : std::uint8_t { tokens, bytes };
std::string_view name_of(BudgetUnit unit);

// Limits the preface and the lines together, and the number of passages.
struct Budget {
  BudgetUnit unit = BudgetUnit::tokens;
  std::size_t amount = 0;
  std::size_t passages = limits::pack_passages_max;
};

// An upper bound of the tokens of a text for any byte-pair tokenizer: per word (camelCase is two), one for each four
// letters or part of it, one for each two beyond twelve letters and in capitals; one for each digit, punctuation mark
// and line feed; none for a blank before a word; for any other character, one less than its bytes. The result is 1.1 to
// 1.8 times the real number for prose, code and data in common scripts (docs/retrieval.md); rare scripts and base64 can
// exceed it.
std::size_t token_bound(std::string_view text);

// Returns a JSON string literal on one line. In addition to JSON's rules, `<`, control characters, line separators, and
// characters that reorder or hide text become \u escapes.
std::string quote_for_prompt(std::string_view text);

enum class WhyLeftOut : std::uint8_t {
  over_budget,  // it exceeds the rest of the budget
  same_text,    // a passage in the pack has the same text, apart from white space, or states the same fact
  overlap,      // the pack has part of its bytes
  full,         // the budget or the manifest has no room for more passages, or for longer pointers
};
std::string_view name_of(WhyLeftOut why);

struct Packed {
  std::size_t candidate = 0;  // its index
  std::size_t number = 0;     // from 1, as in citations
  Hash hash{};                // hash of the passage's bytes
  std::size_t cost = 0;       // cost of its line, in the unit of the budget
};

struct LeftOut {
  std::size_t candidate = 0;
  WhyLeftOut why = WhyLeftOut::over_budget;
  std::size_t instead = 0;  // number of the passage in its place; 0: none
};

struct Pack {
  std::vector<Packed> passages;   // by rank
  std::vector<LeftOut> left_out;  // by rank
  std::size_t used = 0;           // used part of the budget
  std::string text;               // empty if no passage fits
};

// Takes passages greedily by rank: one that does not fit is skipped, and a later one may still fit. A larger budget may
// therefore lose a passage only to a better one.
Pack make_pack(const std::vector<Passage>& candidates, const Budget& budget);

}  // namespace muniment::retrieval
