// How a reader is made; the rest of it is lexical_index.hpp's LexicalReader.
#pragma once

#include <memory>
#include <string>

#include "retrieval/lexical/lexical_index.hpp"

namespace muniment::retrieval {

Result<std::unique_ptr<LexicalReader>> open_lexical_reader(const std::string& folder);

}  // namespace muniment::retrieval
