// Asks cloud services for `ask`, and takes the replies of callers that ask one by themselves (cloud.answer).
//
// The log comes first: cloud.asked is committed before the name of the service is resolved. A worker therefore waits
// for commits here; limits::cloud_calls_at_once_max bounds how many do. cloud.refused is recorded with the answer.
#include "gateway/methods/knowledge/cloud.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/text.hpp"
#include "bridge/cloud/cloud.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

using std::chrono::milliseconds;

// Passages that are looked up for a word of a question.
constexpr std::size_t word_passages_max = 20;
// Part of the request's deadline for storing the reply, and for the record of the answer.
constexpr milliseconds store_reserve{2'000};
constexpr int store_attempts_max = 3;
constexpr std::chrono::hours budget_window{24};
// Begin and end of the calls of two providers, the service and callers' commands.
constexpr std::size_t earlier_events_max = 4 * limits::cloud_calls_day_max;
// Time for a call without which none is made.
constexpr milliseconds call_time_min{500};

// A call in progress.
struct CloudCall {
  Call& call;
  std::shared_ptr<store::Run> run;
  std::string step_id;
  std::string branch;
  bool by_caller = false;
  Uuid id;
  std::string provider;
  std::string model;
  Monotonic began{};
};

json::Writer body_begun(const CloudCall& of) {
  json::Writer out;
  out.begin_object().member("id", of.id.text()).member("provider", of.provider);
  if (!of.model.empty()) out.member("model", of.model);
  out.member("by", of.by_caller ? "caller" : "daemon");
  if (!of.branch.empty()) out.member("branch", of.branch);
  return out;
}

// Appends an event of the call and waits for its commit. Errors: those of the append.
Result<std::int64_t> record(const CloudCall& of, std::string_view type, json::Writer body) {
  Call& call = of.call;
  RETURN_IF_ERROR(call.begin_writing());
  store::AppendRequest request;
  request.actor = call.caller.actor;
  events::NewEvent event = make_event(call, *of.run, type, std::move(body.end_object()).text(), of.step_id);
  const bool of_caller = of.by_caller && (type == "cloud.answered" || type == "cloud.failed");
  if (of_caller && event.origin == events::Origin::observed) event.origin = events::Origin::reported;
  request.events.push_back({of.run, std::move(event), false});
  const bool begins = type == "cloud.asked";
  const auto left = std::chrono::duration_cast<milliseconds>(call.deadline - std::chrono::steady_clock::now());
  // The end of a call is recorded even if the request was answered meanwhile.
  const milliseconds patience =
      begins ? std::min(left, milliseconds(limits::cloud_record_ms)) : milliseconds(limits::cloud_record_ms);
  ASSIGN_OR_RETURN(const auto receipts, store::append_and_wait(call.services.appender, std::move(request),
                                                               std::max(patience, milliseconds(1))));
  call.has_written();
  return receipts.front().seq;
}

// Counts the calls that earlier processes made within the time of the budget, once and before the first call of this
// process. Errors: those of reading the log.
Status count_earlier(Call& call, bridge::Cloud& cloud) {
  const std::lock_guard lock(cloud.counting);
  if (cloud.counted) return success();
  store::EventFilter filter;
  filter.types = {"cloud.asked", "cloud.answered", "cloud.failed"};
  filter.newest_first = true;  // the end of a call precedes its begin
  const Time now = call.services.clock.now();
  filter.since = Time{now.micros - std::chrono::microseconds(budget_window).count()};
  ASSIGN_OR_RETURN(const auto events, call.reader->events(filter, earlier_events_max));
  std::map<std::string, std::int64_t> received;
  for (const events::Event& event : events) {
    const auto parsed = json::parse(event.body ? std::string_view(*event.body) : "{}");
    if (!parsed) continue;
    const json::Value body = parsed->root();
    std::int64_t& bytes = received[body["id"].string_or("")];
    bytes += body["response_bytes"].as_int().value_or(0) + body["prompt_bytes"].as_int().value_or(0);
    if (event.type != "cloud.asked") continue;
    cloud.gate.count(
        body["provider"].string_or(""), static_cast<std::size_t>(bytes),
        call.services.clock.monotonic() - std::chrono::microseconds(now.micros - event.recorded_at.micros));
  }
  cloud.counted = true;
  return success();
}

// Returns how many passages of the caller's corpora have the word. Replies of cloud services do not count.
Result<std::size_t> passages_with(Call& call, std::string_view word) {
  ASSIGN_OR_RETURN(retrieval::Scope scope, scope_of(call));
  std::erase(scope.corpora, cloud_corpus);
  if (scope.corpora.empty()) return std::size_t{0};
  retrieval::Question question;
  question.text = '"' + std::string(word) + '"';
  question.mode = retrieval::Mode::lexical;
  question.top_k = word_passages_max;
  const retrieval::Retriever& retriever = call.services.retrieval.retriever();
  ASSIGN_OR_RETURN(const auto plan, retriever.plan(question, scope, *call.reader, call.services.tail, call.deadline));
  ASSIGN_OR_RETURN(const retrieval::Answer found, retriever.answer(plan, *call.reader, call.deadline));
  return found.cards.size();
}

// Stores a text in the corpus cloud, as corpus.ingest does. Returns the pointer to it.
Result<std::string> store_reply(const CloudCall& of, const std::string& prompt_hash, const std::string& text) {
  json::Writer params;
  params.begin_object().member("corpus", cloud_corpus).key("documents").begin_array().begin_object();
  params.member("id", prompt_hash.substr(0, 16)).member("title", "Reply of " + of.provider).member("text", text);
  params.member("mime_type", "text/plain").member("trust", "untrusted").member("source", "cloud://" + of.provider);
  params.end_object().end_array();
  const std::string request = std::move(params.end_object()).text();
  ASSIGN_OR_RETURN(const json::Document parsed, json::parse(std::string_view(request)));
  Error last;
  for (int attempt = 0; attempt < store_attempts_max; ++attempt) {
    Call call{.caller = of.call.caller,
              .params = parsed.root(),
              .services = of.call.services,
              .reader = of.call.reader,
              .deadline = of.call.deadline,
              .idempotency_key = {}};
    ASSIGN_OR_RETURN(Answer answer, ingest_documents(call));
    Reply reply;
    if (auto* const append = std::get_if<PendingAppend>(&answer)) {
      append->request.erasures_seen = call.erasures_seen;
      auto receipts = store::append_and_wait(call.services.appender, std::move(append->request),
                                             milliseconds(limits::cloud_record_ms));
      if (!receipts) {
        last = receipts.error();
        if (append->refused && last.outcome.empty()) append->refused(call.services, last).ok();
        if (!store::is_requeued(last)) return last;
        continue;
      }
      ASSIGN_OR_RETURN(reply, append->finish(call.services, *receipts));
    } else if (auto* const unchanged = std::get_if<Reply>(&answer)) {
      reply = std::move(*unchanged);
    }
    ASSIGN_OR_RETURN(const json::Document stored, json::parse(std::string_view(reply.result)));
    for (const json::Value error : stored.root()["errors"])
      return Error(Errc::unavailable, error["message"].string_or(""));
    for (const json::Value document : stored.root()["documents"]) return document["uri"].string_or("");
    return Error(Errc::system_error, "corpus.ingest returned no document");
  }
  return last;
}

struct Failure {
  std::string reason;
  std::string message;
  int status = 0;
};

// Records a failed call.
void fail(const CloudCall& of, const Failure& why, const std::string* body, CloudOutcome& outcome) {
  json::Writer out = body_begun(of);
  out.member("reason", why.reason);
  if (why.status > 0) out.member("status", why.status);
  if (body != nullptr) out.member("response_hash", to_hex(sha256(*body))).member("response_bytes", body->size());
  out.member("duration_us", of.call.services.clock.micros_since(of.began));
  const auto recorded = record(of, "cloud.failed", std::move(out));
  if (!recorded) log_error("the failure of a cloud call is not recorded", {{"error", recorded.error().message}});
  outcome.reason = why.reason;
  outcome.message = why.message;
}

// Stores a reply and records it. `received` are the bytes that came, `text` is the reply in them.
void accept(const CloudCall& of, bridge::Cloud& cloud, const std::string& received, std::string text,
            CloudOutcome& outcome) {
  const bridge::SafeReply safe = cloud.safe(std::move(text));
  CloudReply reply{
      .text = safe.text, .pointer = {}, .response_hash = to_hex(sha256(received)), .redactions = safe.redactions};
  auto stored = store_reply(of, outcome.prompt_hash, safe.text);
  if (stored) {
    reply.pointer = *std::move(stored);
  } else {
    outcome.degraded = preview("cloud: the reply is not stored: " + stored.error().message, limits::preview_bytes_max);
  }
  json::Writer out = body_begun(of);
  out.member("response_hash", reply.response_hash).member("response_bytes", received.size());
  out.member("duration_us", of.call.services.clock.micros_since(of.began)).member("redactions", safe.redactions);
  if (!reply.pointer.empty()) out.member("pointer", reply.pointer);
  auto recorded = record(of, "cloud.answered", std::move(out));
  if (!recorded) {
    outcome.reason = "not_recorded";
    outcome.message = "the reply cannot be recorded, so that it is not used: " + recorded.error().message;
    return;
  }
  reply.seq = *recorded;
  outcome.reply = std::move(reply);
}

Failure failure_of(const Error& error) {
  const std::string_view reason = error.code == Errc::deadline_exceeded ? "timeout"
                                  : error.code == Errc::denied          ? "certificate"
                                  : error.code == Errc::too_large       ? "too_large"
                                                                        : "unreachable";
  return {std::string(reason), error.message};
}

// Makes the call in a child, and records its end.
void make_call(const CloudCall& of, bridge::Cloud& cloud, const bridge::ApiKey& key, CloudOutcome& outcome) {
  const bridge::ProviderCall request{bridge::api_url(cloud.settings.url),
                                     bridge::request_body(of.model, outcome.prompt), cloud.ca_pem};
  const Deadline deadline = std::min(std::chrono::steady_clock::now() + milliseconds(cloud.settings.timeout_ms),
                                     of.call.deadline - store_reserve);
  const auto answer = bridge::call_provider(request, key, deadline);
  const auto end = [&](bool succeeded) {
    cloud.gate.ended(of.provider, succeeded, answer ? answer->body.size() : 0, of.call.services.clock.monotonic());
  };
  std::optional<Failure> failed;
  if (!answer) {
    end(false);
    return fail(of, failure_of(answer.error()), nullptr, outcome);
  }
  if (answer->status >= 300 && answer->status < 400) {
    failed = {"redirected", "the service redirects to another address; redirects are not followed", answer->status};
  } else if (answer->status != 200) {
    failed = {"http_status", fmt::format("the service answered with the HTTP status {}", answer->status),
              answer->status};
  }
  std::string text;
  if (!failed) {
    auto read = bridge::text_of_reply(answer->body);
    if (!read) {
      failed = {read.error().code == Errc::too_large ? "too_large" : "not_a_reply", read.error().message, 200};
    } else if (read->find(outcome.prompt) != std::string::npos && read->size() < 2 * outcome.prompt.size()) {
      failed = {"echoed", "the service returned the question instead of an answer", 200};
    } else {
      text = *std::move(read);
    }
  }
  end(!failed);
  if (failed) return fail(of, *failed, &answer->body, outcome);
  accept(of, cloud, answer->body, std::move(text), outcome);
}

json::Writer asked_body(const CloudCall& of, const CloudWish& wish, const CloudOutcome& outcome,
                        const std::vector<std::string>& rules) {
  json::Writer out = body_begun(of);
  out.member("question_id", wish.question_id.text()).member("confidence", wish.confidence);
  if (!outcome.template_id.empty()) out.member("template", outcome.template_id);
  if (!rules.empty()) out.member("rules", rules);
  if (!outcome.prompt.empty())
    out.member("prompt_hash", outcome.prompt_hash).member("prompt_bytes", outcome.prompt.size());
  return out;
}

// Makes the question and checks the limits. Returns the reason against the call in `outcome`, and the rules that fired.
std::vector<std::string> prepare(CloudCall& of, bridge::Cloud& cloud, const CloudWish& wish, const Status& slot,
                                 std::optional<bridge::ApiKey>& key, CloudOutcome& outcome) {
  Call& call = of.call;
  const auto refuse = [&](std::string reason, std::string message) {
    outcome.reason = std::move(reason);
    outcome.message = std::move(message);
  };
  if (!slot) {
    refuse("busy", slot.error().message);
    return {};
  }
  auto made = cloud.question(wish.query, [&](std::string_view word) { return passages_with(call, word); });
  if (auto* const refusal = std::get_if<bridge::QuestionRefusal>(&made)) {
    refuse(refusal->detail, refusal->message);
    return refusal->rules;
  }
  auto& question = std::get<bridge::Question>(made);
  outcome.prompt = std::move(question.text);
  outcome.prompt_hash = to_hex(sha256(outcome.prompt));
  outcome.template_id = question.template_id;
  std::vector<std::string> rules = std::move(question.rules);
  if (!of.by_caller && call.deadline - store_reserve - call_time_min < std::chrono::steady_clock::now()) {
    refuse("no_time", fmt::format("the request's deadline leaves no time for a call: give it more than {} ms "
                                  "(_meta.deadline_ms)",
                                  (store_reserve + call_time_min).count()));
    return rules;
  }
  if (!of.by_caller) {
    auto read = bridge::read_key(cloud.settings.folder, std::getenv(bridge::key_name.data()));
    if (!read) {
      refuse("no_key", read.error().message);
      return rules;
    }
    key.emplace(*std::move(read));
  }
  if (const Status counted = count_earlier(call, cloud); !counted) {
    refuse("budget_unknown", "the earlier calls cannot be counted: " + counted.error().message);
    return rules;
  }
  const std::string_view over = cloud.gate.admit(of.provider, outcome.prompt.size(), call.services.clock.monotonic());
  if (over.empty()) return rules;
  refuse(std::string(over), over == "breaker" ? fmt::format("{} failed repeatedly; it is tried again within {} s",
                                                            of.provider, limits::cloud_breaker_seconds)
                            : over == "rate"  ? fmt::format("{} calls in a minute are the limit (cloud_rate)",
                                                            cloud.settings.limits.calls_minute)
                                              : "the budget of 24 hours is used up (cloud_calls_day, cloud_bytes_day)");
  return rules;
}

}  // namespace

Result<CloudOutcome> consult_cloud(Call& call, const std::shared_ptr<store::Run>& run, const CloudWish& wish) {
  CloudOutcome outcome;
  bridge::Cloud* const cloud = call.services.cloud;
  if (!wish.allowed) return outcome;
  if (cloud == nullptr || (!wish.by_caller && cloud->settings.url.empty())) {
    outcome.reason = "no_bridge";
    outcome.message = "no cloud service is configured (cloud_url)";
    return outcome;
  }
  if (!wish.always && wish.confidence >= cloud->settings.below) {
    outcome.reason = "confident";
    outcome.message = fmt::format("the local confidence {:.2f} is not below {:.2f} (cloud_below)", wish.confidence,
                                  cloud->settings.below);
    return outcome;
  }
  CloudCall of{.call = call,
               .run = run,
               .step_id = call.params["step_id"].string_or(""),
               .branch = call.params["branch"].string_or(""),
               .by_caller = wish.by_caller,
               .id = make_uuid_v7(call.services.clock.now()),
               .provider = wish.by_caller ? std::string(bridge::command_provider) : cloud->settings.provider,
               .model = wish.by_caller ? "" : cloud->settings.model};
  const WorkerSlot slot(call.services.cloud_calls);
  outcome.provider = of.provider;
  outcome.model = of.model;
  std::optional<bridge::ApiKey> key;
  const auto rules = prepare(of, *cloud, wish, slot.admitted("calls of cloud services are in progress"), key, outcome);
  outcome.call_id = of.id.text();
  json::Writer body = asked_body(of, wish, outcome, rules);
  if (!outcome.reason.empty()) {
    RETURN_IF_ERROR(call.begin_writing());
    outcome.refused_body = std::move(body.member("reason", outcome.reason).end_object()).text();
    return outcome;
  }
  of.began = call.services.clock.monotonic();
  const auto recorded = record(of, "cloud.asked", std::move(body));
  if (!recorded) {
    outcome.reason = "not_recorded";
    outcome.message = "nothing was sent, because the question cannot be recorded: " + recorded.error().message;
    return outcome;
  }
  outcome.asked_seq = *recorded;
  FAILPOINT("cloud.recorded");
  if (!wish.by_caller) {
    make_call(of, *cloud, *key, outcome);
    return outcome;
  }
  const bool room = cloud->hand_out(of.id, {call.caller.actor, run->run_id, of.step_id, of.branch, outcome.prompt,
                                            outcome.template_id, outcome.asked_seq, of.began});
  if (!room)
    fail(of, {"no_answer", "too many callers have not returned the replies to their questions"}, nullptr, outcome);
  return outcome;
}

namespace {

void write_reply(json::Writer& out, const CloudOutcome& outcome) {
  const CloudReply& reply = *outcome.reply;
  out.begin_object().member("n", 1).member("call_id", outcome.call_id).member("provider", outcome.provider);
  if (!outcome.model.empty()) out.member("model", outcome.model);
  out.member("template", outcome.template_id).member("text", reply.text).member("trust", "untrusted");
  if (!reply.pointer.empty()) out.member("pointer", reply.pointer);
  out.member("prompt_hash", outcome.prompt_hash).member("response_hash", reply.response_hash);
  out.member("redactions", reply.redactions);
  if (outcome.asked_seq >= 0) out.member("asked_seq", outcome.asked_seq);
  out.member("answered_seq", reply.seq).end_object();
}

}  // namespace

void write_cloud(json::Writer& out, const CloudOutcome& outcome) {
  out.key("cloud").begin_array();
  if (outcome.reply) write_reply(out, outcome);
  out.end_array();
  if (!outcome.reason.empty()) out.member("cloud_reason", outcome.reason).member("cloud_message", outcome.message);
  if (!outcome.open()) return;
  out.key("cloud_question").begin_object().member("call_id", outcome.call_id).member("prompt", outcome.prompt);
  out.member("template", outcome.template_id).member("prompt_hash", outcome.prompt_hash);
  out.member("asked_seq", outcome.asked_seq).end_object();
}

Result<Answer> cloud_answer(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  bridge::Cloud* const cloud = call.services.cloud;
  std::string response = call.params["response"].string_or("");
  const bool failed = call.params["failed"].as_bool().value_or(false);
  if (call.params["response"].present() == failed)
    return Error(Errc::invalid_argument, "give the response, or failed: true if there is none.");
  const auto id = parse_uuid(call.params["call_id"].string_or(""));
  const auto now = call.services.clock.monotonic();
  auto taken = cloud != nullptr && id ? cloud->take_back(*id, call.caller.actor, now) : std::nullopt;
  if (!taken) {
    return Error(
        Errc::not_found,
        fmt::format("no question of the call {} waits for a reply: it has one, was asked by another caller, or "
                    "is older than {} s. Ask again.",
                    call.params["call_id"].string_or(""), limits::cloud_question_seconds));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run,
                   taken->run_id == log_run_id ? call.services.runs.find(log_run_id) : find_run(call, taken->run_id));
  CloudCall of{call, run,         taken->step_id, taken->branch, true, *id, std::string(bridge::command_provider),
               "",   taken->asked};
  CloudOutcome outcome;
  outcome.call_id = id->text();
  outcome.provider = of.provider;
  outcome.template_id = taken->template_id;
  outcome.asked_seq = taken->asked_seq;
  outcome.prompt = taken->prompt;
  outcome.prompt_hash = to_hex(sha256(taken->prompt));
  const bool empty = response.find_first_not_of(" \t\r\n") == std::string::npos;
  if (failed || empty || response.size() > limits::cloud_text_bytes_max) {
    fail(of,
         failed  ? Failure{"command", "the caller's command failed"}
         : empty ? Failure{"not_a_reply", "the reply has no text"}
                 : Failure{"too_large", fmt::format("the reply has {} bytes, limit {}", response.size(),
                                                    limits::cloud_text_bytes_max)},
         failed ? nullptr : &response, outcome);
  } else if (response.find(taken->prompt) != std::string::npos && response.size() < 2 * taken->prompt.size()) {
    fail(of, {"echoed", "the command returned the question instead of an answer"}, &response, outcome);
  } else {
    accept(of, *cloud, response, response, outcome);
  }
  cloud->gate.ended(of.provider, outcome.reason.empty(), response.size(), now);
  json::Writer out;
  out.begin_object();
  write_cloud(out, outcome);
  if (!outcome.degraded.empty()) out.member("degraded", std::vector<std::string>{outcome.degraded});
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

}  // namespace muniment::gateway::methods
