#include "bench/ir_sets.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <unordered_map>

#include "base/json/json.hpp"

namespace muniment::bench {
namespace {

constexpr std::size_t cut = 10;

Status each_line(const std::string& path, const std::function<Status(const std::string&)>& use) {
  std::ifstream file(path);
  if (!file) return Error(Errc::not_found, path + " is not there");
  for (std::string line; std::getline(file, line);) RETURN_IF_ERROR(use(line));
  return success();
}

std::string corpus_of(const std::string& id, const std::string& set) {
  const std::size_t slash = id.find('/');
  return slash == std::string::npos ? set : set + "-" + id.substr(0, slash);
}

double discount(std::size_t rank_from_zero) { return 1 / std::log2(static_cast<double>(rank_from_zero) + 2); }

}  // namespace

Result<IrSet> load_ir_set(const std::string& folder, const std::string& name) {
  IrSet set;
  set.name = name;
  std::unordered_map<std::string, ChunkId> chunks;
  RETURN_IF_ERROR(each_line(folder + "/corpus.jsonl", [&](const std::string& line) -> Status {
    ASSIGN_OR_RETURN(const auto document, json::parse(line));
    const std::string id = document.root()["_id"].string_or("");
    set.documents.push_back(
        {document.root()["title"].string_or(""), document.root()["text"].string_or(""), corpus_of(id, name)});
    chunks[id] = static_cast<ChunkId>(set.documents.size());
    return success();
  }));

  std::unordered_map<std::string, std::size_t> queries;
  RETURN_IF_ERROR(each_line(folder + "/queries.jsonl", [&](const std::string& line) -> Status {
    ASSIGN_OR_RETURN(const auto query, json::parse(line));
    const std::string id = query.root()["_id"].string_or("");
    queries[id] = set.queries.size();
    set.queries.push_back({query.root()["text"].string_or(""), corpus_of(id, name), {}});
    return success();
  }));

  RETURN_IF_ERROR(each_line(folder + "/qrels.tsv", [&](const std::string& line) -> Status {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos) return Error(Errc::corrupt, "qrels.tsv: a line without three columns");
    const auto query = queries.find(line.substr(0, first));
    const auto chunk = chunks.find(line.substr(first + 1, second - first - 1));
    const double gain = std::strtod(line.c_str() + second, nullptr);
    if (query != queries.end() && chunk != chunks.end() && gain > 0)
      set.queries[query->second].relevant[chunk->second] = gain;
    return success();
  }));
  std::erase_if(set.queries, [](const IrQuery& query) { return query.relevant.empty(); });
  return set;
}

double ndcg_at_10(const std::vector<ChunkId>& ranking, const std::map<ChunkId, double>& relevant) {
  double gained = 0, most = 0;
  for (std::size_t i = 0; i < std::min(cut, ranking.size()); i++) {
    if (const auto found = relevant.find(ranking[i]); found != relevant.end()) gained += found->second * discount(i);
  }
  std::vector<double> ideal;
  for (const auto& [chunk, gain] : relevant) ideal.push_back(gain);
  std::sort(ideal.rbegin(), ideal.rend());
  for (std::size_t i = 0; i < std::min(cut, ideal.size()); i++) most += ideal[i] * discount(i);
  return most > 0 ? gained / most : 0;
}

double recall_at_10(const std::vector<ChunkId>& ranking, const std::map<ChunkId, double>& relevant) {
  double found = 0;
  for (std::size_t i = 0; i < std::min(cut, ranking.size()); i++)
    found += static_cast<double>(relevant.count(ranking[i]));
  return found / static_cast<double>(relevant.size());
}

double randomisation_p(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr int rounds = 10'000;
  double observed = 0;
  for (std::size_t i = 0; i < a.size(); i++) observed += a[i] - b[i];
  std::mt19937_64 random(1);
  int as_large = 0;
  for (int round = 0; round < rounds; round++) {
    double sum = 0;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
      if (i % 64 == 0) bits = random();
      sum += (bits >> (i % 64) & 1) != 0 ? a[i] - b[i] : b[i] - a[i];
    }
    as_large += std::abs(sum) >= std::abs(observed) - 1e-12;
  }
  return (as_large + 1.0) / (rounds + 1.0);
}

}  // namespace muniment::bench
