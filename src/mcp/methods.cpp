// The table of MCP methods, and the methods that open a conversation.
#include "mcp/methods.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view capabilities_key = "io.modelcontextprotocol/clientCapabilities";

constexpr Method method_table[] = {
    {.name = "completion/complete", .function = complete},
    {.name = "initialize", .function = initialize, .stateless = false, .always = true},
    {.name = "logging/setLevel", .function = set_log_level, .stateless = false, .always = true},
    {.name = "ping", .function = ping, .stateless = false, .always = true},
    {.name = "prompts/get", .function = get_prompt},
    {.name = "prompts/list", .function = list_prompts},
    {.name = "resources/list", .function = list_resources},
    {.name = "resources/read", .function = read_resource},
    {.name = "resources/subscribe", .function = subscribe, .stateless = false},
    {.name = "resources/templates/list", .function = list_resource_templates},
    {.name = "resources/unsubscribe", .function = unsubscribe, .stateless = false},
    {.name = "server/discover", .function = discover, .initialized = false, .always = true},
    {.name = "subscriptions/listen", .function = listen, .initialized = false},
    {.name = "tools/call", .function = call_tool, .always = true},
    {.name = "tools/list", .function = list_tools, .always = true},
};

// Versions before 2025-11-25 do not differ in the served methods.
constexpr std::array<std::string_view, 4> initialized_versions{initialized_version, "2025-06-18", batch_version,
                                                               "2024-11-05"};

bool is_initialized_version(std::string_view version) {
  return std::find(initialized_versions.begin(), initialized_versions.end(), version) != initialized_versions.end();
}

std::string supported_versions(std::string_view requested) {
  json::Writer data;
  data.begin_object().key("supported").begin_array().string(stateless_version).end_array();
  return std::move(data.member("requested", requested).end_object()).text();
}

}  // namespace

const Method* find_method(std::string_view name, Revision revision) {
  const auto* row = std::find_if(std::begin(method_table), std::end(method_table), [&](const Method& method) {
    return method.name == name && (revision == Revision::stateless ? method.stateless : method.initialized);
  });
  return row == std::end(method_table) ? nullptr : row;
}

bool is_served(std::string_view version) { return version == stateless_version || is_initialized_version(version); }

Revision revision_of(const Message& message) {
  const bool stateless = message.meta()[version_key].present() || message.method == "server/discover" ||
                         message.method == "subscriptions/listen";
  return stateless ? Revision::stateless : Revision::initialized;
}

std::optional<Failure> check_meta(const Message& message) {
  if (!message.meta()[version_key].is(json::Kind::string))
    return Failure{invalid_params, fmt::format("_meta: expected {}, a string.", version_key)};
  if (!message.meta()[capabilities_key].is(json::Kind::object))
    return Failure{invalid_params, fmt::format("_meta: expected {}, an object.", capabilities_key)};
  return std::nullopt;
}

std::optional<Failure> check_revision(Session& session, const Message& message, Revision revision) {
  if (revision == Revision::initialized) {
    if (message.method == "initialize" || message.method == "ping" || !session.opened().version.empty())
      return std::nullopt;
    return Failure{invalid_params,
                   fmt::format("_meta: expected {}. Send it with every request (2026-07-28), or open the session with "
                               "initialize (2025-11-25).",
                               version_key)};
  }
  if (auto failure = check_meta(message)) return failure;
  const std::string version = message.meta()[version_key].string_or("");
  if (version == stateless_version) return std::nullopt;
  return Failure{unsupported_version, "unsupported protocol version.", supported_versions(version)};
}

void initialize(const CallPtr& call) {
  Session& session = call->session();
  const std::string wanted = call->params()["protocolVersion"].string_or("");
  if (wanted.empty()) return call->fail({invalid_params, "protocolVersion: expected a string."});
  session.opened().version = is_initialized_version(wanted) ? wanted : std::string(initialized_version);
  session.opened().initialize = call->message_ptr();
  session.introduce(call->params()["clientInfo"]);
  call->answer(json::Writer()
                   .begin_object()
                   .member("protocolVersion", session.opened().version)
                   .raw_member("capabilities", session.server().capabilities(false))
                   .raw_member("serverInfo", session.server().info())
                   .member("instructions", session.server().instructions())
                   .end_object()
                   .text());
}

void ping(const CallPtr& call) { call->answer("{}"); }

void discover(const CallPtr& call) {
  const Server& server = call->session().server();
  json::Writer result;
  result.begin_object().key("supportedVersions").begin_array().string(stateless_version).end_array();
  result.raw_member("capabilities", server.capabilities(true)).member("instructions", server.instructions());
  call->answer(result.end_object().text(), cached_for_an_hour);
}

void set_log_level(const CallPtr& call) {
  const std::string level = call->params()["level"].string_or("");
  if (!is_log_level(level)) {
    return call->fail(
        {invalid_params, "level: expected debug, info, notice, warning, error, critical, alert or emergency."});
  }
  call->session().opened().log_level = level;
  call->answer("{}");
}

}  // namespace muniment::mcp
