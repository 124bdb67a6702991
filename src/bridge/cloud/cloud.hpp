// The cloud service of a daemon: its settings, its limits, the sanitiser of its questions, and the questions that
// callers of `ask` have taken to call a service by themselves.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "bridge/cloud/call_gate.hpp"
#include "bridge/cloud/provider.hpp"
#include "bridge/local_rules.hpp"
#include "bridge/question.hpp"
#include "bridge/sanitiser.hpp"

namespace muniment::bridge {

// Provider of the calls that a caller makes with a command of its own.
inline constexpr std::string_view command_provider = "command";

struct CloudSettings {
  std::string url;  // https; empty: none
  std::string provider;
  std::string model;
  std::string ca_file;  // certificates that may sign the server's
  std::string folder;   // may hold .env with the key
  double below = 0;     // asked if the local confidence is lower
  std::int64_t timeout_ms = 0;
  PrivateTerms private_terms = PrivateTerms::refuse;
  GateLimits limits;
};

// A question that a caller took, with its place in the log.
struct TakenQuestion {
  std::string actor;
  std::string run_id;
  std::string step_id;
  std::string branch;
  std::string prompt;
  std::string template_id;
  std::int64_t asked_seq = -1;
  Monotonic asked;
};

// Any thread.
class Cloud {
 public:
  // Errors: those of reading the certificates, and of Sanitiser::use.
  static Result<std::unique_ptr<Cloud>> open(CloudSettings settings, const LocalRules& local);

  const CloudSettings settings;
  const std::string ca_pem;
  CallGate gate;
  std::mutex counting;   // guards counted
  bool counted = false;  // the calls of earlier processes are in the gate

  std::variant<Question, QuestionRefusal> question(std::string_view query, const CorpusFrequency& frequency);
  SafeReply safe(std::string reply);

  // Returns false if limits::cloud_questions_open_max callers have not replied yet.
  bool hand_out(const Uuid& call_id, TakenQuestion question);
  // Returns nullopt if the call is unknown, belongs to another caller, was ended, or is too old.
  std::optional<TakenQuestion> take_back(const Uuid& call_id, const std::string& actor, Monotonic now);

 private:
  Cloud(CloudSettings from, std::string pem);

  std::mutex sanitiser_mutex_;  // guards sanitiser_
  Sanitiser sanitiser_{Scope::outbound};
  std::mutex taken_mutex_;  // guards taken_
  std::map<std::string, TakenQuestion> taken_;
};

}  // namespace muniment::bridge
