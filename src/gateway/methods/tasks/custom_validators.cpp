// Runs the custom validators of the completion policy.
#include "gateway/methods/tasks/custom_validators.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "gateway/services.hpp"
#include "retrieval/hooks/hook_process.hpp"

namespace muniment::gateway::methods {
namespace {

namespace completion = evidence::completion;

std::string request_json(const completion::Task& task, std::span<const completion::Piece> pieces,
                         const completion::Judgement& judgement) {
  json::Writer out;
  out.begin_object().key("task").begin_object().member("content", task.content);
  if (!task.task_id.empty()) out.member("task_id", task.task_id);
  if (!task.type.empty()) out.member("type", task.type);
  if (!task.actor.empty()) out.member("actor", task.actor);
  out.end_object().key("evidence").begin_array();
  for (const completion::Piece& piece : pieces) {
    out.begin_object().member("evidence_id", piece.evidence_id).member("type", piece.type);
    out.member("actor", piece.actor).member("created_at", format_time(piece.recorded_at));
    if (!piece.validator_id.empty()) out.member("validator_id", piece.validator_id);
    if (!piece.content.empty()) out.raw_member("content", piece.content);
    out.member("text", piece.text).end_object();
  }
  out.end_array().member("verdict", completion::name_of(judgement.verdict));
  return std::move(out.end_object()).text();
}

completion::Finding finding_of(const char* code, completion::Verdict verdict, std::string text) {
  return {.check = "custom", .code = code, .verdict = verdict, .text = std::move(text)};
}

// Returns nullopt if the validator admits the completion.
std::optional<completion::Finding> ask(const completion::Validator& validator, std::string_view request,
                                       Deadline deadline) {
  const retrieval::HookCommand command{"validator " + validator.name, validator.argv, validator.limit};
  const auto answer = retrieval::run_hook(command, request, deadline);
  if (!answer)
    return finding_of("validator_failed", completion::Verdict::inconclusive,
                      fmt::format("validator {}: {}", validator.name, answer.error().message));
  const auto document = json::parse(std::string_view(*answer));
  const auto can_complete = document ? document->root()["can_complete"].as_bool() : std::nullopt;
  if (!can_complete)
    return finding_of(
        "validator_failed", completion::Verdict::inconclusive,
        fmt::format("validator {}: expected {{\"can_complete\": true or false, \"reason\": text}}", validator.name));
  if (*can_complete) return std::nullopt;
  return finding_of("validator_refused", completion::Verdict::fail,
                    fmt::format("validator {}: {}", validator.name,
                                preview(document->root()["reason"].string_or("refused without a reason"),
                                        limits::validator_reason_bytes_max)));
}

}  // namespace

Status ask_custom_validators(const Call& call, const completion::Task& task, std::span<const completion::Piece> pieces,
                             const completion::Policy& policy, completion::Judgement& judgement) {
  if (policy.validators.empty()) return success();
  const WorkerSlot running(call.services.validator_runs);
  RETURN_IF_ERROR(running.admitted("requests already run validators of the completion policy"));
  const std::string request = request_json(task, pieces, judgement);
  for (const std::string& name : policy.validators) {
    const completion::Validator* const validator = call.services.policies.validator(name);
    if (validator == nullptr) continue;  // Policies::parse refuses unknown names
    if (auto refused = ask(*validator, request, call.deadline)) {
      completion::refuse(judgement, *std::move(refused));
      break;
    }
  }
  return success();
}

}  // namespace muniment::gateway::methods
