// Records the uses of pointers and artifacts as events.
#include "gateway/read/trace.hpp"

#include <algorithm>
#include <functional>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "base/text.hpp"
#include "gateway/access.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/read/reading.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {
namespace {

std::string body_of(const Use& use, bool in_run, std::string_view members) {
  json::Writer out;
  out.begin_object();
  if (!in_run && use.run) out.member("run_id", use.run->run_id);
  if (!use.branch.empty()) out.member("branch", use.branch);
  std::string body = std::move(out.end_object()).text();
  if (members == "{}") return body;
  body.pop_back();  // removes the closing brace
  if (body.size() > 1) body.push_back(',');
  return body.append(members.substr(1));
}

bool is_open(const Use& use) {
  return use.run && use.run->closed_log == 0 && use.run->run_id != log_run_id &&
         use.run->view().status == store::RunStatus::open;
}

std::string with_run_seq(std::string result, std::int64_t run_seq) {
  result.pop_back();
  return result + (result.size() > 1 ? "," : "") + "\"run_seq\":" + std::to_string(run_seq) + "}";
}

// No request waits for the record; a lost one is counted.
void note_unrecorded() { metrics::process().uses_unrecorded.add(); }

void submit_to_log(Services& services, store::AppendRequest request) {
  request.done = [](const Result<std::vector<events::Receipt>>& result) {
    if (!result) note_unrecorded();
  };
  if (!services.appender.submit(std::move(request))) note_unrecorded();
}

// Called before the reply with the run_seq of the recorded event, or nullopt for an event in _log.
using Recorded = std::function<void(std::optional<std::int64_t> run_seq)>;

store::AppendRequest request_to_log(Call& call, const Use& use, std::string_view type, std::string_view members) {
  const std::shared_ptr<store::Run> log = call.services.runs.find(log_run_id);
  store::AppendRequest request;
  request.actor = call.caller.actor;
  request.patient = true;
  request.events.push_back({log, make_event(call, *log, type, body_of(use, false, members), use.step_id)});
  return request;
}

}  // namespace

Result<Use> use_of(Call& call) {
  Use use;
  if (const auto run_id = call.params["run_id"].as_string()) {
    ASSIGN_OR_RETURN(ReadRun found, find_run_to_read(call, *run_id));
    call.read_log = 0;  // the answer does not come from that log, which has only the run
    use.run = std::move(found.run);
  }
  use.step_id = call.params["step_id"].string_or("");
  use.branch = call.params["branch"].string_or("");
  return use;
}

namespace {

Answer leave(Call& call, const Use& use, std::string_view type, std::string_view members, Reply reply,
             const evidence::Outcome& outcome, const Recorded& recorded) {
  if (!is_open(use)) {
    submit_to_log(call.services, request_to_log(call, use, type, members));
    recorded(std::nullopt);
    if (outcome.events.empty()) return reply;
    return append_outcome(outcome, [reply] { return Result<Reply>(reply); });
  }
  const auto held = std::make_shared<const Reply>(std::move(reply));  // holds up to a MiB of raw bytes
  PendingAppend append = append_outcome(outcome, [held] { return Result<Reply>(*held); });
  append.request.actor = call.caller.actor;
  append.request.events.insert(
      append.request.events.begin(),
      store::Addressed{.run = use.run,
                       .event = make_event(call, *use.run, type, body_of(use, true, members), use.step_id),
                       .if_open = true});
  append.leading_events = append.request.events.size();  // the client sent no ids to retry with; it repeats the request
  // Used if the run accepts no more events, because it ended or stopped while the answer was computed.
  auto instead = std::make_shared<store::AppendRequest>(request_to_log(call, use, type, members));
  const auto left_in_log = [held, instead, recorded](Services& services) {
    submit_to_log(services, std::move(*instead));
    recorded(std::nullopt);
    return *held;
  };
  append.finish = [held, recorded, left_in_log](Services& services,
                                                const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    const events::Receipt& receipt = receipts.front();
    if (receipt.seq < 0) return left_in_log(services);
    recorded(receipt.run_seq);
    return Reply{with_run_seq(held->result, receipt.run_seq), held->raw};
  };
  append.refused = [left_in_log, otherwise = append.refused](Services& services, Error error) -> Result<Reply> {
    if (error.code == Errc::run_halted || error.code == Errc::conflict) return left_in_log(services);
    return otherwise(services, std::move(error));
  };
  return append;
}

// Writes the failed pointers by reason, as a member.
void write_bad(json::Writer& out, const evidence::Outcome& outcome) {
  out.key("bad").begin_object();
  for (const evidence::Reason reason : evidence::reasons) {
    const auto count =
        std::ranges::count(outcome.items, reason, [](const auto& item) { return item.resolution.reason; });
    if (count > 0) out.member(name_of(reason), static_cast<std::int64_t>(count));
  }
  out.end_object();
}

}  // namespace

Answer leave_trace(Call& call, const Use& use, std::string_view type, std::string_view members, Reply reply,
                   const evidence::Outcome& outcome) {
  return leave(call, use, type, members, std::move(reply), outcome, [](std::optional<std::int64_t>) {});
}

std::string looked_at(const evidence::Outcome& outcome, std::optional<std::int64_t> as_of, std::int64_t duration_us) {
  json::Writer out;
  out.begin_object().member("count", outcome.items.size());
  write_bad(out, outcome);
  out.key("pointers").begin_array();
  for (const auto& item : outcome.items) {
    const evidence::Resolution& found = item.resolution;
    const std::string pointer =
        found.parsed ? found.pointer : preview(found.pointer, limits::logged_nonsense_bytes_max);
    if (out.text().size() + json::quote(pointer).size() > limits::logged_pointers_bytes_max) break;
    out.begin_object().member("pointer", pointer);
    if (!found.ok()) out.member("reason", name_of(found.reason));
    out.end_object();
  }
  out.end_array();
  if (as_of) out.member("asof", *as_of);
  return std::move(out.member("duration_us", duration_us).end_object()).text();
}

Answer leave_trace_of_piece(Call& call, const Use& use, const std::string& artifact_id, std::int64_t offset,
                            std::string_view members, Reply reply) {
  const std::shared_ptr<Reading> reading = call.caller.reading;
  const std::string what = artifact_id + "\n" + use.run->run_id + "\n" + use.step_id + "\n" + use.branch;
  if (reading) {
    if (const auto place = reading->goes_on(what, offset)) {
      if (place->run_seq) reply.result = with_run_seq(std::move(reply.result), *place->run_seq);
      return reply;
    }
  }
  return leave(call, use, "artifact.read", members, std::move(reply), {},
               [reading, what, offset](std::optional<std::int64_t> run_seq) {
                 if (reading) reading->begin(what, offset, {run_seq});
               });
}

}  // namespace muniment::gateway
