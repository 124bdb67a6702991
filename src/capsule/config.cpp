// Reads the configuration inside a capsule, and the record of trust in it.
#include "capsule/config.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "retrieval/corpus/ingest.hpp"

namespace muniment::capsule {
namespace {

constexpr std::size_t record_bytes_max = 8 << 10;

Error wrong(std::string_view member, std::string_view expected) {
  return Error(Errc::invalid_argument, fmt::format("{}: {}: expected {}.", config_uri, member, expected));
}

// Returns an error for a member that is none of `known`, which are separated by blanks: a typing error in the name of a
// hook would otherwise turn it off.
Status check_members(const json::Value& object, std::string_view where, std::string_view known) {
  if (!object.is(json::Kind::object)) return wrong(where, "an object");
  for (const json::Value member : object) {
    const std::string key = member.key();
    if ((" " + std::string(known) + " ").find(" " + key + " ") == std::string::npos)
      return Error(Errc::invalid_argument, fmt::format("{}: {} has no member {}. Known: {}.", config_uri, where,
                                                       json::quote(preview(key, 60)), known));
  }
  return success();
}

Status take_text(const json::Value& object, std::string_view name, std::string& out) {
  if (!object[name]) return success();
  if (!object[name].is(json::Kind::string)) return wrong(name, "a text");
  out = object[name].string_or("");
  return success();
}

Status take_command(const json::Value& hooks, std::string_view name, std::vector<std::string>& out) {
  const json::Value command = hooks[name];
  if (!command) return success();
  if (!command.is(json::Kind::array) || command.size() == 0 || command.size() > limits::hook_arguments_max)
    return wrong(name, "a list with the absolute path of a program and its arguments");
  for (const json::Value word : command) {
    if (!word.is(json::Kind::string)) return wrong(name, "a list of texts");
    out.push_back(word.string_or(""));
  }
  if (!out.front().starts_with('/')) return wrong(name, "the absolute path of a program");
  return success();
}

Status take_hooks(const json::Value& hooks, CapsuleConfig& config) {
  if (!hooks) return success();
  RETURN_IF_ERROR(check_members(hooks, "hooks", "expansion rerank agent ms max_expansions"));
  RETURN_IF_ERROR(take_command(hooks, "expansion", config.expansion));
  RETURN_IF_ERROR(take_command(hooks, "rerank", config.rerank));
  RETURN_IF_ERROR(take_command(hooks, "agent", config.agent));
  const auto ms = hooks["ms"].as_int(), expansions = hooks["max_expansions"].as_int();
  if (hooks["ms"] && (!ms || *ms < 10 || *ms > limits::hook_ms_max))
    return wrong("ms", fmt::format("a number from 10 to {}", limits::hook_ms_max));
  if (hooks["max_expansions"] &&
      (!expansions || *expansions < 1 || *expansions > std::int64_t{limits::hook_expansions_max}))
    return wrong("max_expansions", fmt::format("a number from 1 to {}", limits::hook_expansions_max));
  if (ms) config.hook_ms = *ms;
  if (expansions) config.max_expansions = static_cast<std::size_t>(*expansions);
  return success();
}

Status take_collection(const json::Value& member, CapsuleConfig& config) {
  const std::string name = member.key();
  RETURN_IF_ERROR(retrieval::check_corpus_name(name));
  RETURN_IF_ERROR(check_members(member, "a collection", "root context"));
  Collection& collection = config.collections[name];
  RETURN_IF_ERROR(take_text(member, "root", collection.root));
  RETURN_IF_ERROR(take_text(member, "context", collection.context));
  if (!collection.root.empty() && !collection.root.starts_with('/')) return wrong("root", "an absolute path");
  return success();
}

Result<std::string> record_of(const std::string& hash) {
  const char* const chosen = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (chosen != nullptr && *chosen == '/') return std::string(chosen) + "/muniment/trusted-capsules/" + hash;
  if (home != nullptr && *home == '/') return std::string(home) + "/.config/muniment/trusted-capsules/" + hash;
  return Error(Errc::unavailable, "neither XDG_CONFIG_HOME nor HOME is set, so that no trust can be recorded.");
}

// Checks that nobody else may write a record or its folder, and so trust in the place of this user.
Status check_owned(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return errno == ENOENT ? success() : Status(file_error("examining", path, errno));
  if (about.st_uid != ::geteuid() && about.st_uid != 0)
    return Error(Errc::denied, fmt::format("{} belongs to another user. Remove it.", path));
  if ((about.st_mode & 022) == 0) return success();
  return Error(Errc::denied, fmt::format("other users may write {} (mode {:03o}). Run: chmod go-w {}", path,
                                         about.st_mode & 0777, path));
}

}  // namespace

std::string CapsuleConfig::text_of_context() const {
  std::string text = context;
  for (const auto& [name, collection] : collections) {
    if (collection.context.empty()) continue;
    text += fmt::format("{}The collection {}: {}", text.empty() ? "" : "\n", name, collection.context);
  }
  return text;
}

Result<CapsuleConfig> parse_config(std::string_view text) {
  if (text.size() > limits::capsule_config_bytes_max) {
    Error error(Errc::too_large, fmt::format("the config has {} bytes, limit {}.", grouped(text.size()),
                                             grouped(limits::capsule_config_bytes_max)));
    error.limit = static_cast<std::int64_t>(limits::capsule_config_bytes_max);
    return error;
  }
  auto document = json::parse(text);
  if (!document) return std::move(document).error().within(std::string(config_uri));
  const json::Value root = document->root();
  CapsuleConfig config;
  RETURN_IF_ERROR(check_members(root, "the config", "collections context hooks"));
  RETURN_IF_ERROR(take_text(root, "context", config.context));
  RETURN_IF_ERROR(take_hooks(root["hooks"], config));
  if (root["collections"] && !root["collections"].is(json::Kind::object)) return wrong("collections", "an object");
  for (const json::Value member : root["collections"]) RETURN_IF_ERROR(take_collection(member, config));
  return config;
}

Result<bool> is_trusted(const std::string& hash) {
  const auto record = record_of(hash);
  if (!record) return false;
  RETURN_IF_ERROR(check_owned(std::filesystem::path(*record).parent_path().string()));
  RETURN_IF_ERROR(check_owned(*record));
  const auto found = read_trusted(*record, record_bytes_max);
  if (!found && found.error().code == Errc::not_found) return false;
  if (!found) return found.error();
  return found->starts_with(hash);
}

Status trust(const std::string& hash, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string record, record_of(hash));
  const std::filesystem::path folder = std::filesystem::path(record).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder.parent_path(), failed);
  if (!failed && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return file_error("making", folder.string(), errno);
  if (failed) return file_error("making", folder.string(), failed.value());
  RETURN_IF_ERROR(check_owned(folder.string()));
  const std::filesystem::path capsule = std::filesystem::absolute(path, failed);
  return write_file_durably(
      record, fmt::format("{} {}\n", hash, escape_for_terminal(capsule.string())).substr(0, record_bytes_max));
}

Result<bool> distrust(const std::string& hash) {
  ASSIGN_OR_RETURN(const std::string record, record_of(hash));
  if (::unlink(record.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return file_error("removing", record, errno);
}

}  // namespace muniment::capsule
