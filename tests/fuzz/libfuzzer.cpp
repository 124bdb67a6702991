// Entry point for libFuzzer with the same targets. MUNIMENT_FUZZ names the target; its seeds are written into the
// corpus folder, the first argument that is not an option.
#include <fstream>

#include "fuzz/target.hpp"

namespace {

const muniment::fuzz::Target& chosen() {
  static const muniment::fuzz::Target target = [] {
    const char* const name = std::getenv("MUNIMENT_FUZZ");
    for (const auto& one : muniment::fuzz::all_targets()) {
      if (name != nullptr && std::string_view(one.name) == name) return one;
    }
    std::fprintf(stderr, "MUNIMENT_FUZZ: one of");
    for (const auto& one : muniment::fuzz::all_targets()) std::fprintf(stderr, " %s", one.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }();
  return target;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string folder((*argv)[i]);
    if (folder.starts_with('-')) continue;
    for (std::size_t n = 0; n < chosen().seeds.size(); ++n) {
      std::ofstream(folder + "/seed-" + std::to_string(n), std::ios::binary) << chosen().seeds[n];
    }
    break;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  chosen().try_one(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
