// artifact.get, artifact.stat, artifact.list.
#include <algorithm>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/artifact_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"
#include "store/erasure.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t utf8_bytes_max = 4;  // of one character

Error no_artifact(std::string_view id) {
  return Error(Errc::not_found, fmt::format("no artifact {}. List them: artifact.list", id));
}

// The row, if the caller may see its run.
Result<store::ArtifactRow> find_artifact(Call& call) {
  const std::string text = call.params["artifact_id"].string_or("");
  const auto id = parse_uuid(text);
  if (!id) return Error(Errc::invalid_argument, "artifact_id: expected a UUID.");
  ASSIGN_OR_RETURN(const auto row, call.reader->artifact(*id));
  if (!row) return no_artifact(text);
  const auto run = find_run(call, row->run_id);
  if (!run && run.error().code == Errc::not_found) return no_artifact(text);  // somebody else's looks the same
  if (!run) return std::move(run).error();
  return *row;
}

enum class Encoding : std::uint8_t { any, text, base64, raw };

Result<Encoding> encoding_of(const json::Value& params) {
  const std::string name = params["encoding"].string_or("");
  if (name.empty()) return Encoding::any;
  if (name == "text") return Encoding::text;
  if (name == "base64") return Encoding::base64;
  if (name == "raw") return Encoding::raw;
  return Error(Errc::invalid_argument, "encoding: expected text, base64 or raw.");
}

// Takes off the end of a slice what is half a character; the next slice starts with it.
void drop_half_character(std::string& bytes) {
  const std::size_t bad = first_invalid_utf8(bytes);
  if (bad != std::string_view::npos && bytes.size() - bad < utf8_bytes_max && bad > 0) bytes.resize(bad);
}

struct Slice {
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

Result<Slice> slice_of(const json::Value& params, std::int64_t size, Encoding encoding) {
  const std::int64_t offset = params["offset"].as_int().value_or(0);
  const std::int64_t length = params["length"].as_int().value_or(size);
  if (offset < 0 || length < 0 || offset > size) {
    return Error(Errc::invalid_argument, fmt::format("the artifact is {} bytes; a slice from {} of {} is not in it.", size, offset, length));
  }
  const std::size_t most = encoding == Encoding::raw ? limits::artifact_raw_reply_bytes_max : limits::artifact_inline_bytes_max;
  return Slice{offset, std::min({length, size - offset, static_cast<std::int64_t>(most)})};
}

// The slice as the reply shows it. `encoding` any: text where it is text.
Result<Reply> slice_reply(const store::ArtifactRow& row, const Slice& slice, Encoding encoding, std::string bytes) {
  if (encoding == Encoding::any || encoding == Encoding::text) {
    const bool ends_inside = slice.offset + slice.length < row.size_bytes;
    std::string text = bytes;
    if (ends_inside) drop_half_character(text);
    const bool is_text = first_invalid_utf8(text) == std::string_view::npos;
    if (!is_text && encoding == Encoding::text) {
      return Error(Errc::invalid_argument, "this slice is not UTF-8 text. Ask for it with encoding: \"base64\" or \"raw\".");
    }
    encoding = is_text ? Encoding::text : Encoding::base64;
    if (is_text) bytes = std::move(text);
  }
  const auto length = static_cast<std::int64_t>(bytes.size());
  json::Writer out;
  out.begin_object()
      .member("artifact_id", row.artifact_id.text())
      .member("run_id", row.run_id)
      .member("hash", to_hex(row.hash))
      .member("mime_type", row.mime_type)
      .member("size_bytes", row.size_bytes)
      .member("offset", slice.offset)
      .member("length", length)
      .member("encoding", encoding == Encoding::raw ? "raw" : encoding == Encoding::text ? "text" : "base64");
  if (slice.offset + length < row.size_bytes) out.member("next_offset", slice.offset + length);
  Reply reply;
  if (encoding == Encoding::raw) {
    out.member("body_bytes", length);
    reply.raw = std::move(bytes);
  } else if (encoding == Encoding::text) {
    out.member("text", bytes);
  } else {
    out.member("base64", to_base64(bytes));
  }
  reply.result = out.end_object().text();
  return reply;
}

}  // namespace

Result<Answer> artifact_get(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const Encoding encoding, encoding_of(call.params));
  ASSIGN_OR_RETURN(const store::ArtifactRow row, find_artifact(call));
  if (store::is_erased(row)) {
    return Error(Errc::not_found, fmt::format("artifact {} was erased. The artifact.redacted of its run says why.", row.artifact_id.text()));
  }
  ASSIGN_OR_RETURN(const Slice slice, slice_of(call.params, row.size_bytes, encoding));
  auto bytes = call.services.files.read(row.path, slice.offset, slice.length);
  if (!bytes) {
    Error error = std::move(bytes).error();
    // The row says that the file is there: that it is not is damage, not a slip of the caller's.
    if (error.code == Errc::not_found) error.code = Errc::corrupt;
    error.run_id = row.run_id;
    error.pointer = artifact_pointer(row.run_id, row.artifact_id);
    error.message += ". See what else is damaged: muniment recover " + row.run_id;
    return error;
  }
  ASSIGN_OR_RETURN(Reply reply, slice_reply(row, slice, encoding, std::move(*bytes)));
  return Answer(std::move(reply));
}

Result<Answer> artifact_stat(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const store::ArtifactRow row, find_artifact(call));
  json::Writer out;
  out.begin_object().key("artifact");
  write_artifact(out, row);
  return Answer(Reply{out.end_object().text(), {}});
}

Result<Answer> artifact_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  std::optional<Uuid> after;
  if (const auto cursor = call.params["cursor"].as_string()) {
    after = parse_uuid(*cursor);
    if (!after) return Error(Errc::invalid_argument, "cursor: not one that artifact.list answered.");
  }
  const auto limit = static_cast<std::size_t>(
      std::clamp<std::int64_t>(call.params["limit"].as_int().value_or(limits::page_items_default), 1, limits::page_items_max));
  ASSIGN_OR_RETURN(auto rows, call.reader->artifacts(run->run_id, call.params["step_id"].as_string(), after, limit + 1));
  const bool more = rows.size() > limit;
  if (more) rows.resize(limit);
  json::Writer out;
  out.begin_object().key("artifacts").begin_array();
  for (const store::ArtifactRow& row : rows) write_artifact(out, row);
  out.end_array();
  if (more) out.member("cursor", rows.back().artifact_id.text());
  return Answer(Reply{out.end_object().text(), {}});
}

}  // namespace muniment::gateway::methods
