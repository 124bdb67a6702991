// Asks a cloud service on behalf of `ask`: makes the question, records it, has it asked, and stores the reply.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gateway/call.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway::methods {

// The corpus of the replies. `ask` does not read it, so that no reply raises a local confidence.
inline constexpr std::string_view cloud_corpus = "cloud";

struct CloudWish {
  Uuid question_id;
  std::string query;
  double confidence = 0;   // of the local answer
  bool allowed = false;    // settings.cloud_allowed
  bool always = false;     // whatever the confidence is
  bool by_caller = false;  // the caller calls a service by itself
};

// A reply, as stored.
struct CloudReply {
  std::string text;
  std::string pointer;  // empty: it is not stored, and `degraded` says why
  std::string response_hash;
  std::int64_t seq = -1;  // of its cloud.answered
  std::size_t redactions = 0;
};

// The end of an attempt to ask. Without a reply, `reason` is set, unless the caller is to make the call.
struct CloudOutcome {
  std::string reason;   // empty: none
  std::string message;  // what failed and what to change
  std::string call_id;  // empty: nothing was made to be sent
  std::string provider, model, template_id, prompt, prompt_hash;
  std::int64_t asked_seq = -1;  // of its cloud.asked; nothing was sent before its commit
  std::optional<CloudReply> reply;
  std::string degraded;
  std::string refused_body;  // of the cloud.refused that is recorded with the answer; empty: none
  bool open() const { return asked_seq >= 0 && reason.empty() && !reply; }
};

// Waits for the commits of its events, except for a refusal, on a worker. Errors: deadline_exceeded if the request was
// answered already.
Result<CloudOutcome> consult_cloud(Call& call, const std::shared_ptr<store::Run>& run, const CloudWish& wish);

// Writes the members `cloud`, and `cloud_reason`, `cloud_message` and `cloud_question` as far as they apply.
void write_cloud(json::Writer& out, const CloudOutcome& outcome);

}  // namespace muniment::gateway::methods
