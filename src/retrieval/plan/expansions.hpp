// What a query is also asked as, where its first answer is not strong and no hook says better: built in, cheap,
// and without any knowledge but that of the language's function words. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

struct Expansions {
  std::vector<std::string> lexical;
  std::vector<std::string> vector;
};

// Questions without their function words ("what is the port of the proxy" → "port proxy"); nothing for a query
// that has none, or nothing else.
Expansions heuristic_expansions(std::string_view text);

}  // namespace muniment::retrieval
