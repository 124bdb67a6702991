// What the fuzzers try: parsers that read bytes which somebody hostile may have chosen. A target must neither crash nor
// break a promise that it asserts, whatever it is given; its seeds are what it accepts.
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

// A file of tests/golden. Aborts when it is not there: a fuzzer without its seeds tries little.
std::string golden(const std::string& name);

// Without its end.
inline std::string text_of_first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// The bytes as a file that has no name on any disk; `use` gets its path.
void with_file(const std::string& bytes, const std::function<void(const std::string& path)>& use);

}  // namespace muniment::fuzz
