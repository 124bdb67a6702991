// Reads and verifies the passages of candidates.
#include "retrieval/query/log_source.hpp"

#include "base/metrics.hpp"
#include "store/read/event_text.hpp"

namespace muniment::retrieval {

namespace {

Result<std::string> read_event_passage(const store::ChunkInDocument& item, store::ArtifactFiles& files) {
  if (!item.event_text) return Error(Errc::not_found, item.document.document + " has no text any more");
  ASSIGN_OR_RETURN(std::string text, item.event_text->read(files, item.chunk.start_byte, item.chunk.end_byte));
  if (sha256(text) == item.chunk.hash) return text;
  return Error(Errc::corrupt, item.document.document + " differs from the text that was indexed");
}

}  // namespace

Result<std::string> read_passage(const store::ChunkInDocument& item, store::ArtifactFiles& files) {
  if (!item.document.differs.empty()) return Error(Errc::corrupt, item.document.differs);
  if (item.document.of_run()) return read_event_passage(item, files);
  return files.read_hashed(item.path, item.document.text_start() + item.chunk.start_byte,
                           item.chunk.end_byte - item.chunk.start_byte, item.chunk.hash);
}

Result<std::unordered_map<ChunkId, LogSource::Row>> LogSource::find(std::span<const ChunkId> chunks) {
  const std::vector<std::int64_t> ids(chunks.begin(), chunks.end());
  ASSIGN_OR_RETURN(auto rows, documents_.chunk_rows().read(reader_, ids));
  std::unordered_map<ChunkId, Row> out;
  for (auto& [id, row] : rows) {
    if (is_wanted(row->document, plan_)) out.emplace(static_cast<ChunkId>(id), std::move(row));
  }
  return out;
}

Result<std::optional<std::string>> LogSource::text_of(const store::ChunkInDocument& item) {
  const metrics::Timer timer(metrics::process().passage_seconds);
  auto text = read_passage(item, files_);
  if (!text && text.error().code != Errc::unavailable)
    text = read_passage(item, files_);  // the file may have been written at that moment
  if (text) return std::optional(*std::move(text));
  if (text.error().code == Errc::unavailable) return std::move(text).error();
  return std::optional<std::string>();
}

Result<std::map<std::int64_t, double>> LogSource::feedback_means(const std::vector<std::int64_t>& chunks) {
  ASSIGN_OR_RETURN(const bool any, documents_.has_feedback(reader_));
  if (!any) return std::map<std::int64_t, double>();
  return reader_.feedback_means(chunks, plan_.as_of ? *plan_.as_of + 1 : documents_.last_change() + 1);
}

}  // namespace muniment::retrieval
