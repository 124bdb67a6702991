// The lexical lane and raw Xapian: the same passages, the same queries, rows in the peer's format.
//
//   lexical_bench index FOLDER CORPUS.jsonl COMMIT_EVERY
//   lexical_bench query FOLDER QUERIES.txt or|filter|phrase
//
// Run it in the same pass as the peer: ALSO='muniment=lexical_bench …' ../shared/peers/retrieval/run.sh xapian
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "retrieval/lexical/lexical_index.hpp"

namespace {

using namespace muniment;
using retrieval::ChunkId;

constexpr std::size_t top = 10;
constexpr std::int64_t middle_of_time_us = (1'700'000'000 + std::int64_t{50'000} * 60) * 1'000'000;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "lexical_bench: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}

double percentile(std::vector<double>& values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

double size_mb(const std::string& folder) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<double>(entry.file_size());
  }
  return bytes / 1e6;
}

void index(const std::string& folder, const std::string& corpus, long commit_every) {
  std::filesystem::remove_all(folder);
  auto index = must(retrieval::LexicalIndex::open(folder));
  std::ifstream in(corpus);
  long count = 0;
  const double start = now();
  for (std::string line; std::getline(in, line);) {
    const auto document = must(json::parse(line));
    const std::string text = document.root()["text"].string_or("");
    retrieval::LexicalChunk chunk;
    chunk.id = static_cast<ChunkId>(document.root()["id"].as_int().value_or(0) + 1);
    chunk.text = text;
    chunk.language = "en";
    chunk.facts.labels = {"corpus:" + document.root()["coll"].string_or("")};
    chunk.facts.time_us = document.root()["ts"].as_int().value_or(0) * 1'000'000;
    must(index->add(chunk));
    if (++count % commit_every == 0) must(index->commit(count));
  }
  must(index->commit(count));
  const double seconds = now() - start;
  std::printf("  %-44s %ld docs  %.1f s  %.0f docs/s  %.1f MB\n",
              ("index, commit every " + std::to_string(commit_every)).c_str(), count, seconds,
              static_cast<double>(count) / seconds, size_mb(folder));
}

void query(const std::string& folder, const std::string& file, const std::string& mode) {
  auto index = must(retrieval::LexicalIndex::open(folder));
  auto reader = must(index->reader());
  retrieval::Filter filter;
  if (mode == "filter") {
    filter.all_of = {{"corpus:man"}};
    filter.before_us = middle_of_time_us + 1;
  }
  std::vector<std::string> texts;
  std::ifstream in(file);
  for (std::string text; std::getline(in, text);) texts.push_back(text);

  std::vector<double> ms;
  std::size_t hits = 0;
  for (int round = 0; round < 2; round++) {  // the first round warms the page cache
    ms.clear();
    hits = 0;
    for (const std::string& text : texts) {
      retrieval::LexicalQuery query;
      (mode == "phrase" ? query.phrases.emplace_back() : query.text) = text;
      const double start = now();
      hits += must(reader->search(query, filter, top)).size();
      ms.push_back((now() - start) * 1e3);
    }
  }
  const double p50 = percentile(ms, .5), p95 = percentile(ms, .95);
  std::printf("  %-44s p50 %8.3f  p95 %8.3f ms  p99 %.3f ms  hits %zu\n", ("query " + mode).c_str(), p50, p95,
              percentile(ms, .99), hits);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 4 && args[0] == "index") return index(args[1], args[2], std::stol(args[3])), 0;
  if (args.size() == 4 && args[0] == "query") return query(args[1], args[2], args[3]), 0;
  std::fprintf(stderr,
               "usage: lexical_bench index FOLDER CORPUS COMMIT_EVERY | query FOLDER QUERIES or|filter|phrase\n");
  return 2;
}
