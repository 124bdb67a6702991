// Names the corpora of an agent's memory.
#pragma once

#include <string_view>

namespace muniment {

inline constexpr std::string_view memory_corpus = "memory";  // of facts for which no corpus is named
inline constexpr std::string_view review_ending =
    ".review";  // follows a corpus: that of its facts that wait for review

}  // namespace muniment
