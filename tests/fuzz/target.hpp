// Fuzz targets: parsers of bytes that an attacker may have chosen. For any input, a target must neither crash nor
// violate an invariant that it asserts; its seeds are inputs that it accepts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::fuzz {

struct Target {
  const char* name;
  std::function<void(const std::string&)> try_one;
  std::vector<std::string> seeds;
};

std::vector<Target> base_targets();
std::vector<Target> bridge_targets();
std::vector<Target> capsule_targets();
std::vector<Target> verify_targets();
std::vector<Target> daemon_targets();
std::vector<Target> http_targets();
std::vector<Target> import_targets();
std::vector<Target> mcp_record_targets();
std::vector<Target> mcp_targets();
std::vector<Target> reports_targets();
std::vector<Target> retrieval_targets();
std::vector<Target> retrieval_text_targets();
std::vector<Target> all_targets();

// Returns a file of tests/golden. Aborts if it is missing: without its seeds, a fuzzer reaches little code.
std::string golden(const std::string& name);

// Returns the first line without its newline.
inline std::string text_of_first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// Writes the bytes to an anonymous file and calls `use` with its path.
void with_file(const std::string& bytes, const std::function<void(const std::string& path)>& use);

}  // namespace muniment::fuzz
