// The leading right singular vectors of a sparse matrix, by randomised subspace iteration (Halko, Martinsson, Tropp
// 2011, algorithm 4.4 on Aᵀ). The result depends on the matrix, the rank and the seed alone, to the last bit: signs and
// order are fixed.
#pragma once

#include <cstdint>
#include <vector>

#include "retrieval/embed/kernels.hpp"

namespace muniment::retrieval {

struct TruncatedSvd {
  std::vector<double> singular_values;  // largest first; no zeros
  Matrix right;  // columns of the matrix × number of values; the largest entry of each column is positive
};

// Returns at most `rank` vectors; fewer if the matrix has a lower rank.
TruncatedSvd truncated_svd(const SparseRows& matrix, std::size_t rank, std::uint64_t seed);

}  // namespace muniment::retrieval
