// The loop thread: listens, owns the sessions, completes the work of other threads, watches deadlines, and stops on a
// signal. It never accesses Postgres or a file.
#pragma once

#include <uv.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files/file.hpp"
#include "base/json/schema.hpp"
#include "base/process/stop_signals.hpp"
#include "daemon/executor.hpp"
#include "daemon/mcp/mcp_http.hpp"
#include "daemon/mcp/mcp_peer.hpp"
#include "daemon/peer.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/session.hpp"
#include "daemon/subscriptions.hpp"
#include "gateway/request/dispatcher.hpp"

namespace muniment::daemon {

struct ServerOptions {
  std::string socket_path;
  std::vector<std::uint32_t> allowed_uids;  // allowed in addition to root and the daemon's own uid
  std::optional<std::uint32_t> allowed_gid;
  mcp::ServerOptions mcp;
  std::optional<McpHttpOptions> http;
  std::vector<std::string> mcp_files;  // folders whose files MCP sessions may have read
  bool record_mcp = false;             // default of MCP sessions: record them as runs
  bool executor = true;                // the daemon starts recorded commands itself
  ServiceManager manager;              // the service manager, whose socket is served if it passed one
};

class Server {
 public:
  // `signals` outlives the server.
  Server(ServerOptions options, StopSignals& signals, gateway::Services& services, gateway::WorkerPool& workers,
         const SchemaSet& schemas);
  ~Server();

  // Binds the socket (0600, its folder 0700 or 0750), or takes the one that the service manager passed. Errors:
  // invalid_argument for a path that is too long, unavailable if binding fails.
  Status listen();
  void ready();  // notifies the service manager
  void run();    // returns after a signal or `stop`
  void stop();   // any thread
  // Called on the append thread after a commit and when its requests are answered: one wake-up of the loop serves
  // subscribers and clients.
  void log_grew();
  void appends_answered();
  // Called on the loop thread about four times a minute; must not block.
  std::function<void()> on_tick;

 private:
  Status open_listener();
  Status bind_own();
  Result<gateway::Caller> admit(const Peer& peer);
  void note_refused(std::string_view why);
  void start_accepting();
  void accept();
  void pause_accepting(int error);
  // Returns false if the peer may not connect; it is told why. `observed`: the peer's executor uses the connection.
  bool serve(Fd connection, const Peer& peer, bool observed);
  void close_silent();
  void close_largest();
  void wake();
  void watch_deadlines();
  void watch_mcp();
  void begin_stop();
  bool busy() const;
  void stop_when_idle();

  ServerOptions options_;
  bool bound_ = false;  // the daemon created the socket file and removes it at the end
  StopSignals& signals_;
  gateway::Services& services_;
  uv_loop_t loop_{};
  Fd listener_;
  uv_poll_t connecting_{};
  uv_timer_t accept_again_{};
  uv_async_t wake_{};
  uv_timer_t deadlines_{};
  uv_timer_t keep_alive_{};
  uv_timer_t watchdog_{};
  uv_timer_t mcp_tick_{};
  uv_poll_t stop_asked_by_signal_{};
  gateway::Dispatcher dispatcher_;
  Subscriptions subscriptions_;
  McpHost mcp_;
  Executor executor_;
  std::unique_ptr<McpHttp> http_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Session>> sessions_;
  AllUnread unread_;
  bool refusing_ = false;  // refusals were logged, and no connection was admitted after that
  std::uint64_t next_session_ = 1;
  std::atomic<bool> grew_{false};
  std::atomic<bool> stop_asked_{false};
  bool stopping_ = false;
  bool leaving_ = false;  // the requests in flight are answered or abandoned
  bool stopped_ = false;
  Monotonic stop_at_latest_{};
};

}  // namespace muniment::daemon
