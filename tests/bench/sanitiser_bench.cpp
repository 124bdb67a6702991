// The sanitiser with a corpus, for `scripts/bench sanitiser`:
//
//   sanitiser_bench cases < CASES.jsonl      reads {"text", …} and writes its findings, one array of a line each
//   sanitiser_bench speed THREADS SECONDS FILE …      writes {"mb_per_s", …} for the concatenated files
//   sanitiser_bench start REPEATS            writes {"first_us"}, the median time to make one and search a line
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.hpp"
#include "bridge/sanitiser.hpp"

namespace {

using namespace muniment;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void cases() {
  bridge::Sanitiser sanitiser(bridge::Scope::outbound);
  for (std::string line; std::getline(std::cin, line);) {
    const auto document = json::parse(std::string_view(line));
    if (!document) {
      std::fprintf(stderr, "sanitiser_bench: %s\n", document.error().message.c_str());
      std::exit(1);
    }
    const std::string text = document->root()["text"].string_or("");
    json::Writer out;
    out.begin_array();
    for (const bridge::Finding& finding : sanitiser.find(text)) {
      out.begin_object().member("rule", finding.rule).member("category", finding.category);
      out.member("begin", finding.offset).member("end", finding.offset + finding.length).end_object();
    }
    std::printf("%s\n", out.end_array().text().c_str());
  }
}

// Each thread searches the text in pieces of 64 KiB until the time is over.
void speed(std::size_t threads, double seconds, const std::string& text) {
  constexpr std::size_t piece = 64 << 10;
  std::vector<std::size_t> bytes(threads);
  std::vector<std::thread> workers;
  const double processor_before = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  const auto start = Clock::now();
  for (std::size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      bridge::Sanitiser sanitiser(bridge::Scope::outbound);
      for (std::size_t at = i * piece; seconds_since(start) < seconds; at += piece) {
        at %= text.size();
        const std::string_view part = std::string_view(text).substr(at, piece);
        sanitiser.find(part);
        bytes[i] += part.size();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::size_t sum = 0;
  for (const std::size_t one : bytes) sum += one;
  // On a busy machine, the time of the processor shows the throughput better than the clock on the wall.
  const double processor = static_cast<double>(std::clock()) / CLOCKS_PER_SEC - processor_before;
  std::printf("{\"mb_per_s\":%.1f,\"mb_per_processor_s\":%.1f,\"megabytes\":%.1f}\n",
              static_cast<double>(sum) / 1e6 / seconds_since(start), static_cast<double>(sum) / 1e6 / processor,
              static_cast<double>(text.size()) / 1e6);
}

void start(std::size_t repeats) {
  std::vector<double> times;
  for (std::size_t i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    bridge::Sanitiser sanitiser(bridge::Scope::output);
    sanitiser.find("export API_TOKEN=abc");
    times.push_back(seconds_since(begin) * 1e6);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"first_us\":%.0f}\n", times[times.size() / 2]);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "cases" && count == 2) {
    cases();
  } else if (mode == "start" && count == 3) {
    start(std::strtoul(arguments[2], nullptr, 10));
  } else if (mode == "speed" && count > 4) {
    std::string text;
    for (int i = 4; i < count; ++i) {
      std::ifstream file(arguments[i], std::ios::binary);
      text.append(std::istreambuf_iterator<char>(file), {});
    }
    speed(std::strtoul(arguments[2], nullptr, 10), std::strtod(arguments[3], nullptr), text);
  } else {
    std::fprintf(stderr, "usage: sanitiser_bench cases | start REPEATS | speed THREADS SECONDS FILE …\n");
    return 1;
  }
}
