// tools/list and tools/call: a tool call is one native request between two events of the session's run.
#include <fmt/format.h>

#include "base/ids.hpp"
#include "mcp/methods.hpp"
#include "mcp/offer/extension.hpp"
#include "mcp/offer/tool_arguments.hpp"
#include "mcp/offer/tool_inputs.hpp"
#include "mcp/offer/tools.hpp"
#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

// {content, structuredContent?, isError}: `structured` is JSON, or empty.
std::string tool_result(std::string_view text, std::string_view structured, bool error) {
  json::Writer result;
  result.begin_object().key("content").begin_array();
  result.begin_object().member("type", "text").member("text", text).end_object().end_array();
  if (!structured.empty()) result.raw_member("structuredContent", structured);
  return std::move(result.member("isError", error).end_object()).text();
}

// The native error's code and message, which names the next step.
std::string say_error(const json::Value& error) {
  const json::Value data = error["data"];
  const std::string code = data["code"].string_or("error") + ": ";
  std::string text = error["message"].string_or("");
  if (!text.starts_with(code)) text.insert(0, code);
  if (data["retryable"].as_bool().value_or(false)) text += " It can be retried.";
  return text;
}

std::string working(std::string_view handle) {
  return json::Writer().begin_object().member("handle", handle).member("state", "working").end_object().text();
}

std::string unknown_tool(const Session& session, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Tool* tool : session.tools().tools) names.push_back(tool->name);
  std::string text = fmt::format("unknown tool {}.", json::quote(name.substr(0, 100)));
  for (const Tool& tool : tool_table()) {
    if (tool.name == name && session.server().options().only_tools())
      return text + " It needs a daemon, which this server is not: omit --capsule.";
    if (tool.name == name)
      return text + fmt::format(
                        " It belongs to the toolset {}, which is not offered: mcp_toolsets, or muniment mcp "
                        "--toolset {}.",
                        tool.toolset, tool.toolset);
  }
  if (const std::string_view near = nearest(name, names); !near.empty()) text += fmt::format(" Did you mean {}?", near);
  return text;
}

// A call's arguments as its tool's schema types them.
struct Arguments {
  Arguments(const Tool& tool, const json::Value& given)
      : text(typed_arguments(input_schema(tool), given)), document(json::parse(std::string_view(text))) {}
  const std::string text;
  const Result<json::Document> document;
};

// Returns the run that a result of run.end names.
std::string ended_run(std::string_view result) {
  const auto document = json::parse(result);
  return document ? document->root()["run_id"].string_or("") : std::string();
}

// A call in progress, and its record.
struct Running {
  CallPtr call;
  const Tool* tool = nullptr;
  std::string call_id;  // in the session's run
};

void finish(const Running& running, std::string text, std::string_view structured, bool error) {
  Session& session = running.call->session();
  running.call->on_end = nullptr;
  const auto took = session.server().clock().monotonic() - running.call->began();
  const bool ends_run = !error && running.tool->method == "run.end" && session.run().id() == ended_run(structured);
  if (ends_run) {
    session.run().was_ended();
  } else {
    session.run().returned(running.call_id, error ? "error" : "ok", text,
                           std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  }
  if (const std::string warning = session.run().take_warning(); !warning.empty()) text += "\n" + warning;
  running.call->answer(tool_result(text, structured, error));
}

// Records the end of a call that the host cancelled or abandoned.
void record_cancelling(const Running& running) {
  running.call->on_end = [weak = running.call->session().weak_from_this(), call_id = running.call_id] {
    if (const auto session = weak.lock()) session->run().returned(call_id, "cancelled", "The host cancelled it.", {});
  };
}

void reply(const Running& running, const NativeReply& reply) {
  if (!reply.ok()) return finish(running, say_error(reply.error), reply.error["data"].source(), true);
  const bool failed = reply.result["errors"].size() > 0 && reply.result["documents"].size() == 0;
  finish(running, running.tool->say(reply.result), reply.result.source(), failed);
}

// A session whose facts wait for review removes none either: the removal of a true fact misleads as a false fact does.
Result<std::string> params_of(const Tool& tool, const json::Value& arguments, const Setting& setting) {
  if (setting.review && tool.hints.destructive) {
    return Error(Errc::denied,
                 "what this session remembers waits for review, and it removes nothing. Ask the user, who can: "
                 "muniment forget SUBJECT");
  }
  return tool.adapt ? tool.adapt(arguments, setting) : plain_params(tool.method, arguments, setting.run_id);
}

// Answers the tool `status` with the result of the call that has this handle.
void answer_handle(const CallPtr& call, const std::string& handle) {
  Session& session = call->session();
  const auto found =
      session.server().handles().find(handle, session.options().owner, session.server().clock().monotonic());
  if (!found) {
    return call->answer(tool_result(
        fmt::format("not_found: no call has the handle {}. Results are kept for an hour.", handle), {}, true));
  }
  if (found->result) return call->answer(*found->result);
  call->answer(tool_result(fmt::format("Still working, for {} s. Ask again with the same handle.", found->seconds),
                           working(handle), false));
}

}  // namespace

void list_tools(const CallPtr& call) {
  if (call->params()["cursor"]) return call->fail({invalid_params, "cursor: the list of tools is one page."});
  call->answer(R"({"tools":)" + call->session().tools().list + "}", cached_for_an_hour);
}

void call_tool(const CallPtr& call) {
  Session& session = call->session();
  const std::string name = call->params()["name"].string_or("");
  const json::Value given = call->params()["arguments"];
  const Extension* extension = session.server().options().extension;
  if (extension != nullptr && extension->call_tool(call, name)) return;
  const Tool* tool = session.tools().find(name);
  if (tool == nullptr) return call->fail({invalid_params, unknown_tool(session, name)});
  const auto owned = std::make_shared<const Arguments>(*tool, given);
  if (!owned->document || !owned->document->root().is(json::Kind::object))
    return call->fail({invalid_params, "arguments: expected an object."});
  const json::Value arguments = owned->document->root();
  if (const auto handle = arguments["handle"].as_string(); handle && tool->name == "status")
    return answer_handle(call, *handle);
  if (call->revision() == Revision::stateless) session.introduce(call->client_info());
  Running running{call, tool, session.run().called(name, (given.is(json::Kind::object) ? given : arguments).source())};
  call->may_take_long = true;
  record_cancelling(running);
  session.run().when_started([running, owned, arguments] {
    if (running.call->answered() && !running.call->has_handle()) return;  // cancelled meanwhile
    const Tool& called = *running.tool;
    const std::string& run = running.call->session().run().id();
    Result<std::string> params = params_of(called, arguments, {run, running.call->session().review()});
    if (!params)
      return finish(running, fmt::format("{}: {}", name_of(params.error().code), params.error().message), {}, true);
    running.call->native(called.method, *std::move(params),
                         [running](const NativeReply& native) { reply(running, native); });
  });
}

void hand_over(const CallPtr& call) {
  Session& session = call->session();
  auto handle = session.server().handles().open(session.options().owner, session.server().clock().monotonic());
  if (!handle) return;  // the call continues without a handle
  const std::string text =
      fmt::format("Still working. Ask the tool status for the result with the handle {}.", *handle);
  const std::string interim = tool_result(text, working(*handle), false);
  call->hand_over(*std::move(handle), interim);
}

}  // namespace muniment::mcp
