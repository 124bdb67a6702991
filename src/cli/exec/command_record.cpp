#include "cli/exec/command_record.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "bridge/scrub.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t argv_bytes_max = 24 * 1024;  // leaves room in a body for the environment
constexpr std::size_t env_value_bytes_max = 2048;

}  // namespace

Status write_arguments(const CommandPlace& place, json::Writer& params, const std::vector<std::string>& arguments) {
  params.key("argv").begin_array();
  std::size_t bytes = 0;
  std::size_t shown = 0;
  for (; shown < arguments.size(); ++shown) {
    bytes += json::quote(arguments[shown]).size() + 1;
    if (bytes > argv_bytes_max && shown > 0) break;
    params.string(preview(arguments[shown], argv_bytes_max));
  }
  const bool whole = bytes <= argv_bytes_max;
  if (!whole && shown < arguments.size()) {
    params.string(fmt::format("… and {} more: x_argv_artifact", arguments.size() - shown));
  }
  params.end_array();
  if (whole) return success();
  std::string text;
  for (const std::string& argument : arguments) text += argument + '\0';
  Upload upload{place.run_id, place.step, "application/octet-stream", R"({"what":"argv, each ending in NUL"})"};
  ASSIGN_OR_RETURN(Client* const client, place.session.client());
  ASSIGN_OR_RETURN(const Message answer, put_bytes(*client, upload, text));
  params.member("x_argv_artifact", answer.result()["artifact_id"].string_or(""));
  return success();
}

void write_environment(json::Writer& params, const char* const* environment) {
  params.key("env").begin_object();
  for (const auto& [name, value] : bridge::allowed_environment(environment)) {
    params.member(name, preview(value, env_value_bytes_max));
  }
  params.end_object();
}

Status write_output(const CommandPlace& place, json::Writer& params, const std::string& command_id, const char* stream,
                    const Fd& output, bool scrub, std::size_t& scrubbed, std::string* stored) {
  int file = output.get();
  Fd copy;
  if (scrub && output.open()) {
    ASSIGN_OR_RETURN(copy, temporary_file());
    ASSIGN_OR_RETURN(const std::size_t count, bridge::scrub_file(output, copy));
    scrubbed += count;
    file = copy.get();
  }
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0 || status.st_size == 0) return success();
  std::string beginning(4096, '\0');
  const ssize_t got = ::pread(file, beginning.data(), beginning.size(), 0);
  beginning.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  // The piece may end inside a character; an incomplete last character does not count as invalid.
  const std::size_t invalid = first_invalid_utf8(beginning);
  const bool text =
      beginning.find('\0') == std::string::npos && (invalid == std::string::npos || invalid + 4 > beginning.size());
  Upload upload{place.run_id, place.step, text ? "text/plain" : "application/octet-stream",
                fmt::format("{{\"stream\":\"{}\",\"command_id\":\"{}\"}}", stream, command_id)};
  ASSIGN_OR_RETURN(Client* const client, place.session.client());
  ASSIGN_OR_RETURN(const Message answer, put_open_file(*client, upload, file));
  const std::string artifact = answer.result()["artifact_id"].string_or("");
  if (stored != nullptr) *stored = artifact;
  params.key(stream).begin_object().member("artifact_id", artifact);
  if (text) params.member("preview", preview(beginning, limits::preview_bytes_max));
  params.end_object();
  return success();
}

}  // namespace muniment::cli
