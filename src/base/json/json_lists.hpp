// Converts lists in JSON to vectors.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.hpp"

namespace muniment {

// Returns the strings of a list in order; an item that is not a string becomes empty. Returns an empty vector if `list`
// is not a list.
inline std::vector<std::string> strings_of(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value item : list) out.push_back(item.string_or(""));
  return out;
}

}  // namespace muniment
