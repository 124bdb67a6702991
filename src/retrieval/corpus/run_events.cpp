// Turns events of indexed runs into documents.
#include "retrieval/corpus/run_events.hpp"

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/text/document_text.hpp"
#include "store/read/event_text.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t runs_known_max = 65'536;

IndexedRuns::Known known_by(const events::Event& started) {
  if (!started.body) return {IndexedRuns::Answer::untold, started.actor};
  const auto body = json::parse(*started.body);
  const bool indexed = body && body->root()["indexed"].as_bool().value_or(false);
  return {indexed ? IndexedRuns::Answer::yes : IndexedRuns::Answer::no, started.actor};
}

// The content of a run is always untrusted, independent of the recorder.
store::DocumentRow row_of(const events::Event& event, const store::EventText& text, const std::string& owner) {
  store::DocumentRow row;
  row.seq = event.seq;
  row.corpus = store::run_corpus;
  row.document = fmt::format("{}#e{}", event.run_id, event.run_seq);
  row.hash = event.body_hash;
  row.revision = to_hex(event.body_hash).substr(0, evidence::revision_digits);
  row.mime_type = "text/plain";
  row.format = event.type;
  row.title = text.name();
  if (!text.name().empty()) row.tags.push_back(text.name());
  if (text.failed()) row.tags.emplace_back("error");
  row.source = "run://" + event.run_id;
  row.sources = {row.source};
  row.trust = "untrusted";
  row.document_time = event.occurred_at.value_or(event.recorded_at);
  row.recorded_at = event.recorded_at;
  row.chunker = chunker_identity();
  row.owner = owner;
  row.origin = event.origin;
  return row;
}

std::optional<store::CorpusChange> revised_by(const events::Event& event, const store::EventText& about,
                                              std::string_view text, const std::string& owner) {
  constexpr std::string_view as_text = "event.txt";  // the output of a tool is plain text, whatever its format
  if (!looks_plain(text, as_text, "text/plain")) return std::nullopt;
  const auto read = read_document(text, as_text, "text/plain");
  if (!read || !read->as_is || read->chunks.empty()) return std::nullopt;  // bytes that are not text
  store::Revised out;
  out.row = row_of(event, about, owner);
  out.row.language = read->language;
  out.row.size_bytes = static_cast<std::int64_t>(text.size());
  out.actor = event.actor;
  for (const Chunk& chunk : read->chunks) {
    store::ChunkRow& row = out.chunks.emplace_back();
    row.seq = event.seq;
    row.number = static_cast<std::int64_t>(out.chunks.size()) - 1;
    row.start_byte = chunk.start;
    row.end_byte = chunk.end;
    row.hash =
        sha256(text.substr(static_cast<std::size_t>(chunk.start), static_cast<std::size_t>(chunk.end - chunk.start)));
  }
  return out;
}

}  // namespace

Result<IndexedRuns::Known> IndexedRuns::of(std::int64_t run_no, store::Reader& reader) {
  if (const auto found = known_.find(run_no); found != known_.end()) return found->second;
  ASSIGN_OR_RETURN(const auto started, reader.event_of_run(run_no, 0));
  if (known_.size() >= runs_known_max) known_.clear();
  return known_[run_no] = started ? known_by(*started) : Known{};
}

void IndexedRuns::see(const events::Event& event) {
  if (event.type == "event.redacted") known_.erase(event.run_no);
  if (event.type != "run.started") return;
  if (known_.size() >= runs_known_max) known_.clear();
  known_[event.run_no] = known_by(event);
}

Result<std::optional<store::CorpusChange>> change_by_run_event(const events::Event& event, IndexedRuns& runs,
                                                               store::Reader& reader, store::ArtifactFiles& files) {
  ASSIGN_OR_RETURN(const IndexedRuns::Known run, runs.of(event.run_no, reader));
  if (run.indexed == IndexedRuns::Answer::no) return std::optional<store::CorpusChange>();
  const std::optional<store::CorpusChange> untold = store::Untold{event.seq};
  if (run.indexed == IndexedRuns::Answer::untold) return untold;
  if (event.run_id.empty()) {
    ASSIGN_OR_RETURN(const auto whole, reader.event_at(event.seq));
    if (!whole || !whole->body) return untold;
    return change_by_run_event(*whole, runs, reader, files);
  }
  if (!event.body) return untold;
  const auto unread = [&](const Error& error) -> Result<std::optional<store::CorpusChange>> {
    if (is_transient(error.code)) return error;
    log_warning("an event is not in the corpus run: one of its files cannot be read",
                {{"run_id", event.run_id}, {"error", error.message}});
    return std::optional<store::CorpusChange>();
  };
  const auto text = reader.event_text(event);
  if (!text) return unread(text.error());
  if (!*text || (*text)->size_bytes() == 0) return std::optional<store::CorpusChange>();
  const auto words = (*text)->indexed(files);
  if (!words) return unread(words.error());
  return revised_by(event, **text, *words, run.owner);
}

}  // namespace muniment::retrieval
