// What the embedders share about vectors and counts. Nothing here rounds differently from one machine to the next:
// square roots are exact by IEEE 754, logarithms and powers are computed here instead of by the C library, and the
// folder is compiled without contraction of a·b + c.
#pragma once

#include <cstddef>
#include <span>

namespace muniment::retrieval {

// Scales to length 1. All zeros stay so; a vector that is too short to tell a direction becomes zero.
void make_unit(std::span<float> vector);

double stable_log(double x);  // x > 0 and normal; within 2 units in the last place
double stable_exp(double x);  // the same; 0 below -700

// How much a term counts that occurs so often: 1 + ln(count).
float damped_count(std::size_t count);

}  // namespace muniment::retrieval
