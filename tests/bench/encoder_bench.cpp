// The sentence encoder by itself: passages a second, the time of a query's vector, and the memory of a process with it.
//
//   encoder_bench MODELS_FOLDER TEXTS     TEXTS: a passage a line
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "retrieval/embed/encoder/sentence_encoder.hpp"

namespace {

using namespace muniment;
using namespace muniment::retrieval;

constexpr std::size_t together = 16;  // as the lane does
constexpr std::size_t queries = 300;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "encoder_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

// Processor time of all threads, which does not depend on the machine's other load.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) / 1'024;
  }
  return 0;
}

void encode(Embedder& encoder, const std::vector<std::string>& texts) {
  for (std::size_t begin = 0; begin < texts.size(); begin += together) {
    const std::vector<std::string_view> views(
        texts.begin() + static_cast<std::ptrdiff_t>(begin),
        texts.begin() + static_cast<std::ptrdiff_t>(std::min(texts.size(), begin + together)));
    must(encoder.embed_parts(views));
  }
}

// Returns the median in milliseconds; a query is the first ten words of a passage.
double query_ms(Embedder& encoder, const std::vector<std::string>& texts) {
  std::vector<double> times;
  for (std::size_t i = 0; i < queries; ++i) {
    const std::string& text = texts[i % texts.size()];
    std::size_t end = 0;
    for (int word = 0; word < 10 && end != std::string::npos; ++word) end = text.find(' ', end + 1);
    const std::string_view query = std::string_view(text).substr(0, end);
    const double begin = now();
    must(encoder.embed({&query, 1}, TextKind::query));
    times.push_back((now() - begin) * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + queries / 2, times.end());
  return times[queries / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::string> texts;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) texts.push_back(line);
  const double before_mb = resident_mb();
  const auto encoder = must(open_encoder(argv[1]));
  const WordPiece pieces = must(WordPiece::read(must(read_model(argv[1], default_model())).tokenizer));
  std::size_t tokens = 0;
  for (const std::string& text : texts) tokens += pieces.split(text, 10'000).ids.size() + 2;
  encode(*encoder,
         {texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(texts.size(), 32))});
  const double begin = now(), used_before = processor_seconds();
  encode(*encoder, texts);
  const double seconds = now() - begin, used = processor_seconds() - used_before;
  const double alone = query_ms(*encoder, texts);
  std::atomic<bool> done = false;
  std::thread background([&] {
    while (!done) encode(*encoder, {texts.begin(), texts.begin() + together});
  });
  const double busy = query_ms(*encoder, texts);
  done = true;
  background.join();
  const auto count = static_cast<double>(texts.size());
  std::printf("{\"passages_per_s\":%.1f,\"processor_ms\":%.2f,\"tokens\":%.1f,", count / seconds, used / count * 1e3,
              static_cast<double>(tokens) / count);
  std::printf("\"query_ms\":%.2f,\"busy_query_ms\":%.2f,\"resident_mb\":%.0f}\n", alone, busy,
              resident_mb() - before_mb);
}
