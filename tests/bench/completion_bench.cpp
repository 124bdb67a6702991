// The completion gate with the corpus of tests/data/completion, and the time of a judgement.
//
//   completion_bench cases FOLDER LOGS   a JSON line for each class, and one for each wrong judgement
//   completion_bench latency FOLDER      a JSON line for each size of evidence
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "support/completion_cases.hpp"

namespace {

using namespace muniment;
using test::CompletionCase;
using test::CompletionScore;

constexpr std::size_t rounds = 2'000;
constexpr std::size_t large_piece_bytes = 16 * 1024;
constexpr std::size_t large_pieces = 10;

void print_score(const std::string& name, std::string_view half, const CompletionScore& score) {
  const int blocked = score.cheats_blocked + score.honest_blocked;
  json::Writer out;
  out.begin_object().member("class", name).member("half", half);
  out.member("cases", score.honest + score.cheats).member("blocked", blocked);
  out.member("honest", score.honest).member("honest_blocked", score.honest_blocked);
  out.member("cheats", score.cheats).member("cheats_blocked", score.cheats_blocked);
  out.member("precision", blocked == 0 ? 1.0 : static_cast<double>(score.cheats_blocked) / blocked);
  out.member("recall", score.recall()).member("false_blocks", score.false_blocks());
  std::puts(std::move(out.end_object()).text().c_str());
}

void print_wrong(const CompletionCase& one, const evidence::completion::Judgement& judgement) {
  json::Writer out;
  out.begin_object().member("wrong", one.complete ? "false block" : "missed cheat").member("name", one.name);
  out.member("half", one.half).member("verdict", name_of(judgement.verdict));
  std::vector<std::string> codes;
  for (const auto& finding : judgement.findings) {
    codes.push_back(std::string(finding.code) + (finding.blocks ? "" : " (noted)"));
  }
  out.member("codes", codes);
  out.member("reason", judgement.reason);
  std::puts(std::move(out.end_object()).text().c_str());
}

int cases(const std::string& folder, const std::string& logs) {
  auto all = test::read_completion_cases(folder);
  for (CompletionCase& one : test::read_swe_logs(logs)) all.push_back(std::move(one));
  std::map<std::string, std::map<std::string, CompletionScore>> by_half;  // half → class → score
  for (const CompletionCase& one : all) {
    const auto judgement = judge_case(one);
    for (const std::string& half : {std::string("all"), one.half}) {
      by_half[half][one.kind].add(one, !judgement.can_complete);
      by_half[half]["overall"].add(one, !judgement.can_complete);
    }
    if (judgement.can_complete != one.complete) print_wrong(one, judgement);
  }
  for (const auto& [half, classes] : by_half) {
    for (const auto& [name, score] : classes) print_score(name, half, score);
  }
  return 0;
}

// Returns the microseconds of one judgement, a value for each round.
std::vector<double> time_rounds(const std::vector<const CompletionCase*>& in_turn) {
  std::vector<double> micros;
  for (std::size_t round = 0; round < rounds; ++round) {
    const CompletionCase& one = *in_turn[round % in_turn.size()];
    const auto began = std::chrono::steady_clock::now();
    const auto judgement = judge_case(one);
    const auto ended = std::chrono::steady_clock::now();
    if (judgement.evidence_status.size() != one.pieces.size()) std::abort();
    micros.push_back(std::chrono::duration<double, std::micro>(ended - began).count());
  }
  std::ranges::sort(micros);
  return micros;
}

void print_latency(std::string_view what, const std::vector<const CompletionCase*>& in_turn) {
  const auto micros = time_rounds(in_turn);
  json::Writer out;
  out.begin_object().member("latency", what);
  out.member("p50_us", micros[micros.size() / 2]).member("p95_us", micros[micros.size() * 95 / 100]);
  std::puts(std::move(out.end_object()).text().c_str());
}

// Ten pieces of 16 KiB, each of which is the concatenated texts of other cases.
CompletionCase large_case(const std::vector<CompletionCase>& all) {
  CompletionCase large;
  large.task = all.front().task;
  std::size_t next = 0;
  for (std::size_t number = 0; number < large_pieces; ++number) {
    evidence::completion::Piece piece = all[number].pieces.front();
    piece.evidence_id = "large-" + std::to_string(number);
    piece.command.reset();
    piece.text.clear();
    while (piece.text.size() < large_piece_bytes) {
      const CompletionCase& source = all[next++ % all.size()];
      if (!source.pieces.empty()) piece.text += source.pieces.front().text + '\n';
    }
    piece.text.resize(large_piece_bytes);
    piece.content.clear();
    large.pieces.push_back(std::move(piece));
  }
  return large;
}

int latency(const std::string& folder) {
  std::vector<CompletionCase> honest;
  for (CompletionCase& one : test::read_completion_cases(folder)) {
    if (one.complete && one.pieces.size() == 1) honest.push_back(std::move(one));
  }
  std::vector<const CompletionCase*> in_turn;
  in_turn.reserve(honest.size());
  for (const CompletionCase& one : honest) in_turn.push_back(&one);
  print_latency("one typical piece", in_turn);
  const CompletionCase large = large_case(honest);
  print_latency("ten pieces of 16 KiB", {&large});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "cases") return cases(words[1], words[2]);
    if (words.size() == 2 && words[0] == "latency") return latency(words[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "completion_bench: %s\n", error.what());
    return 1;
  }
  std::fputs("usage: completion_bench cases FOLDER LOGS | latency FOLDER\n", stderr);
  return 2;
}
