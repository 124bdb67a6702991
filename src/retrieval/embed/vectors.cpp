// Implements the reproducible arithmetic of the embedders.
#include "retrieval/embed/vectors.hpp"

#include <cmath>

#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

void make_unit(std::span<float> vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * static_cast<double>(x);
  const double scale = sum > 1e-30 ? 1.0 / std::sqrt(sum) : 0.0;
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) * scale);
}

// ln x = e·ln 2 + 2·artanh((m-1)/(m+1)) with m in [√½, √2): each term of the series is 34 times smaller than the one
// before.
double stable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * 0.69314718055994531 + 2 * s * sum;
}

float damped_count(std::size_t count) {
  return count <= 1 ? 1.0F : static_cast<float>(1.0 + stable_log(static_cast<double>(count)));
}

}  // namespace muniment::retrieval
