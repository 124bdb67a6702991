// Runs the loop of an agent over a capsule.
#include "capsule/agent.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "base/text.hpp"
#include "capsule/native.hpp"
#include "mcp/session.hpp"
#include "retrieval/hooks/hook_process.hpp"

namespace muniment::capsule {
namespace {

constexpr std::size_t calls_per_message_max = 32;
constexpr std::size_t output_bytes_max = 256 << 10;  // of a tool, for the model

// A message of the hook asks for it.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // a JSON object
};

// A host of MCP in this process.
class Tools {
 public:
  explicit Tools(Server& server)
      : native_(server),
        shared_(clock_, tools_offer()),
        session_(std::make_shared<mcp::Session>(shared_, native_, mcp::SessionOptions{"agent"},
                                                [this](const mcp::Outgoing& message) {
                                                  if (message.last) answer_ = message.text;
                                                })) {
    (void)ask("initialize",
              R"({"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}})");
  }
  ~Tools() { session_->close(); }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;

  const std::string& list() const { return shared_.tools().list; }

  // Returns the members `output`, `details` and `is_error` of the result's message.
  std::string call(const ToolCall& call) {
    json::Writer params;
    params.begin_object().member("name", call.name).raw_member("arguments", call.arguments).end_object();
    const std::string text = ask("tools/call", params.text());
    const auto answer = json::parse(text, limits::reply_depth_max);
    json::Writer out;
    out.begin_object();
    if (!answer || answer->root()["error"]) {
      out.member("output", answer ? answer->root()["error"]["message"].string_or("") : "the tool did not answer");
      return std::move(out.member("is_error", true).end_object()).text();
    }
    const json::Value result = answer->root()["result"];
    std::string output;
    for (const json::Value part : result["content"]) output += part["text"].string_or("");
    if (output.size() > output_bytes_max) output = preview(output, output_bytes_max);
    out.member("output", output);
    if (result["structuredContent"]) out.raw_member("details", result["structuredContent"].source());
    if (result["isError"].as_bool().value_or(false)) out.member("is_error", true);
    return std::move(out.end_object()).text();
  }

 private:
  std::string ask(std::string_view method, std::string_view params) {
    answer_.clear();
    session_->receive(mcp::request_message(std::to_string(++requests_), method, params));
    return std::exchange(answer_, {});
  }

  Clock clock_;
  CapsuleNative native_;
  mcp::Server shared_;
  std::shared_ptr<mcp::Session> session_;
  std::string answer_;
  int requests_ = 0;
};

Error bad_answer(std::string_view why) {
  return Error(Errc::unavailable, fmt::format("agent hook: a wrong answer: {}", why));
}

// Reads {id, name, arguments}, or {id, function: {name, arguments}} of a chat interface. Arguments may be the text of
// their JSON.
Result<ToolCall> call_of(const json::Value& value, std::size_t number) {
  const json::Value function = value["function"].is(json::Kind::object) ? value["function"] : value;
  ToolCall call{value["id"].string_or(fmt::format("call-{}", number)), function["name"].string_or(""), "{}"};
  if (call.name.empty()) return bad_answer("a member of tool_calls has no name");
  const json::Value arguments = function["arguments"];
  if (arguments.is(json::Kind::object)) {
    call.arguments = arguments.source();
  } else if (const auto text = arguments.as_string(); text && !text->empty()) {
    const auto parsed = json::parse(std::string_view(*text));
    if (!parsed || !parsed->root().is(json::Kind::object))
      return bad_answer(fmt::format("the arguments of {} are no JSON object", preview(call.name, 60)));
    call.arguments = parsed->root().source();
  }
  std::ranges::replace(call.arguments, '\n', ' ');  // white space: a string of JSON has no raw line feed
  std::ranges::replace(call.arguments, '\r', ' ');
  return call;
}

class Loop {
 public:
  Loop(Server& server, const AgentOptions& options)
      : server_(server), options_(options), tools_(server), end_(std::chrono::steady_clock::now() + options.time_max) {}

  Result<AgentEnd> run() {
    RETURN_IF_ERROR(take_up());
    for (;;) {
      RETURN_IF_ERROR(call_tools());
      if (said_) return AgentEnd{*said_, steps_};
      if (!asked_) return Error(Errc::invalid_argument, "the conversation waits for no answer. Give a prompt.");
      RETURN_IF_ERROR(step());
    }
  }

 private:
  // Reads the conversation so far, and adds what the user says.
  Status take_up() {
    json::Writer params;
    params.begin_object().member("session", options_.session).end_object();
    const auto parsed = json::parse(std::string_view(params.text()));
    ASSIGN_OR_RETURN(const std::string found, server_.call("log.list", parsed->root()));
    const auto messages = json::parse(std::string_view(found), limits::reply_depth_max);
    if (!messages) return messages.error();
    if (!options_.context.empty())
      add(json::Writer()
              .begin_object()
              .member("role", "system")
              .member("content", options_.context)
              .end_object()
              .text());
    for (const json::Value message : messages->root()["messages"]) RETURN_IF_ERROR(take(message));
    said_.reset();  // an answer of an earlier run
    if (options_.prompt.empty()) return success();
    RETURN_IF_ERROR(call_tools());  // of an interrupted run: their results belong before what the user says now
    return record(
        json::Writer().begin_object().member("role", "user").member("content", options_.prompt).end_object().text());
  }

  void add(std::string message) {
    bytes_ += message.size();
    messages_.push_back(std::move(message));
  }

  // Follows the conversation: whose turn it is, and which calls have no result yet.
  Status take(const json::Value& message) {
    const std::string role = message["role"].string_or("");
    said_.reset();
    if (role == "tool") {
      const std::string id = message["tool_call_id"].string_or("");
      std::erase_if(open_, [&](const ToolCall& call) { return call.id == id; });
    } else if (role == "assistant") {
      open_.clear();
      for (const json::Value one : message["tool_calls"]) {
        if (open_.size() == calls_per_message_max)
          return bad_answer(fmt::format("more than {} tool_calls", calls_per_message_max));
        ASSIGN_OR_RETURN(ToolCall call, call_of(one, open_.size() + 1));
        if (std::ranges::find(open_, call.id, &ToolCall::id) != open_.end())
          return bad_answer("two of the tool_calls have the same id");
        open_.push_back(std::move(call));
      }
      if (open_.empty()) said_ = message["content"].string_or("");
    }
    asked_ = role == "user" || role == "tool" || !open_.empty();
    add(std::string(message.source()));
    return success();
  }

  // Logs a message, and then takes it into the conversation.
  Status record(const std::string& message) {
    const auto parsed = json::parse(std::string_view(message), limits::reply_depth_max);
    if (!parsed) return parsed.error();
    json::Writer params;
    params.begin_object().member("session", options_.session);
    for (const json::Value member : parsed->root()) params.raw_member(member.key(), member.source());
    params.end_object();
    const auto given = json::parse(std::string_view(params.text()), limits::reply_depth_max);
    if (!given) return given.error();
    server_.refresh();
    ASSIGN_OR_RETURN([[maybe_unused]] const std::string logged, server_.call("log.append", given->root()));
    server_.refresh();  // another process may write while the hook runs
    FAILPOINT("agent.turn_logged");
    return take(parsed->root());
  }

  // A call whose result was not logged before an interruption is made again.
  Status call_tools() {
    while (!open_.empty()) {
      RETURN_IF_ERROR(check_time());
      const ToolCall call = open_.front();
      const std::string result = tools_.call(call);
      const auto parsed = json::parse(std::string_view(result), limits::reply_depth_max);
      json::Writer message;
      message.begin_object().member("role", "tool").member("tool_call_id", call.id).member("name", call.name);
      for (const json::Value member : parsed->root()) message.raw_member(member.key(), member.source());
      RETURN_IF_ERROR(record(std::move(message.end_object()).text()));
      if (options_.on_tool) options_.on_tool(call.name, parsed->root()["is_error"].present());
    }
    return success();
  }

  Status check_time() const {
    if (std::chrono::steady_clock::now() < end_) return success();
    return Error(Errc::deadline_exceeded, fmt::format("no answer after {} s, the limit", options_.time_max.count()));
  }

  // Asks the hook for the next message.
  Status step() {
    RETURN_IF_ERROR(check_time());
    if (steps_ == options_.steps_max)
      return Error(Errc::over_budget, fmt::format("no answer after {} steps, the limit", steps_));
    const std::string input = fmt::format(R"({{"messages":[{}],"tools":{},"session":{}}})", fmt::join(messages_, ","),
                                          tools_.list(), json::quote(options_.session));
    if (input.size() > options_.bytes_max)
      return Error(Errc::over_budget, fmt::format("the conversation has {} bytes, limit {}", grouped(input.size()),
                                                  grouped(options_.bytes_max)));
    ++steps_;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    auto answer = retrieval::run_hook({"agent hook", options_.hook, left}, input, end_);
    if (!answer) return std::move(answer).error().within("agent hook");
    return take_answer(*answer);
  }

  Status take_answer(std::string_view text) {
    const auto answer = json::parse(text);
    if (!answer) return bad_answer(answer.error().message);
    const json::Value message = answer->root()["message"], content = message["content"];
    if (message["role"].string_or("") != "assistant") return bad_answer("message.role is not assistant");
    if (content && !content.is(json::Kind::null) && !content.is(json::Kind::string))
      return bad_answer("message.content is no text");
    const json::Value calls = message["tool_calls"];
    if (calls && !calls.is(json::Kind::null) && !calls.is(json::Kind::array))
      return bad_answer("message.tool_calls is no list");
    if (calls.size() == 0 && content.string_or("").empty())
      return bad_answer("message has no content and no tool_calls");
    json::Writer out;  // the calls in one form
    out.begin_object().member("role", "assistant").member("content", content.string_or(""));
    std::set<std::string> ids;
    if (calls.size() > calls_per_message_max)
      return bad_answer(fmt::format("{} tool_calls, limit {}", calls.size(), calls_per_message_max));
    if (calls.size() > 0) out.key("tool_calls").begin_array();
    for (const json::Value one : calls) {
      ASSIGN_OR_RETURN(const ToolCall call, call_of(one, ids.size() + 1));
      if (!ids.insert(call.id).second) return bad_answer("two of the tool_calls have the same id");
      out.begin_object().member("id", call.id).member("name", call.name).raw_member("arguments", call.arguments);
      out.end_object();
    }
    if (calls.size() > 0) out.end_array();
    return record(std::move(out.end_object()).text());
  }

  Server& server_;
  const AgentOptions& options_;
  Tools tools_;
  const Deadline end_;
  std::vector<std::string> messages_;  // JSON
  std::vector<ToolCall> open_;         // of the last message of the hook, without a result
  std::optional<std::string> said_;    // the content of the last message, if it ends the conversation
  bool asked_ = false;                 // the last message waits for one of the hook
  std::size_t bytes_ = 0, steps_ = 0;
};

}  // namespace

Result<AgentEnd> run_agent(Server& server, const AgentOptions& options) {
  if (options.hook.empty() || !options.hook.front().starts_with('/'))
    return Error(Errc::invalid_argument, "the hook of the agent is missing, or is no absolute path of a program");
  return Loop(server, options).run();
}

}  // namespace muniment::capsule
