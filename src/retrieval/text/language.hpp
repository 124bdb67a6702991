// Detects the language of a text, to select a stemmer.
#pragma once

#include <string>
#include <string_view>

namespace muniment::retrieval {

// ISO 639-1, or "none". Reads at most limits::language_sample_bytes_max of the text.
std::string language_of(std::string_view text);

}  // namespace muniment::retrieval
