// Built-in expansions of a query, for a weak first answer without a hook's expansions. They are cheap and use only the
// function words of the language. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muniment::retrieval {

struct Expansions {
  std::vector<std::string> lexical;
  std::vector<std::string> vector;
};

// Returns the query without its function words ("what is the port of the proxy" → "port proxy"); nothing if it has
// none, or only those.
Expansions heuristic_expansions(std::string_view text);

}  // namespace muniment::retrieval
