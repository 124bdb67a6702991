// How well the lanes and their fusions rank, on test collections: the engine's own lanes, profiles and fusion, one
// setting for all sets.
//
//   retrieval_quality DATA WORK [MODELS_FOLDER] [SET …]
//
// DATA holds a folder for each set (tests/bench/ir_sets.hpp); WORK takes the indexes, and keeps the documents'
// vectors for another run. Prints one JSON line for each method and set, which scripts/bench makes a table of; p is
// against lexical alone, and for what is reranked or expanded against the same without that.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "bench/ir_sets.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/encoder/sentence_encoder.hpp"
#include "retrieval/lexical/lexical_index.hpp"
#include "retrieval/plan/expansions.hpp"
#include "retrieval/plan/fusion.hpp"
#include "retrieval/plan/profile.hpp"
#include "retrieval/rerank/local_reranker.hpp"

namespace {

using namespace muniment;
using namespace muniment::retrieval;
using bench::IrQuery;
using bench::IrSet;

using Lists = std::vector<std::vector<Hit>>;  // by query

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "retrieval_quality: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}

struct Work {
  std::string folder;
  std::string models_folder;
};

// ---- lanes

std::unique_ptr<LexicalReader> lexical_reader(const IrSet& set, const Work& work) {
  const std::string folder = work.folder + "/lexical-" + set.name;
  std::filesystem::remove_all(folder);
  auto index = must(LexicalIndex::open(folder));
  for (std::size_t i = 0; i < set.documents.size(); i++) {
    LexicalChunk chunk;
    chunk.id = static_cast<ChunkId>(i + 1);
    chunk.text = set.documents[i].text;
    chunk.title = set.documents[i].title;
    chunk.language = "en";
    chunk.facts.labels = {"corpus:" + set.documents[i].corpus};
    must(index->add(chunk));
  }
  must(index->commit(1));
  return must(index->reader());
}

Lists lexical_lists(const IrSet& set, LexicalReader& reader) {
  Lists lists;
  for (const IrQuery& query : set.queries) {
    LexicalQuery words;
    words.text = query.text;
    Filter filter;
    filter.all_of = {{"corpus:" + query.corpus}};
    lists.push_back(must(reader.search(words, filter, default_profile().candidates)));
  }
  return lists;
}

// The vectors of a corpus, kept in a file: the neural ones take minutes.
Vectors document_vectors(Embedder& embedder, const Work& work, const std::vector<std::string_view>& texts) {
  Sha256 hash;
  hash.update(embedder.identity().text());
  for (const std::string_view text : texts) hash.update(std::to_string(text.size()) + ":" + std::string(text));
  const std::string path = work.folder + "/vectors-" + to_hex(hash.finish()).substr(0, 32);
  Vectors vectors(texts.size(), std::vector<float>(embedder.identity().dimension));
  const auto row_bytes = static_cast<std::streamsize>(embedder.identity().dimension * sizeof(float));
  if (std::ifstream file(path, std::ios::binary); file) {
    for (auto& vector : vectors) file.read(reinterpret_cast<char*>(vector.data()), row_bytes);
    if (file) return vectors;
  }
  vectors = must(embedder.embed(texts, TextKind::document));
  std::ofstream file(path, std::ios::binary);
  for (const auto& vector : vectors) file.write(reinterpret_cast<const char*>(vector.data()), row_bytes);
  return vectors;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); i++) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

std::vector<Hit> nearest(const std::vector<ChunkId>& chunks, const Vectors& vectors, const std::vector<float>& query) {
  std::vector<Hit> hits;
  for (std::size_t i = 0; i < chunks.size(); i++) hits.push_back({chunks[i], dot(vectors[i], query)});
  const std::size_t kept = std::min(hits.size(), default_profile().candidates);
  std::partial_sort(
      hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(kept), hits.end(),
      [](const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.chunk < b.chunk; });
  hits.resize(kept);
  return hits;
}

using MakeEmbedder = std::function<std::unique_ptr<Embedder>(const std::vector<std::string_view>& texts)>;

// Every corpus has a space of its own, as in the engine; searched exactly.
Lists vector_lists(const IrSet& set, const Work& work, const MakeEmbedder& make) {
  std::map<std::string, std::vector<ChunkId>> corpora;
  for (std::size_t i = 0; i < set.documents.size(); i++)
    corpora[set.documents[i].corpus].push_back(static_cast<ChunkId>(i + 1));
  Lists lists(set.queries.size());
  for (const auto& [corpus, chunks] : corpora) {
    std::vector<std::string_view> texts;
    for (const ChunkId chunk : chunks) texts.push_back(set.documents[chunk - 1].text);
    const std::unique_ptr<Embedder> embedder = make(texts);
    const Vectors vectors = document_vectors(*embedder, work, texts);
    for (std::size_t i = 0; i < set.queries.size(); i++) {
      if (set.queries[i].corpus != corpus) continue;
      const std::string_view text = set.queries[i].text;
      lists[i] = nearest(chunks, vectors, must(embedder->embed({&text, 1}, TextKind::query)).front());
    }
  }
  return lists;
}

std::map<std::string, Lists> all_lanes(const IrSet& set, const Work& work, LexicalReader& reader) {
  std::map<std::string, Lists> lanes;
  lanes["lexical"] = lexical_lists(set, reader);
  lanes["hash"] = vector_lists(set, work, [](const auto&) { return make_hash_embedder(); });
  lanes["lsa"] = vector_lists(set, work, [](const std::vector<std::string_view>& texts) {
    return must(open_lsa(must(train_lsa(texts, {})).bytes));
  });
  if (!work.models_folder.empty()) {
    lanes["encoder"] = vector_lists(set, work, [&](const auto&) { return must(open_encoder(work.models_folder)); });
  }
  return lanes;
}

// ---- methods

struct Measured {
  std::vector<double> ndcg, recall;  // by query
};

struct Method {
  std::string name;
  std::string profile;
  LaneChoice choice = LaneChoice::all;
  std::vector<std::string> available;  // lanes
  bool expanded = false;               // with the heuristic, unless the probe is strong
  bool reranked = false;               // locally
};

// By lane, of the queries as they are and of what the heuristic makes of them (which may be nothing: an empty list).
struct AllLists {
  std::map<std::string, Lists> original, expansions;
};

// As src/retrieval/query/ranking.cpp does it.
std::vector<ChunkId> reranked(const IrSet& set, const IrQuery& query, const std::vector<Fused>& fused) {
  const std::size_t count = std::min(fused.size(), limits::rerank_candidates_default);
  std::vector<std::string> texts;
  std::vector<LocalCandidate> candidates;
  for (std::size_t i = 0; i < count; i++)
    texts.push_back(set.documents[fused[i].chunk - 1].title + "\n" + set.documents[fused[i].chunk - 1].text);
  for (std::size_t i = 0; i < count; i++) candidates.push_back({texts[i], "en", fused[i].score});
  const std::vector<double> scores = rerank_locally(query.text, candidates);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<ChunkId> ranking;
  for (const std::size_t i : order) ranking.push_back(fused[i].chunk);
  for (std::size_t i = count; i < fused.size(); i++) ranking.push_back(fused[i].chunk);
  return ranking;
}

bool is_strong(const Profile& profile, const std::vector<Hit>& lexical) {
  std::vector<double> scores;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, lexical.size()); i++) scores.push_back(lexical[i].score);
  return probe_is_strong(profile, scores);
}

Measured measure(const IrSet& set, LexicalReader& reader, const AllLists& lanes, const Method& method) {
  const Profile& profile = *must(find_profile(method.profile));
  const auto chosen = choose_lanes(profile, method.choice, method.available);
  Measured measured;
  for (std::size_t i = 0; i < set.queries.size(); i++) {
    struct Taken {
      const LaneWeight& lane;
      bool original;
      std::vector<Hit> hits;
    };
    std::vector<Taken> taken;
    const bool expanded = method.expanded && !is_strong(profile, lanes.original.at("lexical")[i]);
    for (const LaneWeight& lane : chosen) {
      const std::string name(lane.lane);
      taken.push_back({lane, true, lanes.original.at(name)[i]});
      if (expanded && !heuristic_expansions(set.queries[i].text).lexical.empty())
        taken.push_back({lane, false, lanes.expansions.at(name)[i]});
    }
    std::vector<RankedList> lists;
    for (Taken& one : taken) {
      if (one.lane.lane != "lexical") discount_short(profile, one.lane.lane, one.hits, must(reader.words_of(one.hits)));
      lists.push_back({one.lane.lane, one.lane.weight, one.original, one.hits});
    }
    const std::vector<Fused> fused = fuse(profile, lists);
    std::vector<ChunkId> ranking;
    for (const Fused& one : fused) ranking.push_back(one.chunk);
    if (method.reranked) ranking = reranked(set, set.queries[i], fused);
    measured.ndcg.push_back(bench::ndcg_at_10(ranking, set.queries[i].relevant));
    measured.recall.push_back(bench::recall_at_10(ranking, set.queries[i].relevant));
  }
  return measured;
}

// What the heuristic makes of the queries; one that it leaves alone is asked for nothing.
IrSet expanded_queries(IrSet set) {
  for (IrQuery& query : set.queries) {
    const auto expansions = heuristic_expansions(query.text);
    if (!expansions.lexical.empty()) query.text = expansions.lexical.front();
  }
  return set;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void report(const IrSet& set, const Method& method, const Measured& measured, const Measured& beside) {
  json::Writer line;
  line.begin_object().member("set", set.name).member("method", method.name).member("queries", set.queries.size());
  line.member("ndcg10", mean(measured.ndcg)).member("recall10", mean(measured.recall));
  line.member("p", bench::randomisation_p(measured.ndcg, beside.ndcg)).end_object();
  std::printf("%s\n", line.text().c_str());
  std::fflush(stdout);
}

void run(const std::string& data, const Work& work, const std::string& name) {
  const IrSet set = must(bench::load_ir_set(data + "/" + name, name));
  const auto reader = lexical_reader(set, work);
  const AllLists lanes{all_lanes(set, work, *reader), all_lanes(expanded_queries(set), work, *reader)};
  const bool neural = lanes.original.contains("encoder");
  std::vector<Method> methods = {
      {"lexical", "muniment-1", LaneChoice::lexical_only, {"lexical"}},
      {"hash", "muniment-1", LaneChoice::vectors_only, {"lexical", "hash"}},
      {"lsa", "muniment-1", LaneChoice::vectors_only, {"lexical", "lsa"}},
      {"muniment-1 before the first epoch: lexical + hash", "muniment-1", LaneChoice::all, {"lexical", "hash"}},
      {"muniment-1 without encoder: lexical + lsa", "muniment-1", LaneChoice::all, {"lexical", "lsa", "hash"}},
      {"kairos: lexical + lsa", "kairos", LaneChoice::all, {"lexical", "lsa"}},
  };
  if (neural) {
    methods.push_back({"encoder", "muniment-1", LaneChoice::vectors_only, {"lexical", "encoder"}});
    methods.push_back({"lexical + encoder", "muniment-1", LaneChoice::all, {"lexical", "encoder"}});
    methods.push_back({"muniment-1: lexical + encoder", "muniment-1", LaneChoice::all, {"lexical", "encoder", "hash"}});
    methods.push_back({"kairos: lexical + encoder", "kairos", LaneChoice::all, {"lexical", "encoder"}});
  }
  const Measured lexical = measure(set, *reader, lanes, methods.front());
  for (const Method& method : methods) report(set, method, measure(set, *reader, lanes, method), lexical);
  // What helps a ranking is compared with that ranking.
  for (Method method : methods) {
    if (method.profile != default_profile().name || method.choice == LaneChoice::vectors_only) continue;
    const std::string plain_name = method.name;
    const Measured plain = measure(set, *reader, lanes, method);
    method.name = plain_name + ", reranked locally";
    method.reranked = true;
    report(set, method, measure(set, *reader, lanes, method), plain);
    method.name = plain_name + ", expanded by the heuristic";
    method.reranked = false, method.expanded = true;
    report(set, method, measure(set, *reader, lanes, method), plain);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: retrieval_quality DATA WORK [MODELS_FOLDER] [SET …]");
  const std::string data = argv[1];
  Work work{argv[2], argc > 3 ? argv[3] : ""};
  std::filesystem::create_directories(work.folder);
  std::vector<std::string> sets(argv + std::min(argc, 4), argv + argc);
  if (sets.empty()) sets = {"cranfield", "cacm", "locomo"};
  for (const std::string& name : sets) run(data, work, name);
}
