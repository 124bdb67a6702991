// The messages on the channels, member by member; see wire.hpp. A new member has to be added here;
// tests/unit/retrieval_wire_test.cpp detects a missing one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retrieval/child/wire.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::retrieval {

// The first message to a search child: its configuration and the required sandbox.
struct SearchSetup {
  Engine::Options engine;
  std::uint32_t search_channels = 0;
  bool needs_sandbox = false;  // exit if Landlock and seccomp are not available
  std::int64_t address_space_bytes_max = 0;
  EmbedderIdentity remote;    // the embedder behind the embedding channels; dimension 0: none
  std::int64_t query_ms = 0;  // time that a query waits for its vector from there
};

// The first message from a search child.
struct SearchHello {
  EngineStatus status;
  std::vector<std::string> sandbox_missing;
};

struct DocumentTask {
  std::string bytes;
  std::string name;
  std::string mime_type;
};

struct TrainTask {
  std::vector<std::string> texts;
  LsaOptions options;
};

constexpr Mode last_of(Mode) { return Mode::vector; }
constexpr Format last_of(Format) { return Format::pdf; }

template <typename Archive, Of<Error> T>
void members(Archive& archive, T& it) {
  archive(it.code, it.message, it.limit, it.retry_after_ms);
}

// Returns the error of a failure message; nullopt if it is malformed.
inline std::optional<Error> error_from_wire(std::string_view bytes) {
  WireReader reader(bytes);
  Error error;
  reader(error);
  if (!reader.end()) return std::nullopt;
  return error;
}

template <typename Archive, Of<Facts> T>
void members(Archive& archive, T& it) {
  archive(it.labels, it.time_us, it.valid_from, it.valid_to);
}

template <typename Archive, Of<Filter> T>
void members(Archive& archive, T& it) {
  archive(it.all_of, it.none_of, it.after_us, it.before_us, it.as_of);
}

template <typename Archive, Of<Hit> T>
void members(Archive& archive, T& it) {
  archive(it.chunk, it.score);
}

template <typename Archive, Of<EngineChunk> T>
void members(Archive& archive, T& it) {
  archive(it.id, it.corpus, it.text, it.title, it.heading, it.language, it.facts);
}

template <typename Archive, Of<EngineBatch> T>
void members(Archive& archive, T& it) {
  archive(it.next_seq, it.add, it.close, it.remove, it.from_seq);
}

template <typename Archive, Of<LaneQuery> T>
void members(Archive& archive, T& it) {
  archive(it.text, it.phrases, it.lexical_expansions, it.vector_expansions, it.corpora, it.mode, it.filter, it.k,
          it.shown, it.profile, it.exact, it.explain, it.only_lanes);
}

template <typename Archive, Of<LaneList> T>
void members(Archive& archive, T& it) {
  archive(it.lane, it.query, it.original, it.weight, it.hits, it.duration_us);
}

template <typename Archive, Of<Candidate> T>
void members(Archive& archive, T& it) {
  archive(it.chunk, it.score, it.lanes, it.best_rank, it.confidence);
}

template <typename Archive, Of<LaneAnswer> T>
void members(Archive& archive, T& it) {
  archive(it.candidates, it.lists, it.degraded, it.passing, it.waiting, it.identities, it.watermark, it.unfiltered);
}

template <typename Archive, Of<EngineModelStatus> T>
void members(Archive& archive, T& it) {
  archive(it.corpus, it.identity, it.filled);
}

template <typename Archive, Of<EngineStatus> T>
void members(Archive& archive, T& it) {
  archive(it.lexical_next_seq, it.vector_next_seq, it.chunks, it.degraded, it.absent, it.behind, it.waiting, it.rebuilt,
          it.models);
}

template <typename Archive, Of<EngineModel> T>
void members(Archive& archive, T& it) {
  archive(it.corpus, it.bytes);
}

template <typename Archive, Of<Engine::Options> T>
void members(Archive& archive, T& it) {
  archive(it.folder, it.models_folder, it.empty_first, it.remote_missing);
}

template <typename Archive, Of<EmbedderIdentity> T>
void members(Archive& archive, T& it) {
  archive(it.name, it.version, it.dimension, it.hash);
}

template <typename Archive, Of<SearchSetup> T>
void members(Archive& archive, T& it) {
  archive(it.engine, it.search_channels, it.needs_sandbox, it.address_space_bytes_max, it.remote, it.query_ms);
}

template <typename Archive, Of<SearchHello> T>
void members(Archive& archive, T& it) {
  archive(it.status, it.sandbox_missing);
}

template <typename Archive, Of<DocumentTask> T>
void members(Archive& archive, T& it) {
  archive(it.bytes, it.name, it.mime_type);
}

template <typename Archive, Of<LsaOptions> T>
void members(Archive& archive, T& it) {
  archive(it.dimension, it.seed);
}

template <typename Archive, Of<TrainTask> T>
void members(Archive& archive, T& it) {
  archive(it.texts, it.options);
}

template <typename Archive, Of<LsaModel> T>
void members(Archive& archive, T& it) {
  archive(it.bytes, it.vocabulary_hash);
}

template <typename Archive, Of<Chunk> T>
void members(Archive& archive, T& it) {
  archive(it.start, it.end, it.heading);
}

template <typename Archive, Of<DocumentText> T>
void members(Archive& archive, T& it) {
  archive(it.format, it.language, it.title, it.text, it.as_is, it.encoding, it.chunks);
}

}  // namespace muniment::retrieval
