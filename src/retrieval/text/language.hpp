// The language of a text, for what stems its words.
#pragma once

#include <string>
#include <string_view>

namespace muniment::retrieval {

// ISO 639-1, or "none". Looks at no more than limits::language_sample_bytes_max of it.
std::string language_of(std::string_view text);

}  // namespace muniment::retrieval
