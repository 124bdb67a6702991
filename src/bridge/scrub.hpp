// Removes secrets from command lines, environments and output before they are recorded, by the rules of the sanitiser.
// A secret that looks like an ordinary word is not found (docs/recording.md).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/config.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::bridge {

inline constexpr std::string_view scrubbed_text = "[scrubbed]";

// Replaces passwords in URLs and of curl -u, values of options and assignments with a secret name, bearer tokens, the
// bodies of private keys (PEM) and the keys and tokens that rules.toml describes, also within an argument that is a
// script. Returns the number of replacements.
std::size_t scrub_arguments(std::vector<std::string>& arguments);

// Does the same in a text of several lines.
std::size_t scrub_text(std::string& text);

// Copies `source` to `copy` line by line; of a line longer than 1 MiB, each piece by itself. Returns the number of
// replacements. Errors: those of the files.
Result<std::size_t> scrub_file(const Fd& source, const Fd& copy);

// Reads the rules and secrets of this machine (local_rules.hpp), which all functions above then use on every thread.
// Called once, before them. Errors: those of the files.
Status scrub_by(const Config& config, const char* const* environment);

// Returns whether the name implies a secret value: TOKEN, KEY, SECRET, PASSWORD, …
bool names_a_secret(std::string_view name);

// Returns whether a JSON member with this name holds a secret: password, api_key, accessToken. Stricter than
// names_a_secret, since "keyword" and "max_tokens" are names of ordinary arguments.
bool is_secret_member(std::string_view name);

// Returns the variables to record, in order of name: those on an allowlist whose name does not imply a secret.
// `environment` is NULL-terminated, like environ.
std::vector<std::pair<std::string, std::string>> allowed_environment(const char* const* environment);

}  // namespace muniment::bridge
