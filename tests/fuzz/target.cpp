#include "fuzz/target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace muniment::fuzz {

std::vector<Target> all_targets() {
  std::vector<Target> all = base_targets();
  for (auto more :
       {bridge_targets(), capsule_targets(), verify_targets(), daemon_targets(), http_targets(), import_targets(),
        mcp_targets(), mcp_record_targets(), reports_targets(), retrieval_targets(), retrieval_text_targets()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(MUNIMENT_GOLDEN "/") + name, std::ios::binary);
  require(file.good(), name.c_str());
  return {std::istreambuf_iterator<char>(file), {}};
}

void with_file(const std::string& bytes, const std::function<void(const std::string& path)>& use) {
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  require(::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "the file was not written");
  use("/proc/self/fd/" + std::to_string(file));
  ::close(file);
}

}  // namespace muniment::fuzz
