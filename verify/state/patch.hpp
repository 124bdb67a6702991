// Applies the two kinds of patches to a run's `working` (docs/format.md, Working): RFC 7386 and RFC 6902, bounded.
#pragma once

#include <cstddef>

#include "base/json/json.hpp"
#include "verify/state/value.hpp"

namespace muniment::verify {

class Working {
 public:
  // Applies the whole patch, or leaves the value unchanged and returns false.
  bool apply_merge(const json::Value& patch);
  bool apply_json_patch(const json::Value& patch);

  const Changeable& value() const { return value_; }

 private:
  Changeable value_ = Changeable::object();
  // Upper bounds of the true values. Measuring the whole value for each small patch would make a fold quadratic.
  std::size_t bytes_at_most_ = 2;
  std::size_t levels_at_most_ = 1;
};

}  // namespace muniment::verify
