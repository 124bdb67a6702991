#include "bridge/local_rules.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "bridge/sanitiser.hpp"
#include "bridge/scrub.hpp"

namespace muniment::bridge {
namespace {

constexpr std::size_t word_bytes_max = 16;

// A folder, or one word in lower case, occurs in ordinary text.
bool is_ordinary_value(std::string_view value) {
  return value.starts_with('/') ||
         (value.size() < word_bytes_max && std::all_of(value.begin(), value.end(), [](char c) {
            return std::islower(static_cast<unsigned char>(c)) != 0;
          }));
}

void add_environment(const char* const* environment, KnownSecrets& secrets) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos || !names_a_secret(variable.substr(0, equals))) continue;
    const std::string_view value = variable.substr(equals + 1);
    if (!is_ordinary_value(value)) secrets.add(value);
  }
}

Error bad_secret(std::size_t line, std::size_t size) {
  return {Errc::invalid_argument, "line " + std::to_string(line) + " has " + std::to_string(size) +
                                      " bytes; a secret has " + std::to_string(limits::known_secret_bytes_min) +
                                      " to " + std::to_string(limits::known_secret_bytes_max)};
}

// Reads one secret a line; empty lines are ignored.
Status add_secrets(const std::string& path, KnownSecrets& secrets) {
  ASSIGN_OR_RETURN(const std::string text, read_trusted(path, limits::secrets_file_bytes_max));
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    return Error(Errc::denied, path + ": other users may read the secrets: chmod 600 " + path);
  std::size_t line_no = 0, count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line_no;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.size() < limits::known_secret_bytes_min || line.size() > limits::known_secret_bytes_max)
      return bad_secret(line_no, line.size());
    if (++count > limits::known_secrets_max) {
      return Error(Errc::too_large,
                   path + ": more than " + std::to_string(limits::known_secrets_max) + " secrets: list fewer");
    }
    secrets.add(line);
  }
  return success();
}

}  // namespace

Result<LocalRules> read_local_rules(const Config& config, const char* const* environment) {
  LocalRules local;
  add_environment(environment, local.secrets);
  if (const std::string& path = config.sanitiser_secrets; !path.empty()) {
    if (auto added = add_secrets(path, local.secrets); !added)
      return std::move(added).error().within("sanitiser_secrets " + path);
  }
  if (const std::string& path = config.sanitiser_rules; !path.empty()) {
    auto text = read_trusted(path, limits::rule_file_bytes_max);
    if (!text) return std::move(text).error().within("sanitiser_rules");
    auto rules = read_toml_rules(*text);
    if (!rules) return std::move(rules).error().within("sanitiser_rules " + path);
    // A pattern that does not compile is an error now, not at its first use.
    if (auto used = Sanitiser(Scope::output).use({*rules, local.secrets}); !used)
      return std::move(used).error().within("sanitiser_rules " + path);
    local.rules = std::move(*rules);
  }
  return local;
}

}  // namespace muniment::bridge
