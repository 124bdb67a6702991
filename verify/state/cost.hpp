// Adds costs exactly: decimal texts are summed as whole trillionths (docs/format.md, Usage).
#pragma once

#include <map>
#include <string>

#include "base/json/json.hpp"

namespace muniment::verify {

class Costs {
 public:
  // Adds `cost` of a model's answer. Returns false if the value is not valid and is ignored.
  bool add(const json::Value& cost);
  void write(std::string& out) const;  // {"EUR":"0.5",…}

 private:
  __extension__ using Trillionths = unsigned __int128;
  std::map<std::string, Trillionths> sums_;
};

}  // namespace muniment::verify
