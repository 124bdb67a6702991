#include "store/logs/restored.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/files/file.hpp"
#include "base/json/json.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t file_bytes_max = std::size_t{1} << 20;

std::string place_of(const std::string& data) { return data + "/restored.json"; }

}  // namespace

Result<std::optional<Restored>> read_restored(const std::string& data) {
  const auto text = read_file(place_of(data), file_bytes_max);
  if (!text && text.error().code == Errc::not_found) return std::optional<Restored>();
  if (!text) return text.error();
  const auto document = json::parse(*text);
  const auto id = document ? parse_uuid(document->root()["log_id"].string_or("")) : std::nullopt;
  if (!id) return Error(Errc::corrupt, place_of(data) + " was not written by a restore");
  const json::Value root = document->root();
  Restored restored;
  restored.log_no = static_cast<std::int16_t>(root["log_no"].as_int().value_or(1));
  restored.log_id = *id;
  restored.size = root["size"].as_int().value_or(0);
  restored.root = root["root"].string_or("");
  restored.from = root["from"].string_or("");
  restored.made_at = root["made_at"].string_or("");
  restored.known_size = root["known_size"].as_int().value_or(0);
  restored.checkpoint = root["checkpoint"].string_or("");
  return std::optional<Restored>(std::move(restored));
}

Status write_restored(const std::string& data, const Restored& restored) {
  json::Writer out;
  out.begin_object()
      .member("log_no", int{restored.log_no})
      .member("log_id", restored.log_id.text())
      .member("size", restored.size);
  out.member("root", restored.root).member("from", restored.from).member("made_at", restored.made_at);
  out.member("known_size", restored.known_size).member("checkpoint", restored.checkpoint).end_object();
  return write_file_durably(place_of(data), out.text() + "\n");
}

Status remove_restored(const std::string& data) {
  if (::unlink(place_of(data).c_str()) == 0 || errno == ENOENT) return success();
  return file_error("removing", place_of(data), errno);
}

std::string restoring_mark(const std::string& data) { return data + "/restoring"; }

}  // namespace muniment::store
