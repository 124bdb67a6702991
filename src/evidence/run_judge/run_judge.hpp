// What an agent claimed in a run, held against what the run's events show. Pure: the gateway reads the events, RunJudge
// is fed them one by one in the order of the log. docs/evidence.md ("Judging a run") describes the rules for users.
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
inline constexpr std::size_t claims_max = 10'000;         // of a run; later ones are counted, not kept
inline constexpr std::size_t text_bytes_max = 256 << 10;  // of a message; the rest holds no claims
inline constexpr std::size_t output_bytes_max = 1 << 20;  // of a tool or a command: its beginning and its end

enum class Verdict : std::uint8_t { supported, unsupported, contradicted, inconclusive };
inline constexpr std::size_t verdicts = 4;
std::string_view name_of(Verdict verdict);

struct Claim {
  std::int64_t seq = 0;   // of the event that holds it
  std::string quote;      // the sentence, cut at quote_bytes_max
  std::string_view kind;  // "tests_pass"; the table of kinds is in kinds.cpp
  std::string subject;    // a path, the name of a test; empty: none is named
  Verdict verdict = Verdict::unsupported;
  std::optional<std::int64_t> evidence_seq;  // the event that decides; nullopt: there is none
  std::string why;                           // one sentence
};

// Texts of the artifacts that the event's body refers to, by artifact id; those that were not read are missing.
using Spilled = std::map<std::string, std::string, std::less<>>;

// An event of the run. The views need to live no longer than the call of `add`.
struct Event {
  std::int64_t seq = 0;
  std::string_view type;
  json::Value body;
  Time recorded_at{};
  const Spilled* spilled = nullptr;
};

struct Judgement {
  std::vector<Claim> claims;                    // in the order of the log
  std::array<std::int64_t, verdicts> counts{};  // by verdict, of all claims
  std::int64_t left_out = 0;                    // claims beyond claims_max, in no count
};

// The types of events that are judged; the others change nothing.
bool is_judged(std::string_view type);

// The artifacts whose text `add` looks for in an event of this type.
std::vector<Uuid> spilled_artifacts(std::string_view type, const json::Value& body);

class RunJudge {
 public:
  RunJudge();
  ~RunJudge();
  RunJudge(RunJudge&&) noexcept;

  // Events in the order of their seq.
  void add(const Event& event);
  Judgement finish() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muniment::evidence::run_judge
