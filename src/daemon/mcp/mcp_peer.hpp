// An MCP session in the daemon: passes the session's native requests to the dispatcher, like those of a connection, and
// the session's messages to its transport. Loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/subscriber.hpp"
#include "gateway/request/dispatcher.hpp"
#include "mcp/session.hpp"

namespace muniment::daemon {

class McpHost;
class Subscriptions;

class McpPeer : public Subscriber, public mcp::Native, public std::enable_shared_from_this<McpPeer> {
 public:
  // The transport of a session.
  struct Link {
    mcp::Session::Send send;
    std::function<std::size_t()> unread_bytes;
  };
  McpPeer(McpHost& host, gateway::Caller caller, Link link);

  mcp::Session& session() { return *session_; }
  // Call this when the host has disconnected. The loop's next turn cancels the requests in progress, except for calls
  // with a handle.
  void close();

  std::int64_t request(std::string_view method, std::string params, Done done) override;
  void cancel(std::int64_t number) override;
  void add_folders(const std::vector<std::string>& folders) override;
  void set_working_folder(std::string folder) override { caller_.folder = std::move(folder); }

  const gateway::Caller& caller() const override { return caller_; }
  bool closed() const override { return closed_; }
  void send(std::string line) override;  // a native notification
  std::size_t unread_bytes() const override { return link_.unread_bytes(); }
  bool may_send() const override;

 private:
  struct Pending {
    Done done;
    gateway::ExchangePtr exchange;
  };
  void take_reply(std::int64_t number, std::string line);
  void finish();
  void leave_when_idle();

  McpHost& host_;
  gateway::Caller caller_;
  const Link link_;
  std::shared_ptr<mcp::Session> session_;
  std::map<std::int64_t, Pending> pending_;
  std::int64_t next_ = 1;
  std::shared_ptr<McpPeer> self_;  // set after close, while work remains
  bool closed_ = false;
};

// The MCP sessions of all transports.
class McpHost {
 public:
  // `folders`: the setting mcp_files.
  McpHost(Clock& clock, gateway::Dispatcher& dispatcher, Subscriptions& subscriptions, mcp::ServerOptions options,
          bool record, std::vector<std::string> folders);

  // `trusted`: the setting applies to the caller, who acts for the daemon's user.
  std::shared_ptr<McpPeer> open(gateway::Caller caller, bool trusted, McpPeer::Link link);
  // Called about once a second while a host waits. Returns false if none waits.
  bool tick();
  // Ends every session when the daemon stops. A run with an id from outside stays open for a host that reconnects.
  void stop();
  std::function<void()> on_waiting;  // called when a request is in progress

  gateway::Dispatcher& dispatcher() { return dispatcher_; }
  Subscriptions& subscriptions() { return subscriptions_; }
  mcp::Server& server() { return server_; }
  bool records() const { return record_; }
  bool stopping() const { return stopping_; }

 private:
  gateway::Dispatcher& dispatcher_;
  Subscriptions& subscriptions_;
  mcp::Server server_;
  const bool record_;
  const std::shared_ptr<const std::vector<std::string>> folders_;
  bool stopping_ = false;
  std::vector<std::weak_ptr<McpPeer>> peers_;
};

}  // namespace muniment::daemon
