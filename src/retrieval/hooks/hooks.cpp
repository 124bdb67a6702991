// Calls the configured hooks and the reranking server.
#include "retrieval/hooks/hooks.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::retrieval {
namespace {

constexpr const char* server_name = "rerank server";

}  // namespace

// Limits the number of workers that wait for external programs. Without a free slot, a query continues without a hook
// instead of queueing behind hooks that may hang.
class Hooks::Slot {
 public:
  explicit Slot(std::atomic<int>& busy)
      : busy_(busy), taken_(busy.fetch_add(1) < static_cast<int>(limits::hooks_at_once_max)) {}
  ~Slot() { busy_.fetch_sub(1); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  Status check(const std::string& name) const {
    if (taken_) return success();
    return Error(Errc::unavailable, fmt::format("{}: {} are already running", name, limits::hooks_at_once_max));
  }

 private:
  std::atomic<int>& busy_;
  const bool taken_;
};

Hooks::Hooks(const HookOptions& options)
    : expansion_{"expansion hook", options.expansion, std::chrono::milliseconds(options.hook_ms)},
      rerank_{"rerank hook", options.rerank, std::chrono::milliseconds(options.hook_ms)},
      expansions_max_(options.expansions_max),
      server_url_(options.rerank_url) {
  if (server_url_.empty()) return;
  HttpRerankerOptions server;
  server.url = options.rerank_url;
  server.key_file = options.rerank_key_file;
  server.timeout_ms = options.rerank_ms;
  auto opened = HttpReranker::open(server);
  if (opened)
    server_ = std::make_unique<HttpReranker>(*std::move(opened));
  else
    server_problem_ = opened.error().message;
}

std::string Hooks::expansion_identity() const { return joined(expansion_.argv, "\n"); }
std::string Hooks::rerank_identity() const { return joined(rerank_.argv, "\n"); }

Result<std::string> Hooks::run(const HookCommand& command, std::string_view input, Deadline deadline) const {
  const Slot slot(busy_);
  RETURN_IF_ERROR(slot.check(command.name));
  auto answer = run_hook(command, input, deadline);
  if (!answer) return std::move(answer).error().within(command.name);
  return answer;
}

Result<ExpansionAnswer> Hooks::expand(const ExpansionRequest& request, Deadline deadline) const {
  ASSIGN_OR_RETURN(const std::string text, run(expansion_, expansion_request_json(request), deadline));
  auto answer = expansion_answer_of(text, request);
  if (!answer) return std::move(answer).error().within(expansion_.name);
  return answer;
}

Result<RerankAnswer> Hooks::rerank(std::string_view query, std::span<const RerankCandidate> candidates,
                                   Deadline deadline) const {
  ASSIGN_OR_RETURN(const std::string text, run(rerank_, rerank_request_json(query, candidates), deadline));
  auto answer = rerank_answer_of(text, candidates);
  if (!answer) return std::move(answer).error().within(rerank_.name);
  return answer;
}

Result<RerankAnswer> Hooks::ask_server(std::string_view query, std::span<const RerankCandidate> candidates) const {
  if (!server_) return Error(Errc::unavailable, fmt::format("{}: {}", server_name, server_problem_));
  const Slot slot(busy_);
  RETURN_IF_ERROR(slot.check(server_name));
  std::vector<std::string_view> texts;
  for (const RerankCandidate& candidate : candidates) texts.push_back(candidate.snippet);
  auto scores = server_->scores(query, texts);
  if (!scores) return std::move(scores).error().within(server_name);
  RerankAnswer answer;
  answer.scores.assign(scores->begin(), scores->end());
  into_unit_range(answer.scores);
  return answer;
}

}  // namespace muniment::retrieval
