// Tests of the numeric kernels: results are correct and bit-identical with and without AVX2; and of the singular
// vectors that they compute.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "retrieval/embed/kernels.hpp"
#include "retrieval/embed/truncated_svd.hpp"
#include "retrieval/embed/vectors.hpp"

namespace muniment::retrieval {
namespace {

Matrix random_matrix(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  Matrix matrix(rows, columns);
  for (float& x : matrix.values) x = static_cast<float>(random()) / 2147483648.0F - 1.0F;
  return matrix;
}

// Fills about a fifth of the entries.
SparseRows random_sparse(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  SparseRows sparse;
  sparse.columns = columns;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      if (random() % 5 != 0) continue;
      sparse.column.push_back(c);
      sparse.value.push_back(static_cast<float>(random()) / 2147483648.0F - 1.0F);
    }
    sparse.row_begin.push_back(sparse.value.size());
  }
  return sparse;
}

Matrix dense(const SparseRows& sparse) {
  Matrix matrix(sparse.rows(), sparse.columns);
  for (std::size_t r = 0; r < sparse.rows(); ++r) {
    for (std::size_t e = sparse.row_begin[r]; e < sparse.row_begin[r + 1]; ++e)
      matrix.row(r)[sparse.column[e]] = sparse.value[e];
  }
  return matrix;
}

Matrix transposed(const Matrix& matrix) {
  Matrix out(matrix.columns, matrix.rows);
  for (std::size_t r = 0; r < matrix.rows; ++r) {
    for (std::size_t c = 0; c < matrix.columns; ++c) out.row(c)[r] = matrix.row(r)[c];
  }
  return out;
}

// Adds the products in the order that kernels.hpp promises.
Matrix plain_product(const Matrix& left, const Matrix& right) {
  Matrix out(left.rows, right.columns);
  for (std::size_t r = 0; r < left.rows; ++r) {
    for (std::size_t c = 0; c < right.columns; ++c) {
      volatile float sum = 0;  // rounds at every step, despite compiler optimization
      for (std::size_t k = 0; k < left.columns; ++k) {
        volatile float product = left.row(r)[k] * right.row(k)[c];
        sum = sum + product;
      }
      out.row(r)[c] = sum;
    }
  }
  return out;
}

void expect_same_bits(const Matrix& a, const Matrix& b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.columns, b.columns);
  EXPECT_TRUE(a.values.empty() || std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0);
}

class EveryProcessor : public testing::TestWithParam<Simd> {
 protected:
  void SetUp() override {
    if (GetParam() == Simd::avx2 && best_simd() != Simd::avx2) GTEST_SKIP() << "this processor has no AVX2";
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, EveryProcessor, testing::Values(Simd::plain, Simd::avx2));

TEST_P(EveryProcessor, AProductHasTheBitsOfItsDefinition) {
  const std::size_t sizes[][3] = {{1, 1, 1}, {4, 3, 16}, {5, 7, 17}, {7, 64, 15}, {9, 33, 48}, {3, 0, 5}, {0, 4, 4}};
  for (const auto& [rows, depth, columns] : sizes) {
    const Matrix left = random_matrix(rows, depth, 1), right = random_matrix(depth, columns, 2);
    expect_same_bits(multiply(left, Panels(right), GetParam()), plain_product(left, right));
  }
}

TEST_P(EveryProcessor, ASparseProductIsTheDenseOne) {
  for (const std::size_t columns : {1U, 8U, 19U}) {
    const SparseRows left = random_sparse(23, 31, 3);
    const Matrix right = random_matrix(31, columns, 4), below = random_matrix(23, columns, 5);
    expect_same_bits(multiply(left, right, GetParam()), plain_product(dense(left), right));
    expect_same_bits(multiply_transposed(left, below, GetParam()), plain_product(transposed(dense(left)), below));
  }
}

TEST_P(EveryProcessor, TheGramMatrixIsSymmetricAndRight) {
  const Matrix matrix = random_matrix(29, 7, 6);
  const std::vector<double> found = gram(matrix, GetParam());
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t j = 0; j < 7; ++j) {
      double sum = 0;
      for (std::size_t r = 0; r < 29; ++r)
        sum += static_cast<double>(matrix.row(r)[i]) * static_cast<double>(matrix.row(r)[j]);
      EXPECT_NEAR(found[i * 7 + j], sum, 1e-12);
      EXPECT_EQ(found[i * 7 + j], found[j * 7 + i]);
      EXPECT_EQ(found[i * 7 + j], gram(matrix, Simd::plain)[i * 7 + j]);
    }
  }
}

TEST_P(EveryProcessor, CodesAreAddedWithTheirScale) {
  for (const std::size_t size : {1U, 16U, 37U}) {
    std::vector<float> sum(size, 1.0F);
    std::vector<std::int8_t> codes(size);
    for (std::size_t i = 0; i < size; ++i) codes[i] = static_cast<std::int8_t>(static_cast<int>(i) * 7 - 127);
    add_scaled(sum, codes.data(), 0.5F, GetParam());
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(sum[i], 1.0F + static_cast<float>(codes[i]) * 0.5F);
  }
}

TEST(TruncatedSvd, ItFindsTheVectorsThatTheMatrixWasMadeOf) {
  // 3·u1·v1ᵀ + 2·u2·v2ᵀ with unit vectors at right angles, as "sparse" rows.
  const double u[2][3] = {{0.6, 0.8, 0}, {0, 0, 1}};
  const double v[2][4] = {{0.5, 0.5, 0.5, 0.5}, {0.5, -0.5, -0.5, 0.5}};
  SparseRows matrix;
  matrix.columns = 4;
  for (int r = 0; r < 3; ++r) {
    for (std::uint32_t c = 0; c < 4; ++c) {
      matrix.column.push_back(c);
      matrix.value.push_back(static_cast<float>(3 * u[0][r] * v[0][c] + 2 * u[1][r] * v[1][c]));
    }
    matrix.row_begin.push_back(matrix.value.size());
  }
  const TruncatedSvd svd = truncated_svd(matrix, 4, 1);
  ASSERT_EQ(svd.singular_values.size(), 2U);  // equals the rank
  EXPECT_NEAR(svd.singular_values[0], 3, 1e-5);
  EXPECT_NEAR(svd.singular_values[1], 2, 1e-5);
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(static_cast<double>(svd.right.row(c)[0]), 0.5, 1e-5);
    EXPECT_NEAR(std::abs(static_cast<double>(svd.right.row(c)[1])), 0.5, 1e-5);
  }
}

TEST(TruncatedSvd, TheVectorsAreAtRightAnglesAndCaptureWhatTheyShould) {
  const SparseRows matrix = random_sparse(120, 80, 9);
  const TruncatedSvd svd = truncated_svd(matrix, 80, 1);  // all singular values: the result is exact
  ASSERT_EQ(svd.singular_values.size(), 80U);
  const std::vector<double> products = gram(svd.right);
  double energy = 0, total = 0;
  for (std::size_t i = 0; i < 80; ++i) {
    for (std::size_t j = 0; j < 80; ++j) EXPECT_NEAR(products[i * 80 + j], i == j ? 1 : 0, 1e-5);
    energy += svd.singular_values[i] * svd.singular_values[i];
    EXPECT_GE(svd.singular_values[i == 0 ? 0 : i - 1], svd.singular_values[i]);
  }
  for (const float x : matrix.value) total += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(energy, total, total * 1e-5);
}

TEST(TruncatedSvd, NothingComesOfNothing) {
  EXPECT_TRUE(truncated_svd(SparseRows{}, 8, 1).singular_values.empty());
  SparseRows zeros;
  zeros.columns = 3;
  zeros.row_begin = {0, 0, 0};
  EXPECT_TRUE(truncated_svd(zeros, 8, 1).singular_values.empty());
}

TEST(StableMaths, LogarithmsAreThoseOfTheLibrary) {
  for (double x = 1e-9; x < 1e12; x *= 1.37)
    EXPECT_NEAR(stable_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x))));
  EXPECT_EQ(stable_log(1), 0);
}

}  // namespace
}  // namespace muniment::retrieval
