// Calls of OpenSSL that must not fail: without its hashes, randomness and signatures nothing that Muniment promises can
// be kept, and no caller could act on the error.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace muniment {

// Ends the process unless `done`. `what` completes "OpenSSL cannot …".
inline void require_openssl(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "OpenSSL cannot %s\n", what);
  std::abort();
}

}  // namespace muniment
