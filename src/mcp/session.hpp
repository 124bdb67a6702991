// One MCP conversation: takes a host's messages and produces messages for the host. It has no socket and no thread: a
// transport (daemon/) feeds it and makes all calls on one thread.
//
// Both revisions are served side by side: a request that carries _meta["io.modelcontextprotocol/protocolVersion"] is
// stateless (2026-07-28); any other one belongs to the conversation that `initialize` opened (2025-11-25).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "mcp/call.hpp"
#include "mcp/message.hpp"
#include "mcp/native.hpp"
#include "mcp/server.hpp"
#include "mcp/session_run.hpp"
#include "mcp/subscriptions.hpp"

namespace muniment::mcp {

// A message for the host.
struct Outgoing {
  std::string text;
  std::string request{};  // JSON text of the id of the host's request that it belongs to; empty: none
  bool last = false;      // it answers that request
  int error = 0;          // its error code; 0: not an error
};

struct SessionOptions {
  std::string owner;     // the host's identity, as the transport authenticated it: "uid:1000"
  bool record = false;   // record the conversation as a run
  std::string run_id{};  // id of that run; empty: the session makes one
};

// Begins the key of a batch, which differs from the JSON text of every id.
inline constexpr std::string_view batch_key = "batch-";

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Send = std::function<void(Outgoing)>;
  Session(Server& server, Native& native, SessionOptions options, Send send);
  ~Session();

  void receive(std::string text);
  void receive(const Parsed& parsed);
  // Handles a batch (2025-03-26). Its answers are sent as one array, as the answer to the request `key`, which begins
  // with batch_key. Returns false if it has no answer.
  bool receive_batch(std::string_view text, const std::string& key);
  // Handles a notification of the native protocol: an event of a subscription.
  void notified(const json::Value& notification);
  // Called about once a second: sends progress, and hands slow calls over.
  void tick(Monotonic now);
  // The host disconnected: cancels its calls, except those with a handle, and ends its run.
  void close();
  // Call this when the daemon stops: like `close`, but a run with an id from outside stays open for a host that
  // reconnects.
  void abandon();
  // True if no work in progress needs `tick`.
  bool idle() const { return calls_.empty() && run_.idle() && !subscriptions_.pending(); }

  // Functions for the methods.
  Server& server() { return server_; }
  const Server& server() const { return server_; }
  const ToolList& tools() const { return own_tools_ ? *own_tools_ : server_.tools(); }
  Native& native() { return native_; }
  SessionRun& run() { return run_; }
  Subscriptions& subscriptions() { return subscriptions_; }
  const SessionOptions& options() const { return options_; }
  void send(Outgoing message);
  // True if texts that the session remembers wait until a user accepts them.
  bool review() const { return review_; }
  bool takes_batches() const { return opened_.version == batch_version; }

  // The result of `initialize`.
  struct Opened {
    std::string version;    // version of the protocol; empty: not opened
    MessagePtr initialize;  // the request, with the client's name and capabilities
    std::string log_level = "info";
  };
  Opened& opened() { return opened_; }
  // Sends a request to the host (2025-11-25); `done` gets the response, or nullptr if the session ends first.
  void ask(const Call& call, std::string_view method, std::string_view params,
           std::function<void(const Message&)> done);
  // Names the client for the run that the first tool call starts.
  void introduce(const json::Value& client_info);

 private:
  friend class Call;
  // The requests of a batch that are not answered yet, and the answers so far.
  struct Waiting {
    std::string key;
    std::vector<std::string> answers{};
    std::size_t left = 1;  // one more while the batch is being read
  };
  using WaitingPtr = std::shared_ptr<Waiting>;
  void receive_one(const WaitingPtr& batch, std::string text, bool refused);
  void finish_one(Waiting& batch);
  void serve(const MessagePtr& message);
  void take_notification(const Message& message);
  void take_response(const Message& message);
  void take_settings(const json::Value& params);
  void finished(const Call& call);
  void cancel_all();

  Server& server_;
  std::optional<ToolList> own_tools_;  // set if the transport named toolsets
  std::string bad_settings_;           // error with which each request is refused; empty: none
  Native& native_;
  SessionOptions options_;
  Send send_;
  Opened opened_;
  SessionRun run_;
  Subscriptions subscriptions_;
  std::map<std::string, CallPtr> calls_;  // by the id's JSON text
  std::size_t bytes_in_progress_ = 0;     // size of their messages
  std::map<std::string, std::function<void(const Message&)>> asked_;
  std::map<std::string, WaitingPtr> batches_;  // by the id's JSON text, of each unanswered request
  std::int64_t next_batch_ = 1;
  std::int64_t next_question_ = 1;
  bool closed_ = false;
  bool review_ = false;
};

}  // namespace muniment::mcp
