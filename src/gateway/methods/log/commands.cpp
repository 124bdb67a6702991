// command.start and command.end record a command. It is observed if the daemon's executor ran it, which
// command.executor names; otherwise a client reports it. The id of its command.started event identifies the command.
// The id of its end is derived from that id, so that an end that is sent again after an unknown outcome is recorded
// once.
#include <initializer_list>

#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"
#include "store/logs/erasure.hpp"

namespace muniment::gateway::methods {
namespace {

Reply command_reply(const std::string& command_id, std::string_view run_id, const events::Receipt& receipt) {
  json::Writer out;
  out.begin_object().member("command_id", command_id).member("run_id", run_id);
  out.member("seq", receipt.seq).member("run_seq", receipt.run_seq);
  out.raw_member("receipt", receipt_json(receipt)).end_object();
  return {std::move(out).text(), {}};
}

// Copies the parameters `names`, and the client's own, as sent.
void copy_members(json::Writer& out, const json::Value& params, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (const json::Value value = params[name]) out.raw_member(name, value.source());
  }
  for (const json::Value member : params) {
    if (const std::string name = member.key(); name.rfind("x_", 0) == 0) out.raw_member(name, member.source());
  }
}

Status check_size(std::string_view method, const std::string& body) {
  return events::check_body_size(body.size(), std::string(method) + " as an event",
                                 "Shorten argv or env, and keep the rest as an artifact.");
}

Result<Answer> append_command(Call& call, const std::shared_ptr<store::Run>& run, std::string command_id,
                              events::NewEvent event) {
  const Status open = check_open(*run);
  if (call.check_ids || !open) {  // also for a run that has ended meanwhile: a recorded end is reported
    if (!call.reader) return NeedsWorker{};
    ASSIGN_OR_RETURN(const auto first, first_receipts(call, *run, {&event, 1}));
    if (first) return command_reply(command_id, run->run_id, first->front());
  }
  RETURN_IF_ERROR(open);
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.ids_checked = call.check_ids;
  append.request.events.push_back({run, std::move(event), false});
  append.finish = [run, id = std::move(command_id)](Services&,
                                                    const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return command_reply(id, run->run_id, receipts.front());
  };
  return append;
}

// A stream's hash and size come from the artifact's row, not from the client.
Status write_output(Call& call, json::Writer& out, const store::Run& run, std::string_view stream) {
  const json::Value given = call.params[stream];
  if (!given) return success();
  const std::string id = given["artifact_id"].string_or("");
  ASSIGN_OR_RETURN(const auto row, call.reader->artifact(parse_uuid(id).value_or(Uuid{})));
  if (!row || row->run_id != run.run_id) {
    return Error(Errc::not_found, std::string(stream) + ": no artifact " + id + " in run " + run.run_id +
                                      ". Put it first: artifact.put");
  }
  if (store::is_erased(*row)) {
    return Error(Errc::conflict, std::string(stream) + ": artifact " + id +
                                     " is erased. A command end that was recorded before cannot be compared any more.");
  }
  out.key(stream).begin_object().member("artifact_id", row->artifact_id.text());
  out.member("hash", to_hex(row->hash)).member("size_bytes", row->size_bytes).member("mime_type", row->mime_type);
  if (const json::Value preview = given["preview"]) out.raw_member("preview", preview.source());
  out.end_object();
  return success();
}

Result<events::Event> started_command(Call& call, const store::Run& run, const std::string& command_id) {
  const Uuid id = parse_uuid(command_id).value_or(Uuid{});
  ASSIGN_OR_RETURN(auto event, call.reader->confirmed(call.reader->event_by_id(run.view().run_no, id)));
  if (event && event->type == "command.started") return std::move(*event);
  return Error(Errc::not_found, "no command " + command_id + " in run " + run.run_id +
                                    ". Send the command_id that command.start returned");
}

}  // namespace

Result<Answer> command_executor(Call& call) {
  const std::string& name = call.services.executor;
  if (name.empty())
    return Error(
        Errc::unavailable,
        "the daemon starts no commands: executor = false in muniment.toml, or its folder lacks the command line");
  json::Writer out;
  return Answer(Reply{std::move(out.begin_object().member("socket", name).end_object()).text(), {}});
}

Result<Answer> command_start(Call& call) {
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  if (!run) return NeedsWorker{};
  const bool repeatable = !call.idempotency_key.empty();
  const Uuid id = repeatable ? idempotent_id(call.caller, "command.start", call.idempotency_key)
                             : make_uuid_v7(call.services.clock.now());
  json::Writer body;
  body.begin_object().member("call_id", id.text());
  copy_members(body, call.params, {"argv", "cwd", "env", "tree_digest", "program", "scrubbed"});
  body.end_object();
  RETURN_IF_ERROR(check_size("command.start", body.text()));
  events::NewEvent event =
      make_event(call, *run, "command.started", std::move(body).text(), call.params["step_id"].string_or(""));
  event.event_id = id;
  event.event_id_is_ours = !repeatable;
  return append_command(call, run, id.text(), std::move(event));
}

Result<Answer> command_end(Call& call) {
  if (!call.reader) return NeedsWorker{};
  ASSIGN_OR_RETURN(const auto run, find_run(call, call.params["run_id"].string_or("")));
  const json::Value& params = call.params;
  if (params["exit_code"].present() + params["signal"].present() + params["interrupted"].present() == 0) {
    return Error(Errc::invalid_argument, "send the end of the command: exit_code, signal or interrupted");
  }
  const std::string command_id = params["command_id"].string_or("");
  ASSIGN_OR_RETURN(const events::Event started, started_command(call, *run, command_id));
  json::Writer body;
  body.begin_object().member("call_id", started.event_id.text());
  copy_members(body, params,
               {"exit_code", "signal", "tree_digest", "interrupted", "isolation", "scrubbed", "duration_us"});
  RETURN_IF_ERROR(write_output(call, body, *run, "stdout"));
  RETURN_IF_ERROR(write_output(call, body, *run, "stderr"));
  body.end_object();
  RETURN_IF_ERROR(check_size("command.end", body.text()));
  events::NewEvent event =
      make_event(call, *run, "command.ended", std::move(body).text(), started.step_id.value_or(""));
  event.event_id = make_uuid_v8("command.end/" + started.event_id.text());
  event.event_id_is_ours = false;
  return append_command(call, run, started.event_id.text(), std::move(event));
}

}  // namespace muniment::gateway::methods
