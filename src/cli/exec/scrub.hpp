// What of a command line and an environment may be written down for ever. Obvious secrets only: a
// secret that looks like an ordinary word is not found, which docs/protocol.md says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::string_view scrubbed_text = "[scrubbed]";

// Replaces passwords in URLs and of curl -u, values of options and assignments with a secret's name, bearer
// tokens, the bodies of private keys (PEM), and the well-known shapes of keys, all of them in an argument that is a
// script. Answers how many were replaced.
std::size_t scrub_arguments(std::vector<std::string>& arguments);

// The same in a line of output, word by word. Answers how many were replaced.
std::size_t scrub_line(std::string& line);

// The same in a text of several lines.
std::size_t scrub_text(std::string& text);

// Copies `source`, line by line, to `copy`; a line of more than 1 MiB is taken in pieces. Answers how
// many were replaced. Errors: those of the files.
Result<std::size_t> scrub_file(const Fd& source, const Fd& copy);

// Does the name say that its value is a secret: TOKEN, KEY, SECRET, PASSWORD …?
bool names_a_secret(std::string_view name);

// Does a JSON member of this name hold a secret: password, api_key, accessToken? Stricter than names_a_secret, because
// "keyword" and "max_tokens" are names of ordinary arguments.
bool is_secret_member(std::string_view name);

// The variables that are recorded, in order of name: an allowlist, and never one whose name says
// that it is a secret. `environment` is NULL-terminated, as environ.
std::vector<std::pair<std::string, std::string>> allowed_environment(const char* const* environment);

}  // namespace muniment::cli
