// Arithmetic on vectors and counts that the embedders share. Results are identical on every machine: square roots are
// exact by IEEE 754, logarithms are computed here instead of by the C library, and the folder is compiled
// without contraction of a·b + c.
#pragma once

#include <cstddef>
#include <span>

namespace muniment::retrieval {

// Scales to length 1. A zero vector, or one that is too short to have a direction, becomes zero.
void make_unit(std::span<float> vector);

double stable_log(double x);  // x > 0 and normal; within 2 units in the last place

// The weight of a term by its count: 1 + ln(count).
float damped_count(std::size_t count);

}  // namespace muniment::retrieval
