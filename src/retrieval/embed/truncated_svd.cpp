// Computes a truncated singular value decomposition.
#include "retrieval/embed/truncated_svd.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace muniment::retrieval {
namespace {

constexpr std::size_t oversampling = 16;
constexpr int subspace_iterations = 3;
constexpr int jacobi_sweeps_max = 30;
// A singular value below this share of the largest one is rounding noise.
constexpr double singular_value_share_min = 1e-4;

// Random ±1 from splitmix64: as good a start as Gaussian numbers, and independent of libraries.
Matrix random_signs(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  Matrix signs(rows, columns);
  for (float& sign : signs.values) {
    std::uint64_t x = seed += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    sign = ((x ^ (x >> 31)) & 1) == 0 ? 1.0F : -1.0F;
  }
  return signs;
}

// R⁻¹ for gram = RᵀR (Cholesky), upper triangular. A column that depends on earlier ones gets zeros.
Matrix inverse_root(std::vector<double> gram, std::size_t size) {
  double largest = 0;
  for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, gram[i * size + i]);
  std::vector<double> root(size * size), inverse(size * size);
  for (std::size_t j = 0; j < size; ++j) {
    double pivot = gram[j * size + j];
    for (std::size_t k = 0; k < j; ++k) pivot -= root[k * size + j] * root[k * size + j];
    if (pivot <= 1e-12 * largest) continue;
    const double diagonal = root[j * size + j] = std::sqrt(pivot);
    for (std::size_t i = j + 1; i < size; ++i) {
      double sum = gram[j * size + i];
      for (std::size_t k = 0; k < j; ++k) sum -= root[k * size + j] * root[k * size + i];
      root[j * size + i] = sum / diagonal;
    }
    inverse[j * size + j] = 1 / diagonal;
    for (std::size_t i = 0; i < j; ++i) {
      double sum = 0;
      for (std::size_t k = i; k < j; ++k) sum += inverse[i * size + k] * root[k * size + j];
      inverse[i * size + j] = -sum / diagonal;
    }
  }
  Matrix out(size, size);
  std::transform(inverse.begin(), inverse.end(), out.values.begin(), [](double x) { return static_cast<float>(x); });
  return out;
}

// Orthonormal columns that span the same space (CholeskyQR).
Matrix orthonormal(const Matrix& matrix) {
  return multiply(matrix, Panels(inverse_root(gram(matrix), matrix.columns)));
}

struct Eigen {
  std::vector<double> values;
  std::vector<double> vectors;  // size × size; vector i is the row i
};

// Rotates the rows p and q by the angle.
void turn_rows(std::vector<double>& matrix, std::size_t size, std::size_t p, std::size_t q, double c, double s) {
  for (std::size_t k = 0; k < size; ++k) {
    const double pk = matrix[p * size + k], qk = matrix[q * size + k];
    matrix[p * size + k] = c * pk - s * qk;
    matrix[q * size + k] = s * pk + c * qk;
  }
}

// Rotates the plane (p, q) so that entry (p, q) of the symmetric `a` becomes zero.
void rotate(std::vector<double>& a, std::vector<double>& vectors, std::size_t size, std::size_t p, std::size_t q) {
  const double pp = a[p * size + p], qq = a[q * size + q], pq = a[p * size + q];
  const double theta = (qq - pp) / (2 * pq);
  const double t = (theta >= 0 ? 1.0 : -1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1);
  const double s = t * c;
  turn_rows(a, size, p, q, c, s);
  a[p * size + p] = pp - t * pq;
  a[q * size + q] = qq + t * pq;
  a[p * size + q] = a[q * size + p] = 0;
  for (std::size_t k = 0; k < size; ++k) {  // the columns mirror the rows
    a[k * size + p] = a[p * size + k];
    a[k * size + q] = a[q * size + k];
  }
  turn_rows(vectors, size, p, q, c, s);
}

// Eigenvectors of a symmetric matrix (cyclic Jacobi): slow for large matrices, accurate, and always in the same order.
Eigen eigen(std::vector<double> a, std::size_t size) {
  Eigen result{std::vector<double>(size), std::vector<double>(size * size)};
  for (std::size_t i = 0; i < size; ++i) result.vectors[i * size + i] = 1;
  double total = 0;
  for (const double x : a) total += x * x;
  for (int sweep = 0; sweep < jacobi_sweeps_max; ++sweep) {
    double off = 0;
    for (std::size_t p = 0; p < size; ++p) {
      for (std::size_t q = p + 1; q < size; ++q) off += a[p * size + q] * a[p * size + q];
    }
    if (off <= 1e-24 * total) break;
    for (std::size_t p = 0; p < size; ++p) {
      for (std::size_t q = p + 1; q < size; ++q) {
        if (a[p * size + q] * a[p * size + q] > 1e-30 * total) rotate(a, result.vectors, size, p, q);
      }
    }
  }
  for (std::size_t i = 0; i < size; ++i) result.values[i] = a[i * size + i];
  return result;
}

void fix_signs(Matrix& columns) {
  for (std::size_t c = 0; c < columns.columns; ++c) {
    float largest = 0;
    for (std::size_t r = 0; r < columns.rows; ++r) {
      const float x = columns.values[r * columns.columns + c];
      if (std::abs(x) > std::abs(largest)) largest = x;
    }
    if (largest >= 0) continue;
    for (std::size_t r = 0; r < columns.rows; ++r) columns.values[r * columns.columns + c] *= -1;
  }
}

}  // namespace

TruncatedSvd truncated_svd(const SparseRows& matrix, std::size_t rank, std::uint64_t seed) {
  const std::size_t size = std::min({rank + oversampling, matrix.rows(), matrix.columns});
  Matrix basis = random_signs(matrix.columns, size, seed);
  for (int i = 0; i < subspace_iterations; ++i)
    basis = orthonormal(multiply_transposed(matrix, multiply(matrix, basis)));
  basis = orthonormal(basis);  // a second time: once is not accurate enough in float
  const Eigen found = eigen(gram(multiply(matrix, basis)), size);
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.values[a] > found.values[b]; });
  order.resize(std::min(rank, size));
  TruncatedSvd result;
  for (const std::size_t i : order) {
    const double value = std::sqrt(std::max(found.values[i], 0.0));
    if (value <= 0 || value < singular_value_share_min * std::sqrt(found.values[order[0]])) break;
    result.singular_values.push_back(value);
  }
  order.resize(result.singular_values.size());
  Matrix turn(size, order.size());
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t c = 0; c < order.size(); ++c)
      turn.values[r * order.size() + c] = static_cast<float>(found.vectors[order[c] * size + r]);
  }
  result.right = multiply(basis, Panels(turn));
  fix_signs(result.right);
  return result;
}

}  // namespace muniment::retrieval
