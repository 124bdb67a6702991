// Stands in for failpoint.cpp in programs without failpoints.
#include "base/process/failpoint.hpp"

namespace muniment::failpoint {

const bool present = false;

bool pass(std::string_view) { return false; }

void arm(std::string_view) {}

}  // namespace muniment::failpoint
