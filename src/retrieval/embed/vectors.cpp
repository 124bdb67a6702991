// Implements the reproducible arithmetic of the embedders.
#include "retrieval/embed/vectors.hpp"

#include <cmath>

#include "retrieval/embed/embedder.hpp"

namespace muniment::retrieval {

std::string EmbedderIdentity::text() const {
  return name + "/" + version + "/" + std::to_string(dimension) + "/" + hash.substr(0, 16);
}

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

// e^x = 2^k · e^r with |r| ≤ ½ ln 2; ln 2 in two parts, so that r keeps its precision.
double stable_exp(double x) {
  if (x < -700) return 0;
  const double k = std::nearbyint(x * 1.4426950408889634);
  const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  constexpr double inverse_factorials[] = {
      1.0,         1.0,          1.0 / 2,       1.0 / 6,         1.0 / 24,         1.0 / 120,        1.0 / 720,
      1.0 / 5'040, 1.0 / 40'320, 1.0 / 362'880, 1.0 / 3'628'800, 1.0 / 39'916'800, 1.0 / 479'001'600};
  double sum = 1.0 / 6'227'020'800;
  for (int n = 12; n >= 0; --n) sum = sum * r + inverse_factorials[n];
  return std::ldexp(sum, static_cast<int>(k));
}

float damped_count(std::size_t count) {
  return count <= 1 ? 1.0F : static_cast<float>(1.0 + stable_log(static_cast<double>(count)));
}

}  // namespace muniment::retrieval
