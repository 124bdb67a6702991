// Lists in JSON as what they hold.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.hpp"

namespace muniment {

// Its strings, in order; what is none is empty. Nothing for what is no list.
inline std::vector<std::string> strings_of(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value item : list) out.push_back(item.string_or(""));
  return out;
}

}  // namespace muniment
