#include "unit/mcp_fixture.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace muniment::mcp {

Json::Json(std::string text) {
  auto held = std::make_shared<Held>();
  held->text = std::move(text);
  auto document = json::parse(held->text);
  if (!document) {
    ADD_FAILURE() << document.error().message << ": " << held->text;
    return;
  }
  held->document = *std::move(document);
  held_ = std::move(held);
}

std::int64_t FakeNative::request(std::string_view method, std::string params, Done done) {
  const auto number = static_cast<std::int64_t>(requests.size()) + 1;
  requests.push_back({number, std::string(method), Json(std::move(params)), std::move(done)});
  EXPECT_TRUE(requests.back().params.root().is(json::Kind::object)) << method;
  if (const auto found = at_once.find(method); found != at_once.end()) {
    const Json reply(found->second);
    const std::string error(reply["error"].source());
    finish(requests.back(), error.empty() ? found->second : "", error);
  }
  return number;
}

void FakeNative::cancel(std::int64_t number) {
  for (Request& request : requests) {
    if (request.number == number) request.cancelled = true;
  }
}

FakeNative::Request* FakeNative::oldest(std::string_view method) {
  const auto found = std::find_if(requests.begin(), requests.end(), [&](const Request& request) {
    return request.method == method && request.done && !request.cancelled;
  });
  if (found != requests.end()) return &*found;
  ADD_FAILURE() << "no request of " << method << " waits";
  return nullptr;
}

void FakeNative::finish(Request& request, std::string_view result, std::string_view error) {
  const Json result_json = result.empty() ? Json() : Json(std::string(result));
  const Json error_json = error.empty() ? Json() : Json(std::string(error));
  const Done done = std::exchange(request.done, nullptr);
  done({result_json.root(), error_json.root()});
}

void FakeNative::answer(std::string_view method, std::string_view result) {
  if (Request* request = oldest(method)) finish(*request, result, "");
}

void FakeNative::refuse(std::string_view method, std::string_view code, std::string_view message, bool retryable) {
  Request* request = oldest(method);
  if (request == nullptr) return;
  finish(*request, "",
         fmt::format(R"({{"code":-32000,"message":{},"data":{{"code":"{}","retryable":{}}}}})", json::quote(message),
                     code, retryable));
}

std::size_t FakeNative::waiting(std::string_view method) const {
  return static_cast<std::size_t>(std::count_if(requests.begin(), requests.end(), [&](const Request& request) {
    return request.method == method && request.done && !request.cancelled;
  }));
}

std::vector<std::string> FakeNative::methods() const {
  std::vector<std::string> methods;
  for (const Request& request : requests) methods.push_back(request.method);
  return methods;
}

std::vector<Json> FakeNative::all_params(std::string_view method) const {
  std::vector<Json> all;
  for (const Request& request : requests) {
    if (request.method == method) all.push_back(request.params);
  }
  return all;
}

Json FakeNative::params(std::string_view method) const {
  const std::vector<Json> all = all_params(method);
  EXPECT_FALSE(all.empty()) << "no request of " << method;
  return all.empty() ? Json() : all.back();
}

namespace {

std::unique_ptr<Server> make_server(Clock& clock, const HostOptions& options) {
  return std::make_unique<Server>(clock, ServerOptions{"1.2.3", options.toolsets, nullptr});
}

constexpr std::string_view stateless_meta =
    R"("io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},)"
    R"("io.modelcontextprotocol/clientInfo":{"name":"host","version":"1.0"})";

// Adds the members of a stateless request to parameters such as {"a":1} or {"_meta":{"b":2}}.
std::string with_meta(std::string_view params) {
  const Json given{std::string(params)};
  json::Writer out;
  out.begin_object().key("_meta");
  const std::string meta(given["_meta"].source());
  out.raw(meta.size() > 2 ? fmt::format("{{{},{}", stateless_meta, meta.substr(1))
                          : fmt::format("{{{}}}", stateless_meta));
  for (const json::Value member : given.root()) {
    if (member.key() != "_meta") out.raw_member(member.key(), member.source());
  }
  return std::move(out.end_object()).text();
}

}  // namespace

Host::Host(HostOptions options)
    : options_(std::move(options)), own_server_(make_server(clock, options_)), server(*own_server_) {
  session = std::make_shared<Session>(server, native, SessionOptions{options_.owner, options_.record, options_.run_id},
                                      [this](Outgoing message) { take(std::move(message)); });
}

Host::Host(Server& shared, HostOptions options) : options_(std::move(options)), server(shared) {
  session = std::make_shared<Session>(server, native, SessionOptions{options_.owner, options_.record, options_.run_id},
                                      [this](Outgoing message) { take(std::move(message)); });
}

Host::~Host() = default;

void Host::say(std::string text) { session->receive(std::move(text)); }

void Host::tell(std::string_view method, std::string_view params) {
  say(fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{}}})", method, params));
}

Json Host::ask(std::string_view method, std::string_view params, std::string id) {
  if (id.empty()) id = std::to_string(next_id_++);
  asked_[id] = method;
  const std::string sent_params = options_.stateless ? with_meta(params) : std::string(params);
  const std::size_t before = answers(id);
  say(fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}})", id, method, sent_params));
  return answers(id) > before ? answer(id) : Json();
}

Json Host::call_tool(std::string_view name, std::string_view arguments) {
  return ask("tools/call", fmt::format(R"({{"name":"{}","arguments":{}}})", name, arguments));
}

Json Host::open(std::string_view version, std::string_view client) {
  const Json opened = ask(
      "initialize", fmt::format(R"({{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{}}})", version, client));
  tell("notifications/initialized", "{}");
  return opened;
}

void Host::pass(std::chrono::microseconds time) {
  clock.pass(time);
  session->tick(server.clock().monotonic());
}

// Returns the newest answer: an id may be reused after its answer.
Json Host::answer(std::string_view id) const {
  const auto found = answers_.find(id);
  return found == answers_.end() ? Json() : found->second.back();
}

std::size_t Host::answers(std::string_view id) const {
  const auto found = answers_.find(id);
  return found == answers_.end() ? 0 : found->second.size();
}

std::vector<Json> Host::notified(std::string_view method) const {
  std::vector<Json> all;
  for (const Json& message : sent) {
    if (message["method"].string_or("") == method) all.push_back(message);
  }
  return all;
}

void Host::take(Outgoing message) {
  SCOPED_TRACE(message.text.substr(0, 400));
  EXPECT_EQ(message.text.find('\n'), std::string::npos) << "a message is one line";
  const Json json(message.text);
  EXPECT_EQ(json["jsonrpc"].string_or(""), "2.0");
  EXPECT_EQ(json["error"]["code"].as_int().value_or(0), message.error);
  EXPECT_EQ(json["result"].present() || json["error"].present(), !json["method"].present());
  if (message.last) {
    EXPECT_EQ(std::string(json["id"].source()), message.request);
  }
  if (json["result"]) {
    const auto asked = asked_.find(message.request);
    EXPECT_NE(asked, asked_.end()) << "an answer to what was not asked";
    if (asked != asked_.end()) check_result(asked->second, options_.stateless, json["result"]);
  }
  if (message.last) answers_[message.request].push_back(json);
  sent.push_back(json);
  outgoing.push_back(std::move(message));
}

std::string text_of(const Json& answer) {
  EXPECT_TRUE(answer["result"]["content"].size() > 0) << answer.text();
  const json::Value content = answer["result"]["content"];
  return content.size() == 0 ? std::string() : (*content.begin())["text"].string_or("");
}

bool is_error(const Json& answer) { return answer["result"]["isError"].as_bool().value_or(false); }
std::int64_t error_code(const Json& answer) { return answer["error"]["code"].as_int().value_or(0); }
std::string uri_param(std::string_view uri) { return fmt::format(R"({{"uri":"{}"}})", uri); }
std::string error_text(const Json& answer) { return answer["error"]["message"].string_or(""); }

namespace {

struct Required {
  std::string_view method;
  std::vector<std::string_view> members;
  std::vector<std::string_view> of_items{};  // members of each item of the first member, which is then an array
  bool cacheable = false;
};

const std::vector<Required>& required_members() {
  static const std::vector<Required> all{
      {"completion/complete", {"completion"}},
      {"initialize", {"protocolVersion", "capabilities", "serverInfo"}},
      {"logging/setLevel", {}},
      {"ping", {}},
      {"prompts/get", {"messages"}, {"role", "content"}},
      {"prompts/list", {"prompts"}, {"name"}, true},
      {"resources/list", {"resources"}, {"uri", "name"}, true},
      {"resources/read", {"contents"}, {"uri", "text"}, true},
      {"resources/subscribe", {}},
      {"resources/templates/list", {"resourceTemplates"}, {"uriTemplate", "name"}, true},
      {"resources/unsubscribe", {}},
      {"server/discover", {"supportedVersions", "capabilities"}, {}, true},
      {"subscriptions/listen", {}},
      {"tools/call", {"content", "isError"}, {"type", "text"}},
      {"tools/list", {"tools"}, {"name", "description", "inputSchema", "annotations"}, true},
  };
  return all;
}

void check_stateless(const Required& required, const json::Value& result) {
  EXPECT_EQ(result["resultType"].string_or(""), "complete");
  EXPECT_EQ(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].string_or(""), "muniment");
  EXPECT_EQ(result["ttlMs"].present(), required.cacheable);
  if (!required.cacheable) return;
  EXPECT_GE(result["ttlMs"].as_int().value_or(-1), 0);
  const std::string scope = result["cacheScope"].string_or("");
  EXPECT_TRUE(scope == "public" || scope == "private") << scope;
}

}  // namespace

void check_result(std::string_view method, bool stateless, const json::Value& result) {
  SCOPED_TRACE(method);
  const auto& all = required_members();
  const auto required = std::find_if(all.begin(), all.end(), [&](const Required& row) { return row.method == method; });
  ASSERT_NE(required, all.end()) << "a result of a method that no revision has";
  ASSERT_TRUE(result.is(json::Kind::object));
  if (stateless) {
    check_stateless(*required, result);
  } else {
    EXPECT_FALSE(result["resultType"] || result["ttlMs"] || result["cacheScope"]) << "members of another revision";
  }
  for (const std::string_view member : required->members) EXPECT_TRUE(result[member].present()) << member;
  if (required->of_items.empty()) return;
  EXPECT_TRUE(result[required->members.front()].is(json::Kind::array));
  for (const json::Value item : result[required->members.front()]) {
    for (const std::string_view member : required->of_items) EXPECT_TRUE(item[member].present()) << member;
  }
}

}  // namespace muniment::mcp
