// Codes: vectors as signed bytes, and their inner product.
//
// A vector's code is round(127·v / max|v|), its scale 1/‖code‖: the cosine of two vectors is then dot · scale · scale,
// independent of their lengths. Codes are compared with a probe of 16 bits per component: the processor multiplies 16
// bits anyway (pmaddwd), so a query is hardly rounded, which improves recall more than scoring hits again. Sums are
// exact integers that cannot overflow, so every kernel gives the same number and the same ranking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muniment::retrieval::vec {

inline constexpr std::size_t code_multiple = 32;  // a code is padded with zeros to a multiple of it

constexpr std::size_t padded_size(std::size_t dimension) {
  return (dimension + code_multiple - 1) / code_multiple * code_multiple;
}

struct Code {
  std::vector<std::int8_t> bytes;  // padded
  float scale = 0;                 // 0: the vector has no direction
};

struct Probe {
  std::vector<std::int16_t> values;  // padded
  float scale = 0;                   // 0: no direction
};

// Both functions require finite components.
Code make_code(std::span<const float> vector);
Probe make_probe(std::span<const float> vector);

// Converts a code to a probe; `out` has room for `padded` values.
void widen(const std::int8_t* code, std::size_t padded, std::int16_t* out);

// Computes the inner product of a probe, or of a code as a probe, with a code.
struct DotKernel {
  std::string_view name;
  std::int32_t (*probe)(const std::int16_t* probe, const std::int8_t* code, std::size_t padded);
  std::int32_t (*codes)(const std::int8_t* left, const std::int8_t* code, std::size_t padded);
};

// Returns the kernels that this processor can run, the fastest first and the portable one last.
std::vector<DotKernel> dot_kernels();

}  // namespace muniment::retrieval::vec
