// artifact.get, artifact.stat and artifact.list: read stored artifacts.
#include <algorithm>

#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/artifact_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/read/trace.hpp"
#include "gateway/services.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t utf8_bytes_max = 4;  // bytes per character

Error no_artifact(std::string_view id) {
  return Error(Errc::not_found, fmt::format("no artifact {}. List them: artifact.list", id));
}

struct SeenArtifact {
  store::ArtifactRow row;
  store::Reader* reader;
};

// Returns the row if the caller may see its run.
Result<SeenArtifact> find_artifact(Call& call) {
  const std::string text = call.params["artifact_id"].string_or("");
  const auto id = parse_uuid(text);
  if (!id) return Error(Errc::invalid_argument, "artifact_id: expected a UUID.");
  ASSIGN_OR_RETURN(auto found,
                   find_in_all<store::ArtifactRow>(call, [&](store::Reader& reader) { return reader.artifact(*id); }));
  if (!found.row) return no_artifact(text);
  ASSIGN_OR_RETURN(const bool visible, sees_run(call, found.row->run_id, found.reader->log_no()));
  if (!visible) return no_artifact(text);  // the same error as for an artifact of another user
  note_log(call, *found.reader);
  return SeenArtifact{*std::move(found.row), found.reader};
}

Error was_erased(const store::ArtifactRow& row) {
  return {Errc::not_found,
          fmt::format("artifact {} was erased. The artifact.redacted of its run says why.", row.artifact_id.text())};
}

// Returns damage, unless the artifact was erased after its row was read.
Error why_unread(const SeenArtifact& found, Error error) {
  const store::ArtifactRow& row = found.row;
  const auto now = found.reader->artifact(row.artifact_id);
  if (now && *now && store::is_erased(**now)) return was_erased(row);
  return artifact_damage(row, std::move(error));
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

// Removes an incomplete character from the end of a slice; the next slice begins with it.
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
    return Error(
        Errc::invalid_argument,
        fmt::format("the artifact is {} bytes; it has no slice at offset {} of {} bytes.", size, offset, length));
  }
  const std::size_t most =
      encoding == Encoding::raw ? limits::artifact_raw_reply_bytes_max : limits::artifact_inline_bytes_max;
  return Slice{offset, std::min({length, size - offset, static_cast<std::int64_t>(most)})};
}

// Writes the slice in the requested encoding; `any` is text if the bytes are text.
Result<Reply> slice_reply(const store::ArtifactRow& row, const Slice& slice, Encoding encoding, std::string bytes) {
  if (encoding == Encoding::any || encoding == Encoding::text) {
    const bool ends_inside = slice.offset + slice.length < row.size_bytes;
    std::string text = bytes;
    if (ends_inside) drop_half_character(text);
    const bool is_text = first_invalid_utf8(text) == std::string_view::npos;
    if (!is_text && encoding == Encoding::text) {
      return Error(Errc::invalid_argument,
                   "this slice is not UTF-8 text. Request it with encoding: \"base64\" or \"raw\".");
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
      .member("encoding", encoding == Encoding::raw    ? "raw"
                          : encoding == Encoding::text ? "text"
                                                       : "base64");
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

// Errors: corrupt, with the pointer, if the file differs from the row.
Result<std::string> read_slice(Call& call, const SeenArtifact& found, const Slice& slice) {
  auto bytes = call.services.files.read(store::file_of(found.row), slice.offset, slice.length);
  if (bytes) return bytes;
  return why_unread(found, std::move(bytes).error());
}

// Returns the members of artifact.read for this piece. The hash is omitted, because short bytes could be guessed from
// it after an erasure.
std::string read_members(const store::ArtifactRow& row, const Slice& slice) {
  json::Writer out;
  out.begin_object()
      .member("pointer", "artifact://" + row.run_id + "/" + row.artifact_id.text())
      .member("size_bytes", row.size_bytes)
      .member("offset", slice.offset)
      .member("length", slice.length)
      .end_object();
  return std::move(out).text();
}

}  // namespace

Result<Answer> artifact_get(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const Encoding encoding, encoding_of(call.params));
  ASSIGN_OR_RETURN(const Use use, use_of(call));
  ASSIGN_OR_RETURN(const SeenArtifact found, find_artifact(call));
  const store::ArtifactRow& row = found.row;
  if (store::is_erased(row)) return was_erased(row);
  ASSIGN_OR_RETURN(const Slice slice, slice_of(call.params, row.size_bytes, encoding));
  auto bytes = read_slice(call, found, slice);
  if (!bytes && bytes.error().code == Errc::corrupt) {
    ASSIGN_OR_RETURN(auto answer, answer_damage(call, bytes.error().pointer, {.run = use.run}, bytes.error()));
    if (answer) return *std::move(answer);
    bytes = read_slice(call, found, slice);
  }
  if (!bytes) return std::move(bytes).error();
  ASSIGN_OR_RETURN(Reply reply, slice_reply(row, slice, encoding, std::move(*bytes)));
  if (!use.run)
    return Answer(std::move(reply));  // records no use: the caller copies the bytes for a bundle or an export
  return leave_trace_of_piece(call, use, row.artifact_id.text(), slice.offset, read_members(row, slice),
                              std::move(reply));
}

Result<Answer> artifact_stat(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(SeenArtifact found, find_artifact(call));
  if (!store::is_erased(found.row)) {
    if (auto checked = call.services.files.check(store::file_of(found.row)); !checked) {
      Error error = why_unread(found, std::move(checked).error());
      if (error.code == Errc::corrupt) {
        ASSIGN_OR_RETURN(auto answer, answer_damage(call, error.pointer, {}, error));
        if (answer) return *std::move(answer);
      } else if (error.code != Errc::not_found) {
        return error;
      }
      ASSIGN_OR_RETURN(found, find_artifact(call));
    }
  }
  json::Writer out;
  out.begin_object().key("artifact");
  write_artifact(out, found.row);
  return Answer(Reply{out.end_object().text(), {}});
}

Result<Answer> artifact_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  std::optional<Uuid> after;
  if (const auto cursor = call.params["cursor"].as_string()) {
    after = parse_uuid(*cursor);
    if (!after) return Error(Errc::invalid_argument, "cursor: expected a cursor that artifact.list returned.");
  }
  const auto limit = static_cast<std::size_t>(std::clamp<std::int64_t>(
      call.params["limit"].as_int().value_or(limits::page_items_default), 1, limits::page_items_max));
  ASSIGN_OR_RETURN(auto rows,
                   found.reader->artifacts(found.run->run_id, call.params["step_id"].as_string(), after, limit + 1));
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
