// What a host is told of without asking: changes of resources that it subscribed to, in both revisions.
#pragma once

#include <cstdint>
#include <map>
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

  // Follows a resource for a stream; `done` gets a failure, or nothing. The stream is the JSON text of the id of a
  // subscriptions/listen; empty: the session itself.
  void follow(const std::string& uri, const std::string& stream, std::function<void(std::optional<Failure>)> done);
  void leave(const std::string& uri, const std::string& stream);
  // A stream of subscriptions/listen ended.
  void leave_all(const std::string& stream);
  void notified(const json::Value& notification);
  // Tells of changes that came within a second of one that was told.
  void tick(Monotonic now);
  bool pending() const;
  void close();

 private:
  struct Followed {
    std::int64_t native = 0;           // number of the native subscription; 0: none yet, or none needed
    std::vector<std::string> streams;  // that are told
    Monotonic told{};                  // when they were told last
    bool changed = false;              // since then
  };
  void tell(const std::string& uri, Followed& followed, Monotonic now);
  void drop(const std::string& uri);

  Session& session_;
  std::map<std::string, Followed> followed_;  // by URI
};

}  // namespace muniment::mcp
