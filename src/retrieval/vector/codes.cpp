// Computes codes and probes, and their inner products.
#include "retrieval/vector/codes.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muniment::retrieval::vec {
namespace {

constexpr int code_max = 127;

// Rounds to steps of max|v| / `steps`; returns 1/‖out‖, or 0 for a vector without direction. Double arithmetic without
// contraction: identical on every machine.
template <typename Int>
float quantise(std::span<const float> vector, int steps, std::vector<Int>& out) {
  out.assign(padded_size(vector.size()), 0);
  double largest = 0;
  for (const float value : vector) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  if (!(largest > 0)) return 0;
  std::int64_t squares = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    const long rounded = std::lrint(static_cast<double>(vector[i]) / largest * steps);
    out[i] = static_cast<Int>(rounded);
    squares += static_cast<std::int64_t>(rounded) * rounded;
  }
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(squares)));
}

// Returns the largest number of steps for which no sum over `dimension` products with a code exceeds 32 bits.
int probe_steps(std::size_t dimension) {
  constexpr auto sum_max = std::numeric_limits<std::int32_t>::max();
  const std::size_t steps = static_cast<std::size_t>(sum_max) / (code_max * std::max<std::size_t>(dimension, 1));
  return static_cast<int>(std::min<std::size_t>(steps, std::numeric_limits<std::int16_t>::max()));
}

template <typename Left>
std::int32_t dot_portable(const Left* left, const std::int8_t* code, std::size_t padded) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < padded; ++i) sum += std::int32_t{left[i]} * std::int32_t{code[i]};
  return sum;
}

#if defined(__x86_64__)

template <typename Register, typename T>
const Register* as(const T* at) {
  return reinterpret_cast<const Register*>(at);
}

// Loads sixteen values of 16 bits.
__attribute__((target("avx2"))) inline __m256i load16(const std::int16_t* at) {
  return _mm256_loadu_si256(as<__m256i>(at));
}
__attribute__((target("avx2"))) inline __m256i load16(const std::int8_t* at) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(as<__m128i>(at)));
}

template <typename Left>
__attribute__((target("avx2"))) std::int32_t dot_avx2(const Left* left, const std::int8_t* code, std::size_t padded) {
  __m256i even = _mm256_setzero_si256(), odd = _mm256_setzero_si256();
  for (std::size_t i = 0; i < padded; i += 32) {
    even = _mm256_add_epi32(even, _mm256_madd_epi16(load16(code + i), load16(left + i)));
    odd = _mm256_add_epi32(odd, _mm256_madd_epi16(load16(code + i + 16), load16(left + i + 16)));
  }
  const __m256i both = _mm256_add_epi32(even, odd);
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

// Loads thirty-two values of 16 bits.
__attribute__((target("avx512f,avx512bw"))) inline __m512i load32(const std::int16_t* at) {
  return _mm512_loadu_si512(at);
}
__attribute__((target("avx512f,avx512bw"))) inline __m512i load32(const std::int8_t* at) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(as<__m256i>(at)));
}

template <typename Left>
__attribute__((target("avx512f,avx512bw,avx512vnni"))) std::int32_t dot_vnni(const Left* left, const std::int8_t* code,
                                                                             std::size_t padded) {
  __m512i sum = _mm512_setzero_si512();
  for (std::size_t i = 0; i < padded; i += 32) sum = _mm512_dpwssd_epi32(sum, load32(code + i), load32(left + i));
  std::int32_t parts[16];  // gcc 12's reduction intrinsic causes a warning
  _mm512_storeu_si512(parts, sum);
  return std::accumulate(std::begin(parts), std::end(parts), std::int32_t{0});
}

#endif

}  // namespace

Code make_code(std::span<const float> vector) {
  Code code;
  code.scale = quantise(vector, code_max, code.bytes);
  return code;
}

Probe make_probe(std::span<const float> vector) {
  Probe probe;
  probe.scale = quantise(vector, probe_steps(vector.size()), probe.values);
  return probe;
}

void widen(const std::int8_t* code, std::size_t padded, std::int16_t* out) { std::copy(code, code + padded, out); }

std::vector<DotKernel> dot_kernels() {
  std::vector<DotKernel> kernels;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni")) {
    kernels.push_back({"avx512vnni", dot_vnni, dot_vnni});
  }
  if (__builtin_cpu_supports("avx2")) kernels.push_back({"avx2", dot_avx2, dot_avx2});
#endif
  kernels.push_back({"portable", dot_portable, dot_portable});
  return kernels;
}

}  // namespace muniment::retrieval::vec
