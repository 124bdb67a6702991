// The leading right singular vectors of a sparse matrix, by randomised subspace iteration (Halko, Martinsson, Tropp
// 2011, algorithm 4.4 on Aᵀ). A function of the matrix, the rank and the seed, to the last bit: signs and order are
// fixed.
#pragma once

#include <cstdint>
#include <vector>

#include "retrieval/embed/kernels.hpp"

namespace muniment::retrieval {

struct TruncatedSvd {
  std::vector<double> singular_values;  // the largest first; no zeros
  Matrix right;                         // columns of the matrix × as many; the largest entry of each is positive
};

// At most `rank` of them: fewer when the matrix has no more.
TruncatedSvd truncated_svd(const SparseRows& matrix, std::size_t rank, std::uint64_t seed);

}  // namespace muniment::retrieval
