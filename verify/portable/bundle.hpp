// Verifies a bundle (one run with its rows and files) from one file and a key, without a server.
#pragma once

#include <string>
#include <vector>

#include "verify/verify.hpp"

namespace muniment::verify {

struct BundleOptions {
  std::string bundle;
  std::vector<std::string> keys;  // files of vkeys
  std::function<void(const char* doing, std::int64_t done, std::int64_t of)> progress;
};

Report verify_bundle(const BundleOptions& options);

}  // namespace muniment::verify
