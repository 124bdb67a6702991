// Runs targets without libFuzzer, in any build, on mutations of their seeds. The random generator has a fixed seed, so
// that failures are reproducible. Sanitizers find errors that assertions do not; for libFuzzer, which searches deeper,
// see tests/fuzz/meson.build.
//
//   fuzz [--seconds S] [--seed N] [--input FILE] TARGET…     TARGET: a name or its prefix (default: all targets)
//
// The current input is kept in a file, which remains after a crash.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/target.hpp"

namespace muniment::fuzz {
namespace {

constexpr std::size_t input_bytes_max = 64 * 1024;
constexpr const char* tokens[] = {"\n",
                                  "\n\n",
                                  " ",
                                  "\"",
                                  "{",
                                  "}",
                                  "[",
                                  "]",
                                  ",",
                                  ":",
                                  "/",
                                  "\\",
                                  "\\u0000",
                                  "\\ud800",
                                  "null",
                                  "true",
                                  "-1",
                                  "0",
                                  "1e999",
                                  "-0",
                                  "9223372036854775807",
                                  "9223372036854775808",
                                  "-9223372036854775808",
                                  "18446744073709551615",
                                  "\xff",
                                  "\xc3\x28",
                                  "\xe2\x80\x94 ",
                                  "=",
                                  "+",
                                  "%2f",
                                  "%",
                                  "#",
                                  "..",
                                  "x001",
                                  ".p/",
                                  "~1",
                                  "~0",
                                  "-",
                                  "9999-12-31T23:59:60Z"};
constexpr char edges[] = {'\0', '\x01', '\x7f', '\x80', '\xff', '0', '9', '/'};

class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, std::uint64_t seed) : seeds_(seeds), random_(seed) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (std::size_t changes = std::size_t{1} << below(5); changes > 0; --changes) change(text);
    if (text.size() > input_bytes_max) text.resize(input_bytes_max);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1), length = std::min(text.size() - at, std::size_t{1} << below(10));
    const std::size_t kind = below(9);
    if (kind < 2 && at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
    if (kind == 2 && at < text.size()) text[at] = edges[below(sizeof edges)];
    if (kind == 3) text.erase(at, length);
    if (kind == 4) text.insert(at, text.substr(below(text.size() + 1), length));
    if (kind == 5) text.insert(at, tokens[below(std::size(tokens))]);
    if (kind == 6) text.replace(at, length, tokens[below(std::size(tokens))]);
    if (kind == 7) text.resize(at);
    if (kind == 8) {
      const std::string& other = seeds_[below(seeds_.size())];
      text = text.substr(0, at) + other.substr(below(other.size() + 1));
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_;
};

// Keeps the current input in a mapped file, which outlives the process.
class Kept {
 public:
  explicit Kept(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    require(file_ >= 0, "the input cannot be kept");
  }
  ~Kept() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  void hold(const std::string& input) {
    require(::pwrite(file_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()),
            "the input cannot be kept");
    require(::ftruncate(file_, static_cast<off_t>(input.size())) == 0, "the input cannot be kept");
  }

 private:
  const std::string path_;
  const int file_;
};

void run(const Target& target, double seconds, std::uint64_t seed) {
  const char* const folder = std::getenv("TMPDIR");
  const std::string path =
      std::string(folder ? folder : "/tmp") + "/muniment-fuzz-" + target.name + "-" + std::to_string(::getpid());
  std::printf("%-16s (input: %s) ", target.name, path.c_str());
  std::fflush(stdout);
  Kept kept(path);
  const auto try_one = [&](const std::string& input) {
    kept.hold(input);
    target.try_one(input);
  };
  for (const std::string& one : target.seeds) try_one(one);
  try_one("");
  Mutator mutator(target.seeds, seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t tried = target.seeds.size() + 1;
  for (; std::chrono::steady_clock::now() < end; ++tried) try_one(mutator.next());
  std::printf("%llu executions\n", static_cast<unsigned long long>(tried));
}

int main(int argc, char** argv) {
  double seconds = 2;
  std::uint64_t seed = 1;
  std::string input;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option(argv[i]);
    const bool has_value = option == "--seconds" || option == "--seed" || option == "--input";
    if (has_value && i + 1 == argc) return 2;
    if (option == "--seconds")
      seconds = std::atof(argv[++i]);
    else if (option == "--seed")
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (option == "--input")
      input = argv[++i];
    else
      wanted.emplace_back(option);
  }
  std::size_t ran = 0;
  for (const Target& target : all_targets()) {
    bool is_wanted = wanted.empty();
    for (const std::string& name : wanted) is_wanted = is_wanted || std::string_view(target.name).starts_with(name);
    if (!is_wanted) continue;
    ++ran;
    if (input.empty()) {
      run(target, seconds, seed);
    } else {
      std::ifstream file(input, std::ios::binary);
      target.try_one({std::istreambuf_iterator<char>(file), {}});
    }
  }
  require(ran > 0, "no target has that name");
  return 0;
}

}  // namespace
}  // namespace muniment::fuzz

int main(int argc, char** argv) { return muniment::fuzz::main(argc, argv); }
