// Replaces secrets in JSON and in text of several lines, by the rules of exec/scrub.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muniment::cli {

// Line by line. Returns how many secrets were replaced.
std::size_t scrub_text(std::string& text);

// Every string value, and every string or number whose member's name says that it is a secret. Everything else keeps
// its bytes. The text need not be JSON that the log accepts. Returns how many secrets were replaced.
std::size_t scrub_json(std::string& json);

}  // namespace muniment::cli
