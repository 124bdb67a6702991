// A host and the native side around one MCP session: the test acts as the host, and answers for the native methods.
// Every message of the session is checked against the requirements of both revisions.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "mcp/session.hpp"

namespace muniment::mcp {

// JSON together with the text that its values refer to; cheap to copy. Without text, every value is absent.
class Json {
 public:
  Json() = default;
  explicit Json(std::string text);

  json::Value root() const { return held_ ? held_->document.root() : json::Value(); }
  json::Value operator[](std::string_view key) const { return root()[key]; }
  explicit operator bool() const { return held_ != nullptr; }
  std::string text() const { return held_ ? held_->text : std::string(); }

 private:
  struct Held {
    std::string text;
    json::Document document;
  };
  std::shared_ptr<const Held> held_;
};

class FakeClock final : public Clock {
 public:
  Time now() const override { return {1'795'000'000'000'000 + passed_.count()}; }
  Monotonic monotonic() const override { return Monotonic{} + std::chrono::hours(1) + passed_; }
  void pass(std::chrono::microseconds time) { passed_ += time; }

 private:
  std::chrono::microseconds passed_{0};
};

// Keeps the session's requests until the test answers them. A method in `at_once` is answered before `request` returns.
class FakeNative final : public Native {
 public:
  struct Request {
    std::int64_t number = 0;
    std::string method;
    Json params;
    Done done;  // empty: answered
    bool cancelled = false;
  };

  std::int64_t request(std::string_view method, std::string params, Done done) override;
  void cancel(std::int64_t number) override;
  void set_working_folder(std::string folder) override { working_folder = std::move(folder); }
  void add_folders(const std::vector<std::string>& added) override {
    folders.insert(folders.end(), added.begin(), added.end());
  }

  // Answers the oldest request of this method that is neither answered nor cancelled; the test fails if there is none.
  void answer(std::string_view method, std::string_view result);
  void refuse(std::string_view method, std::string_view code, std::string_view message, bool retryable = false);
  std::size_t waiting(std::string_view method) const;
  std::vector<std::string> methods() const;  // of all requests, in order
  // Returns the parameters of the newest request of this method.
  Json params(std::string_view method) const;
  std::vector<Json> all_params(std::string_view method) const;

  std::map<std::string, std::string, std::less<>> at_once;  // method → result, or {"error": …}
  std::deque<Request> requests;
  std::vector<std::string> folders;
  std::string working_folder;

 private:
  void finish(Request& request, std::string_view result, std::string_view error);
  Request* oldest(std::string_view method);
};

struct HostOptions {
  bool stateless = false;
  bool record = false;
  std::string run_id{};
  std::vector<std::string> toolsets{};
  std::string owner = "uid:1000";
};

class Host {
 public:
  explicit Host(HostOptions options = {});
  Host(Server& shared, HostOptions options);
  ~Host();

  // Sends initialize and its notification (2025-11-25). Returns the result of initialize.
  Json open(std::string_view version = "2025-11-25", std::string_view client = R"({"name":"host","version":"1.0"})");
  // Sends a request in the host's revision. Returns its answer, or nothing if there is none yet. `id` is JSON text
  // (default: the next number).
  Json ask(std::string_view method, std::string_view params = "{}", std::string id = {});
  Json call_tool(std::string_view name, std::string_view arguments = "{}");
  void tell(std::string_view method, std::string_view params);
  void say(std::string text);  // sends any line

  Json answer(std::string_view id) const;  // the answer to this id, or nothing
  std::size_t answers(std::string_view id) const;
  std::vector<Json> notified(std::string_view method) const;
  std::string last_id() const { return std::to_string(next_id_ - 1); }
  void pass(std::chrono::microseconds time);  // advances the clock, and then calls tick

  FakeClock clock;
  FakeNative native;
  std::vector<Json> sent;
  std::vector<Outgoing> outgoing;

 private:
  void take(Outgoing message);

  const HostOptions options_;
  std::unique_ptr<Server> own_server_;

 public:
  Server& server;
  std::shared_ptr<Session> session;

 private:
  std::map<std::string, std::string> asked_;  // id → method
  std::map<std::string, std::vector<Json>, std::less<>> answers_;
  std::int64_t next_id_ = 1;
};

// The text of a tool's result, and whether it is an error.
std::string text_of(const Json& answer);
bool is_error(const Json& answer);
std::int64_t error_code(const Json& answer);  // 0: not an error
std::string error_text(const Json& answer);

std::string uri_param(std::string_view uri);  // {"uri": …}

// Adds a failure for each member of the method's result that the revision requires and that is missing.
void check_result(std::string_view method, bool stateless, const json::Value& result);

}  // namespace muniment::mcp
