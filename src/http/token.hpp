// The file of a listener's bearer token.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::http {

// Creates the file with a random token, and its folder, unless it exists.
Status make_token_file(const std::string& path);

// Reads a token. `setting` names the setting that names the file, for messages. Errors: those of reading; denied if
// other users may read the file; invalid_argument for a token that is too short or too long.
Result<std::string> read_token_file(std::string_view setting, const std::string& path);

// Errors: denied if the file has one of the mode bits `others`, with the command that removes them.
Status check_private_file(std::string_view setting, const std::string& path, mode_t others, std::string_view remedy);

}  // namespace muniment::http
