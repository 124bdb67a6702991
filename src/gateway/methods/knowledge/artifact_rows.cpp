// Checks the metadata of artifacts, and writes their rows as JSON.
#include "gateway/methods/knowledge/artifact_rows.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/json/jsonb.hpp"
#include "base/limits.hpp"

namespace muniment::gateway {
namespace {

constexpr std::size_t mime_type_bytes_max = 256;           // artifact.mime_type
constexpr std::size_t metadata_stored_bytes_max = 16'384;  // artifact.metadata, in jsonb's text form

bool is_token_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$&-^_.+").find(c) != std::string_view::npos;
}

}  // namespace

std::string artifact_pointer(std::string_view run_id, const Uuid& artifact_id) {
  return "artifact://" + std::string(run_id) + "/" + artifact_id.text();
}

Status check_mime_type(std::string_view mime_type) {
  const auto refuse = [&] {
    return Error(Errc::invalid_argument,
                 fmt::format("mime_type \"{}\" is not of the form type/subtype of at most {} bytes. Omit it for "
                             "application/octet-stream.",
                             mime_type.substr(0, 80), mime_type_bytes_max));
  };
  const std::string_view essence = mime_type.substr(0, mime_type.find(';'));
  const std::size_t slash = essence.find('/');
  if (mime_type.size() > mime_type_bytes_max || slash == std::string_view::npos) return refuse();
  std::string_view subtype = essence.substr(slash + 1);
  while (subtype.ends_with(' ')) subtype.remove_suffix(1);
  const std::string_view type = essence.substr(0, slash);
  if (type.empty() || subtype.empty()) return refuse();
  if (!std::ranges::all_of(type, is_token_byte) || !std::ranges::all_of(subtype, is_token_byte)) return refuse();
  for (const char c : mime_type) {
    if (c < 0x20 || c > 0x7e) return refuse();
  }
  return success();
}

Status check_metadata(const json::Value& metadata) {
  if (!metadata) return success();
  if (!metadata.is(json::Kind::object)) return Error(Errc::invalid_argument, "metadata: expected an object.");
  const std::size_t bytes = metadata.source().size();
  if (bytes > limits::artifact_metadata_bytes_max || json::jsonb_bytes_max(metadata) > metadata_stored_bytes_max) {
    Error error(Errc::too_large,
                fmt::format("metadata is {} bytes, limit {} (and {} once its numbers are written out). "
                            "Put the rest into an artifact of its own.",
                            bytes, limits::artifact_metadata_bytes_max, metadata_stored_bytes_max));
    error.limit = static_cast<std::int64_t>(limits::artifact_metadata_bytes_max);
    return error;
  }
  return success();
}

Error artifact_damage(const store::ArtifactRow& row, Error error) {
  if (error.code == Errc::not_found)
    error.code = Errc::corrupt;  // the row proves that the file existed, so the caller made no mistake
  if (!is_halting(error.code)) return error;
  error.run_id = row.run_id;
  error.pointer = artifact_pointer(row.run_id, row.artifact_id);
  error.message += ". To list all damage: muniment recover " + row.run_id;
  return error;
}

void write_artifact(json::Writer& out, const store::ArtifactRow& row) {
  out.begin_object();
  store::write_artifact_fields(out, row);
  out.member("created_at", format_time(row.created_at))
      .member("pointer", artifact_pointer(row.run_id, row.artifact_id))
      .member("seq", row.seq)
      .end_object();
}

}  // namespace muniment::gateway
