// Follows resources by native subscriptions, and notifies their streams.
#include "mcp/subscriptions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "mcp/methods.hpp"
#include "mcp/offer/extension.hpp"
#include "mcp/offer/resources.hpp"
#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

constexpr std::chrono::seconds told_apart{1};  // a host reads the resource again after each notification
constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

std::string subscription_meta(std::string_view stream) {
  return json::Writer().begin_object().raw_member(subscription_key, stream).end_object().text();
}

Failure too_many() {
  return {invalid_params,
          fmt::format("{} resources are subscribed to, limit {}. Unsubscribe from one first.",
                      limits::subscriptions_per_connection_max, limits::subscriptions_per_connection_max)};
}

}  // namespace

void Subscriptions::follow(const std::string& uri, const std::string& stream, Done done) {
  const auto known = followed_.find(uri);
  if (known == followed_.end() && followed_.size() >= limits::subscriptions_per_connection_max) return done(too_many());
  const Extension* extension = session_.server().options().extension;
  const bool of_extension = extension != nullptr && extension->is_resource(uri);
  const auto params = of_extension ? std::optional<std::string>("") : follow_params(uri);
  if (!params) {
    return done(Failure{invalid_params, fmt::format("{}: this resource is unknown or cannot be subscribed to.",
                                                    json::quote(uri.substr(0, 200)))});
  }
  Followed& followed = followed_[uri];
  auto& streams = followed.streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  if (params->empty() || followed.native != 0)
    return done(std::nullopt);  // the resource never changes, or is already followed
  followed.waiting.push_back(std::move(done));
  if (!std::exchange(followed.requested, true)) request(uri, *params);
}

void Subscriptions::request(const std::string& uri, const std::string& params) {
  session_.native().request("event.subscribe", params,
                            [weak = session_.weak_from_this(), uri](const NativeReply& reply) {
                              if (const auto session = weak.lock()) session->subscriptions().requested(uri, reply);
                            });
}

// Every stream may have left the resource before the reply.
void Subscriptions::requested(const std::string& uri, const NativeReply& reply) {
  const auto found = followed_.find(uri);
  const std::int64_t number = reply.ok() ? reply.result["subscription"].as_int().value_or(0) : 0;
  if (found == followed_.end()) return unsubscribe(number);
  Followed& followed = found->second;
  followed.requested = false;
  followed.native = number;
  const std::vector<Done> waiting = std::exchange(followed.waiting, {});
  if (!reply.ok() || followed.streams.empty()) drop(uri);
  const std::optional<Failure> failure = reply.ok() ? std::nullopt : std::optional(failure_of(reply.error));
  for (const Done& done : waiting) done(failure);
}

void Subscriptions::leave(const std::string& uri, const std::string& stream) {
  const auto found = followed_.find(uri);
  if (found == followed_.end()) return;
  std::erase(found->second.streams, stream);
  if (found->second.streams.empty()) drop(uri);
}

void Subscriptions::leave_all(const std::string& stream) {
  release(stream);
  std::vector<std::string> uris;
  for (const auto& [uri, followed] : followed_) uris.push_back(uri);
  for (const std::string& uri : uris) leave(uri, stream);
}

// While the native request is in progress, the entry is kept for its reply.
void Subscriptions::drop(const std::string& uri) {
  const auto found = followed_.find(uri);
  if (found->second.requested) return;
  const std::int64_t number = found->second.native;
  followed_.erase(found);
  unsubscribe(number);
}

void Subscriptions::unsubscribe(std::int64_t number) {
  if (number == 0) return;
  session_.native().request("event.unsubscribe", fmt::format(R"({{"subscription":{}}})", number), [](auto&) {});
}

void Subscriptions::close() {
  for (const auto& [uri, followed] : std::exchange(followed_, {})) unsubscribe(followed.native);
}

void Subscriptions::notified(const json::Value& notification) {
  const std::string method = notification["method"].string_or("");
  if (method != "event" && method != "metrics") return;
  const std::int64_t number = notification["params"]["subscription"].as_int().value_or(0);
  const Monotonic now = session_.server().clock().monotonic();
  for (auto& [uri, followed] : followed_) {
    if (followed.native != number) continue;
    followed.changed = true;
    if (now - followed.told >= told_apart && !is_held(followed)) tell(uri, followed, now);
    return;
  }
}

void Subscriptions::tick(Monotonic now) {
  for (auto& [uri, followed] : followed_) {
    if (followed.changed && now - followed.told >= told_apart && !is_held(followed)) tell(uri, followed, now);
  }
}

bool Subscriptions::pending() const {
  return std::any_of(followed_.begin(), followed_.end(), [](const auto& item) { return item.second.changed; });
}

bool Subscriptions::is_held(const Followed& followed) const {
  return std::any_of(followed.streams.begin(), followed.streams.end(),
                     [&](const std::string& stream) { return held_.contains(stream); });
}

void Subscriptions::tell(const std::string& uri, Followed& followed, Monotonic now) {
  followed.told = now;
  followed.changed = false;
  for (const std::string& stream : followed.streams) {
    json::Writer params;
    params.begin_object();
    if (!stream.empty()) params.raw_member("_meta", subscription_meta(stream));
    params.member("uri", uri).end_object();
    session_.send({notification_message("notifications/resources/updated", params.text()), stream});
  }
}

void subscribe(const CallPtr& call) {
  const std::string uri = call->params()["uri"].string_or("");
  if (uri.empty()) return call->fail({invalid_params, "uri: expected a resource's URI."});
  call->session().subscriptions().follow(
      uri, "", [call](const std::optional<Failure>& failure) { failure ? call->fail(*failure) : call->answer("{}"); });
}

void unsubscribe(const CallPtr& call) {
  call->session().subscriptions().leave(call->params()["uri"].string_or(""), "");
  call->answer("{}");
}

namespace {

// Only the lists of an extension change.
void acknowledge(const CallPtr& call, const std::vector<std::string>& uris) {
  Session& session = call->session();
  session.subscriptions().release(call->message().id);
  json::Writer params;
  params.begin_object().raw_member("_meta", subscription_meta(call->message().id)).key("notifications").begin_object();
  const json::Value wanted = call->params()["notifications"];
  for (const std::string_view kind : {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}) {
    if (session.server().options().extension != nullptr && wanted[kind].as_bool().value_or(false))
      params.member(kind, true);
  }
  if (!uris.empty()) params.member("resourceSubscriptions", uris);
  call->notify("notifications/subscriptions/acknowledged", params.end_object().end_object().text());
}

void tell_list_changed(const CallPtr& call, std::string_view list) {
  const std::string wanted = fmt::format("{}ListChanged", list);
  if (!call->params()["notifications"][wanted].as_bool().value_or(false)) return;
  call->notify(
      fmt::format("notifications/{}/list_changed", list),
      json::Writer().begin_object().raw_member("_meta", subscription_meta(call->message().id)).end_object().text());
}

}  // namespace

// Stays unanswered until the client cancels it or the daemon stops.
void listen(const CallPtr& call) {
  const json::Value wanted = call->params()["notifications"];
  if (!wanted.is(json::Kind::object)) return call->fail({invalid_params, "notifications: expected an object."});
  std::vector<std::string> uris;
  for (const json::Value uri : wanted["resourceSubscriptions"]) {
    std::string text = uri.string_or("");
    if (std::find(uris.begin(), uris.end(), text) == uris.end()) uris.push_back(std::move(text));
  }
  if (uris.size() > limits::subscriptions_per_connection_max) return call->fail(too_many());
  Session& session = call->session();
  const std::string stream = call->message().id;
  Server& server = session.server();
  server.listeners[call.get()] = [weak = std::weak_ptr(call)](std::string_view list) {
    if (const CallPtr alive = weak.lock()) tell_list_changed(alive, list);
  };
  call->on_end = [weak = session.weak_from_this(), stream, &server, key = call.get()] {
    server.listeners.erase(key);
    if (const auto alive = weak.lock()) alive->subscriptions().leave_all(stream);
  };
  if (uris.empty()) return acknowledge(call, {});
  // The acknowledgment lists the followed resources and precedes the first notification.
  struct Progress {
    std::size_t left;
    std::vector<std::string> followed;
  };
  session.subscriptions().hold(stream);
  auto progress = std::make_shared<Progress>(Progress{uris.size(), {}});
  for (const std::string& uri : uris) {
    session.subscriptions().follow(uri, stream, [call, uri, progress](const std::optional<Failure>& failure) {
      if (!failure) progress->followed.push_back(uri);
      if (--progress->left == 0) acknowledge(call, progress->followed);
    });
  }
}

}  // namespace muniment::mcp
