// The sanitiser with a corpus, for `scripts/bench sanitiser`:
//
//   sanitiser_bench cases < CASES.jsonl      reads {"text", …} and writes its findings, one array of a line each
//   sanitiser_bench speed THREADS SECONDS FILE …      writes {"mb_per_s", …} for the concatenated files
//   sanitiser_bench canaries SEED COUNT QUESTIONS   writes how many of COUNT questions with a canary leave, and leak,
//   by setting sanitiser_bench questions QUESTIONS WORDS         writes how many honest questions leave if the corpora
//   hold these words sanitiser_bench start REPEATS            writes {"first_us"}, the median time to make one and
//   search a line
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.hpp"
#include "bridge/question.hpp"
#include "bridge/sanitiser.hpp"
#include "support/question_canaries.hpp"

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

std::vector<std::string> lines_of(const char* path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

using Words = std::set<std::string, std::less<>>;

auto make(const std::string& query, const Words& corpora, bridge::PrivateTerms terms) {
  static bridge::Sanitiser sanitiser(bridge::Scope::outbound);
  const auto frequency = [&](std::string_view word) -> Result<std::size_t> { return corpora.count(word); };
  return bridge::make_question(query, sanitiser, frequency, terms);
}

void canaries(unsigned long seed, std::size_t count, const char* path) {
  const auto questions = lines_of(path);
  json::Writer out;
  out.begin_object();
  for (const auto terms : {bridge::PrivateTerms::refuse, bridge::PrivateTerms::replace}) {
    std::mt19937_64 random(seed);
    std::int64_t leaves = 0, leaked = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const testing::CanaryQuestion canary = testing::make_canary(random, questions);
      const auto made = make(canary.query, {canary.words.begin(), canary.words.end()}, terms);
      const auto* question = std::get_if<bridge::Question>(&made);
      if (question == nullptr) continue;
      ++leaves;
      if (!testing::leaks(canary, question->text)) continue;
      ++leaked;
      std::fprintf(stderr, "leak (%s, %s): %s -> %s\n", canary.kind.c_str(), canary.how.c_str(), canary.query.c_str(),
                   question->text.c_str());
    }
    const std::string name = terms == bridge::PrivateTerms::refuse ? "refuse" : "replace";
    out.member(name, leaves).member(name + "_leaked", leaked);
  }
  std::printf("%s\n", out.end_object().text().c_str());
}

void questions(const char* path, const char* words) {
  const auto lines = lines_of(words);
  const Words corpora(lines.begin(), lines.end());
  std::int64_t leave = 0, all = 0;
  for (const std::string& query : lines_of(path)) {
    const auto made = make(query, corpora, bridge::PrivateTerms::refuse);
    ++all;
    leave += std::holds_alternative<bridge::Question>(made) ? 1 : 0;
    if (const auto* refusal = std::get_if<bridge::QuestionRefusal>(&made))
      std::fprintf(stderr, "refused (%s): %s\n", refusal->detail.c_str(), query.c_str());
  }
  std::printf("{\"questions\":%lld,\"leave\":%lld}\n", static_cast<long long>(all), static_cast<long long>(leave));
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "cases" && count == 2) {
    cases();
  } else if (mode == "canaries" && count == 5) {
    canaries(std::strtoul(arguments[2], nullptr, 10), std::strtoul(arguments[3], nullptr, 10), arguments[4]);
  } else if (mode == "questions" && count == 4) {
    questions(arguments[2], arguments[3]);
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
    std::fprintf(
        stderr,
        "usage: sanitiser_bench cases | canaries SEED COUNT QUESTIONS | questions QUESTIONS WORDS | start REPEATS | speed THREADS SECONDS FILE …\n");
    return 1;
  }
}
