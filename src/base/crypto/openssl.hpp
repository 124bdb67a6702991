// Checks OpenSSL calls that must not fail: without hashes, randomness and signatures Muniment can keep none of its
// guarantees, and no caller could handle the error.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace muniment {

// Aborts the process unless `done`. `what` completes "OpenSSL cannot …".
inline void require_openssl(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "OpenSSL cannot %s\n", what);
  std::abort();
}

}  // namespace muniment
