// The loops in which the models spend their time. Each uses AVX2 if the processor has it, and yields the same bits
// without it: every element of a result is summed separately, in the order of the inner index, with a multiplication
// and an addition that each round. The number of elements that are computed in parallel does not change a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muniment::retrieval {

enum class Simd : std::uint8_t { plain, avx2 };
Simd best_simd();  // the best kernels for this processor

// Row by row: element (r, c) is values[r * columns + c].
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<float> values;

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  std::span<float> row(std::size_t r) { return std::span(values).subspan(r * columns, columns); }
  std::span<const float> row(std::size_t r) const { return std::span(values).subspan(r * columns, columns); }
};

// A right-hand side in panels of 16 columns (the last one padded with zeros), so that it is read sequentially.
class Panels {
 public:
  static constexpr std::size_t width = 16;

  Panels() = default;
  explicit Panels(const Matrix& matrix);
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  const float* panel(std::size_t index) const { return values_.data() + index * rows_ * width; }

 private:
  std::size_t rows_ = 0, columns_ = 0;
  std::vector<float> values_;
};

// left · right; `left` has as many columns as `right` has rows.
Matrix multiply(const Matrix& left, const Panels& right, Simd simd = best_simd());

// Sparse rows, one after the other: row r has the entries [row_begin[r], row_begin[r + 1]).
struct SparseRows {
  std::size_t columns = 0;
  std::vector<std::size_t> row_begin{0};
  std::vector<std::uint32_t> column;
  std::vector<float> value;
  std::size_t rows() const { return row_begin.size() - 1; }
};

// left · right: left.rows() × right.columns
Matrix multiply(const SparseRows& left, const Matrix& right, Simd simd = best_simd());
// leftᵀ · right: left.columns × right.columns
Matrix multiply_transposed(const SparseRows& left, const Matrix& right, Simd simd = best_simd());

// matrixᵀ · matrix in double: columns × columns, row by row.
std::vector<double> gram(const Matrix& matrix, Simd simd = best_simd());

// sum += scale · codes, element by element.
void add_scaled(std::span<float> sum, const std::int8_t* codes, float scale, Simd simd = best_simd());

}  // namespace muniment::retrieval
