// Implements the loops for every processor and for AVX2.
#include "retrieval/embed/kernels.hpp"

#include <algorithm>
#include <cstring>

// Each loop is written once, as a body that is inlined into one function for every processor and one for those with
// AVX2. FMA is not used, because it rounds once instead of twice.
#if defined(__x86_64__)
#define MUNIMENT_WITH_AVX2 [[gnu::target("avx2")]]
#else
#define MUNIMENT_WITH_AVX2
#endif
#define MUNIMENT_BODY [[gnu::always_inline]] inline

namespace muniment::retrieval {
namespace {

// Eight floats or four doubles, at any address. clang ignores the alignment in an alias declaration.
typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));    // NOLINT(modernize-use-using)
typedef double Doubles __attribute__((vector_size(32), aligned(8), may_alias));  // NOLINT(modernize-use-using)

// A tile of `Rows` × 16 of the product stays in registers during the inner loop.
template <std::size_t Rows>
MUNIMENT_BODY void tile(const float* left, std::size_t stride, std::size_t depth, const float* panel, float* out) {
  Floats sum[Rows][2] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    const Floats low = *reinterpret_cast<const Floats*>(panel + k * 16);
    const Floats high = *reinterpret_cast<const Floats*>(panel + k * 16 + 8);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < Rows; ++r) {
      const float factor = left[r * stride + k];
      sum[r][0] += low * factor;
      sum[r][1] += high * factor;
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) std::memcpy(out + r * 16, sum[r], sizeof sum[r]);
}

// Rows are split into equal tiles of at most six: a tile of one row would wait for its own sums.
MUNIMENT_BODY void dense_body(const Matrix& left, const Panels& right, Matrix& out) {
  constexpr std::size_t height_max = 6;
  const std::size_t depth = right.rows();
  const std::size_t tiles = (out.rows + height_max - 1) / height_max;
  float block[height_max * 16];
  for (std::size_t column = 0; column < out.columns; column += Panels::width) {
    const float* const panel = right.panel(column / Panels::width);
    const std::size_t width = std::min(Panels::width, out.columns - column);
    for (std::size_t t = 0; t < tiles; ++t) {
      const std::size_t row = out.rows * t / tiles, height = out.rows * (t + 1) / tiles - row;
      const float* const from = left.values.data() + row * depth;
      switch (height) {
        case 6: tile<6>(from, depth, depth, panel, block); break;
        case 5: tile<5>(from, depth, depth, panel, block); break;
        case 4: tile<4>(from, depth, depth, panel, block); break;
        case 3: tile<3>(from, depth, depth, panel, block); break;
        case 2: tile<2>(from, depth, depth, panel, block); break;
        default: tile<1>(from, depth, depth, panel, block); break;
      }
      for (std::size_t r = 0; r < height; ++r)
        std::memcpy(&out.values[(row + r) * out.columns + column], block + r * 16, width * sizeof(float));
    }
  }
}

MUNIMENT_BODY void add(float* to, const float* from, float scale, std::size_t size) {
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8)
    *reinterpret_cast<Floats*>(to + i) += *reinterpret_cast<const Floats*>(from + i) * scale;
  for (; i < size; ++i) to[i] += from[i] * scale;
}

MUNIMENT_BODY void sparse_body(const SparseRows& left, const Matrix& right, Matrix& out) {
  for (std::size_t row = 0; row < left.rows(); ++row) {
    for (std::size_t e = left.row_begin[row]; e < left.row_begin[row + 1]; ++e) {
      add(out.values.data() + row * out.columns, right.values.data() + left.column[e] * right.columns, left.value[e],
          out.columns);
    }
  }
}

MUNIMENT_BODY void transposed_body(const SparseRows& left, const Matrix& right, Matrix& out) {
  for (std::size_t row = 0; row < left.rows(); ++row) {
    for (std::size_t e = left.row_begin[row]; e < left.row_begin[row + 1]; ++e) {
      add(out.values.data() + left.column[e] * out.columns, right.values.data() + row * right.columns, left.value[e],
          out.columns);
    }
  }
}

// Computes the upper half, four rows of the matrix at a time, so that the sums are loaded a quarter as often. `rows`
// holds four rows as doubles, each padded with zeros to `width`, a multiple of four.
MUNIMENT_BODY void gram_body(const Matrix& matrix, double* out, double* rows, std::size_t width) {
  for (std::size_t r = 0; r < matrix.rows; r += 4) {
    const std::size_t height = std::min<std::size_t>(4, matrix.rows - r);
    for (std::size_t h = 0; h < 4; ++h) {
      for (std::size_t c = 0; c < matrix.columns; ++c) {
        rows[h * width + c] = h < height ? static_cast<double>(matrix.values[(r + h) * matrix.columns + c]) : 0.0;
      }
    }
    for (std::size_t i = 0; i < matrix.columns; ++i) {
      const double factors[] = {rows[i], rows[width + i], rows[2 * width + i], rows[3 * width + i]};
      for (std::size_t j = i - i % 4; j < width; j += 4) {
        Doubles sum = *reinterpret_cast<const Doubles*>(out + i * width + j);
#pragma GCC unroll 4
        for (std::size_t h = 0; h < 4; ++h) sum += *reinterpret_cast<const Doubles*>(rows + h * width + j) * factors[h];
        *reinterpret_cast<Doubles*>(out + i * width + j) = sum;
      }
    }
  }
}

MUNIMENT_BODY void codes_body(float* sum, const std::int8_t* codes, float scale, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) sum[i] += static_cast<float>(codes[i]) * scale;
}

MUNIMENT_WITH_AVX2 void dense_avx2(const Matrix& left, const Panels& right, Matrix& out) {
  dense_body(left, right, out);
}
void dense_plain(const Matrix& left, const Panels& right, Matrix& out) { dense_body(left, right, out); }
MUNIMENT_WITH_AVX2 void sparse_avx2(const SparseRows& left, const Matrix& right, Matrix& out) {
  sparse_body(left, right, out);
}
void sparse_plain(const SparseRows& left, const Matrix& right, Matrix& out) { sparse_body(left, right, out); }
MUNIMENT_WITH_AVX2 void transposed_avx2(const SparseRows& left, const Matrix& right, Matrix& out) {
  transposed_body(left, right, out);
}
void transposed_plain(const SparseRows& left, const Matrix& right, Matrix& out) { transposed_body(left, right, out); }
MUNIMENT_WITH_AVX2 void gram_avx2(const Matrix& matrix, double* out, double* rows, std::size_t width) {
  gram_body(matrix, out, rows, width);
}
void gram_plain(const Matrix& matrix, double* out, double* rows, std::size_t width) {
  gram_body(matrix, out, rows, width);
}
MUNIMENT_WITH_AVX2 void codes_avx2(float* sum, const std::int8_t* codes, float scale, std::size_t size) {
  codes_body(sum, codes, scale, size);
}
void codes_plain(float* sum, const std::int8_t* codes, float scale, std::size_t size) {
  codes_body(sum, codes, scale, size);
}

}  // namespace

Simd best_simd() {
#if defined(__x86_64__)
  static const Simd best = __builtin_cpu_supports("avx2") != 0 ? Simd::avx2 : Simd::plain;
  return best;
#else
  return Simd::plain;
#endif
}

Panels::Panels(const Matrix& matrix)
    : rows_(matrix.rows),
      columns_(matrix.columns),
      values_((matrix.columns + width - 1) / width * width * matrix.rows) {
  for (std::size_t r = 0; r < rows_; ++r) {
    for (std::size_t c = 0; c < columns_; ++c)
      values_[(c / width * rows_ + r) * width + c % width] = matrix.values[r * columns_ + c];
  }
}

Matrix multiply(const Matrix& left, const Panels& right, Simd simd) {
  Matrix out(left.rows, right.columns());
  (simd == Simd::avx2 ? dense_avx2 : dense_plain)(left, right, out);
  return out;
}

Matrix multiply(const SparseRows& left, const Matrix& right, Simd simd) {
  Matrix out(left.rows(), right.columns);
  (simd == Simd::avx2 ? sparse_avx2 : sparse_plain)(left, right, out);
  return out;
}

Matrix multiply_transposed(const SparseRows& left, const Matrix& right, Simd simd) {
  Matrix out(left.columns, right.columns);
  (simd == Simd::avx2 ? transposed_avx2 : transposed_plain)(left, right, out);
  return out;
}

std::vector<double> gram(const Matrix& matrix, Simd simd) {
  const std::size_t size = matrix.columns;
  const std::size_t width = (size + 3) / 4 * 4;
  std::vector<double> padded(size * width), rows(4 * width), out(size * size);
  (simd == Simd::avx2 ? gram_avx2 : gram_plain)(matrix, padded.data(), rows.data(), width);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = i; j < size; ++j) out[i * size + j] = out[j * size + i] = padded[i * width + j];
  }
  return out;
}

void add_scaled(std::span<float> sum, const std::int8_t* codes, float scale, Simd simd) {
  (simd == Simd::avx2 ? codes_avx2 : codes_plain)(sum.data(), codes, scale, sum.size());
}

}  // namespace muniment::retrieval
