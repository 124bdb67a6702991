// MCP over Streamable HTTP at /mcp: checks each request, finds its session, and chooses the form of the answer. A
// request of 2026-07-28 is a session of its own; one of 2025-11-25 names its session by Mcp-Session-Id. GET /metrics
// answers with the metrics. Loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/mcp/http_stream.hpp"
#include "daemon/mcp/mcp_peer.hpp"
#include "http/access.hpp"
#include "http/server.hpp"

namespace muniment::daemon {

struct McpHttpOptions {
  http::Options server;
  std::string token;               // bearer token of the clients; empty: not required (the conformance suite)
  std::vector<std::string> hosts;  // allowed hosts besides the loopback names
  gateway::Caller caller;          // caller of requests with the token
};

class McpHttp {
 public:
  McpHttp(McpHost& host, McpHttpOptions options);
  ~McpHttp();

  // Errors: those of http::Server::listen.
  Status listen(uv_loop_t* loop);
  std::uint16_t port() const { return server_->port(); }
  void stop();             // refuses new requests; those in progress continue
  void end_all();          // answers the requests in progress with an error, and ends the sessions
  bool answering() const;  // true while an answer is not written completely
  void close();
  // Called about four times a minute: keeps open streams alive, and ends idle sessions.
  void keep_alive();
  std::function<std::uint64_t()> next_connection;  // returns a connection number for a caller

 private:
  // A session of 2025-11-25.
  struct Conversation {
    std::string id;
    std::shared_ptr<McpPeer> peer;
    std::map<std::string, std::shared_ptr<HttpStream>> answers;  // key: the JSON text of the request's id
    std::vector<std::shared_ptr<HttpStream>> listeners;          // streams of GET
    Monotonic used{};
    bool in_use() const { return !answers.empty() || !listeners.empty(); }
  };
  using ConversationPtr = std::shared_ptr<Conversation>;

  std::optional<http::Answer> refuse(const http::Request& request) const;
  void serve(std::shared_ptr<http::Exchange> exchange);
  void scrape(std::shared_ptr<http::Exchange> exchange);  // GET /metrics
  void post(const std::shared_ptr<http::Exchange>& exchange);
  void serve_stateless(const std::shared_ptr<http::Exchange>& exchange, const mcp::Parsed& parsed);
  void begin_conversation(const std::shared_ptr<http::Exchange>& exchange, const mcp::Parsed& parsed);
  void converse(const ConversationPtr& conversation, const std::shared_ptr<http::Exchange>& exchange,
                const mcp::Parsed& parsed);
  void converse_batch(const ConversationPtr& conversation, const std::shared_ptr<http::Exchange>& exchange);
  void listen_to(const std::shared_ptr<http::Exchange>& exchange);
  void end_longest_unused();
  void end(ConversationPtr conversation, std::string_view why);
  void end_conversation(const std::shared_ptr<http::Exchange>& exchange);
  ConversationPtr find(const std::shared_ptr<http::Exchange>& exchange);
  gateway::Caller caller();
  static void send(const std::weak_ptr<Conversation>& weak, mcp::Outgoing message);

  McpHost& host_;
  const McpHttpOptions options_;
  http::AllowedHosts hosts_;
  std::unique_ptr<http::Server> server_;
  bool stopping_ = false;
  std::int64_t next_batch_ = 1;
  std::map<std::string, ConversationPtr> conversations_;
  struct Stateless {
    std::shared_ptr<HttpStream> stream;
    std::shared_ptr<McpPeer> peer;
    std::string id;  // JSON text
  };
  std::map<const HttpStream*, Stateless> stateless_;  // requests in progress
};

}  // namespace muniment::daemon
