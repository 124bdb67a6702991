// Notifies a host of changes to the resources that it subscribed to, in both revisions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "mcp/call.hpp"
#include "mcp/native.hpp"

namespace muniment::mcp {

class Session;

class Subscriptions {
 public:
  explicit Subscriptions(Session& session) : session_(session) {}

  // Follows a resource for a stream; `done` gets a failure, or nullopt. The stream is the JSON text of the id of a
  // subscriptions/listen; empty: the session itself.
  using Done = std::function<void(std::optional<Failure>)>;
  void follow(const std::string& uri, const std::string& stream, Done done);
  void leave(const std::string& uri, const std::string& stream);
  // A stream of subscriptions/listen ended.
  void leave_all(const std::string& stream);
  // Between hold and release, a stream gets no notifications, since its first message must be the acknowledgment.
  void hold(const std::string& stream) { held_.insert(stream); }
  void release(const std::string& stream) { held_.erase(stream); }
  void notified(const json::Value& notification);
  // Sends notifications for changes that came within a second of the previous one.
  void tick(Monotonic now);
  bool pending() const;
  void close();

 private:
  struct Followed {
    std::int64_t native = 0;           // number of the native subscription; 0: none yet, or none needed
    std::vector<std::string> streams;  // to be notified
    std::vector<Done> waiting;         // callbacks that wait for the native reply
    bool requested = false;            // the native request is in progress
    Monotonic told{};                  // time of the last notification
    bool changed = false;              // changed since the last notification
  };
  void request(const std::string& uri, const std::string& params);
  void requested(const std::string& uri, const NativeReply& reply);
  void unsubscribe(std::int64_t number);
  bool is_held(const Followed& followed) const;
  void tell(const std::string& uri, Followed& followed, Monotonic now);
  void drop(const std::string& uri);

  Session& session_;
  std::map<std::string, Followed> followed_;  // keys: URIs
  std::set<std::string> held_;                // streams
};

}  // namespace muniment::mcp
