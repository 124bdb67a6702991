// Compares an agent's claims in a run with the facts that the run's events show. Pure: the gateway reads the events and
// passes them to RunJudge one by one in the order of the log. docs/evidence.md ("Judging a run") describes the rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"

namespace muniment::evidence::run_judge {

inline constexpr std::size_t quote_bytes_max = 200;
inline constexpr std::size_t claims_max = 10'000;         // claims of a run; later ones are counted, not kept
inline constexpr std::size_t text_bytes_max = 256 << 10;  // bytes of a message; the rest is ignored
inline constexpr std::size_t output_bytes_max =
    1 << 20;  // bytes of a tool's or command's output: its beginning and its end

enum class Verdict : std::uint8_t { supported, unsupported, contradicted, inconclusive };
inline constexpr std::size_t verdicts = 4;
std::string_view name_of(Verdict verdict);

struct Ruling {
  Verdict verdict = Verdict::unsupported;
  std::optional<std::int64_t> seq;  // the event that decides
  std::string why;
  bool absent = false;    // no event concerns the claim: decisive if the run records its calls
  bool no_claim = false;  // the sentence tells what a call showed
};

struct Claim {
  std::int64_t seq = 0;   // seq of the event that contains the claim
  std::string quote;      // the sentence, cut at quote_bytes_max
  std::string_view kind;  // "tests_pass"; the table of kinds is in kinds.cpp
  std::string subject;    // a path or the name of a test; empty: the claim names none
  Verdict verdict = Verdict::unsupported;
  std::optional<std::int64_t> evidence_seq;  // the event that decides; nullopt: none
  std::string why;                           // one sentence
};

// Texts of the artifacts to which the event's body refers, by artifact id; artifacts that were not read are absent.
using Spilled = std::map<std::string, std::string, std::less<>>;

// An event of the run. The views must be valid during the call of `add`.
struct Event {
  std::int64_t seq = 0;
  std::string_view type;
  json::Value body;
  Time recorded_at{};
  const Spilled* spilled = nullptr;
};

struct Judgement {
  std::vector<Claim> claims;                    // in the order of the log
  std::array<std::int64_t, verdicts> counts{};  // numbers of all claims, by verdict
  std::int64_t left_out = 0;                    // claims beyond claims_max, in no count
};

// Returns whether events of the type are judged; others have no effect.
bool is_judged(std::string_view type);

// Returns the artifacts whose text `add` reads for an event of this type.
std::vector<Uuid> spilled_artifacts(std::string_view type, const json::Value& body);

class RunJudge {
 public:
  RunJudge();
  ~RunJudge();
  RunJudge(RunJudge&&) noexcept;

  // Events must be added in the order of their seq.
  void add(const Event& event);
  Judgement finish() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muniment::evidence::run_judge
