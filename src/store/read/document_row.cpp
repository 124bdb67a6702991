#include "store/read/document_row.hpp"

#include <string>
#include <vector>

#include "base/json/json_lists.hpp"

namespace muniment::store {
namespace {

// Parses a list [[start, end, sha256, heading?], …].
std::vector<ChunkRow> chunks_of(const json::Value& list, std::int64_t seq) {
  std::vector<ChunkRow> out;
  for (const json::Value item : list) {
    ChunkRow chunk;
    chunk.seq = seq;
    chunk.number = static_cast<std::int64_t>(out.size());
    std::size_t place = 0;
    for (const json::Value part : item) {
      switch (place++) {
        case 0: chunk.start_byte = part.as_int().value_or(0); break;
        case 1: chunk.end_byte = part.as_int().value_or(0); break;
        case 2: chunk.hash = hash_from_hex(part.string_or("")).value_or(Hash{}); break;
        default: chunk.heading = part.string_or("");
      }
    }
    out.push_back(std::move(chunk));
  }
  return out;
}

}  // namespace

std::optional<Uuid> chunk_list_of(const json::Value& body) {
  return parse_uuid(body["chunks_artifact_id"].string_or(""));
}

Revised revised_by(const events::Event& event, const json::Value& body, std::string_view long_list) {
  Revised out;
  DocumentRow& row = out.row;
  row.seq = event.seq;
  row.corpus = body["corpus"].string_or("");
  row.document = body["document"].string_or("");
  row.revision = body["revision"].string_or("");
  row.hash = hash_from_hex(body["hash"].string_or("")).value_or(Hash{});
  row.artifact_id = parse_uuid(body["artifact_id"].string_or("")).value_or(Uuid{});
  row.start_byte = body["start_byte"].as_int().value_or(0);
  row.size_bytes = body["size_bytes"].as_int().value_or(0);
  if (body["text_artifact_id"]) row.text_artifact_id = parse_uuid(body["text_artifact_id"].string_or(""));
  row.mime_type = body["mime_type"].string_or("text/plain");
  row.format = body["format"].string_or("text");
  row.language = body["language"].string_or("none");
  row.title = body["title"].string_or("");
  row.tags = strings_of(body["tags"]);
  row.source = body["source"].string_or("");
  row.sources = strings_of(body["sources"]);
  row.source_url = body["source_url"].as_string();
  row.trust = body["trust"].string_or("untrusted");
  row.recorded_at = event.recorded_at;
  const auto time = parse_time(body["timestamp"].string_or(""));
  row.document_time = time ? *time : event.recorded_at;
  row.chunker = body["chunker"].string_or("");
  row.previous = body["previous"].string_or("");
  row.derived_from = strings_of(body["derived_from"]);
  row.expires_at = parse_time(body["expires_at"].string_or(""));
  row.review_at = parse_time(body["review_at"].string_or(""));
  const auto list = json::parse(long_list);
  out.chunks = chunks_of(long_list.empty() || !list ? body["chunks"] : list->root(), event.seq);
  out.actor = event.actor;
  return out;
}

}  // namespace muniment::store
