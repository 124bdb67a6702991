// The engine of a server: drives libmicrohttpd (MHD) without threads from a libuv loop, and owns the listening socket
// and the deadlines of the connections.
//
// MHD must not be entered from its own callbacks, in which the handler runs too. Therefore a connection with data to
// send requests another run (run_soon), and on_closed is called, and the server closed, after MHD has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "http/connection.hpp"
#include "http/handles.hpp"
#include "http/listener.hpp"
#include "http/server.hpp"

struct MHD_Daemon;

namespace muniment::http {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(uv_loop_s* loop, Options options, Server::Handler handler);
  ~Engine();
  Engine(const Engine&) = delete;

  Status start();
  void stop_accepting();
  void close();
  std::uint16_t port() const { return listener_.port; }
  std::size_t connections() const { return connections_.size(); }
  bool answering() const;

  const Options& options() const { return options_; }
  std::int64_t idle_ms() const { return std::chrono::milliseconds(options_.idle).count(); }
  uv_loop_s* loop() const { return loop_; }
  void handle(std::shared_ptr<Exchange> exchange);
  void lose(std::shared_ptr<Exchange> exchange);  // calls its on_closed later
  void run_soon();
  void abort(Connection& connection);  // called from the loop, outside of MHD
  // Aborts the connection at `new_ms`, a time of now_ms(); 0: no deadline.
  void move_deadline(Connection& connection, std::int64_t old_ms, std::int64_t new_ms);
  static std::int64_t now_ms();
  // Returns false if the requests in progress hold too many bytes already.
  bool count_body(std::size_t bytes);
  void discount_body(std::size_t bytes) { bodies_bytes_ -= bytes; }
  // Counts the answer bytes that a connection holds. Aborts the largest ones while the sum exceeds its limit.
  void count_answers(std::size_t before, std::size_t after);

  Connection* connected(MHD_Connection* mhd, int socket);
  void disconnected(Connection* connection);
  void no_stranger(const Connection& connection) { strangers_.erase(connection.number()); }
  std::string said;  // last message that MHD logged during its start

 private:
  Status start_mhd(const std::string& certificate, const std::string& key);
  void start_accepting();
  void accept();
  bool make_room();
  void pause_accepting(int error_number);
  void run();
  void enter(const std::function<void()>& work);
  void abort_slow();
  void call_closed();
  void arm();
  void shut();

  uv_loop_s* const loop_;
  const Options options_;
  const Server::Handler handler_;
  Listener listener_;
  MHD_Daemon* mhd_ = nullptr;
  Handle<uv_poll_s> connecting_, ready_;
  Handle<uv_timer_s> due_, accept_again_;
  Handle<uv_idle_s> soon_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::map<std::uint64_t, Connection*> strangers_;  // keys: numbers, so that the first is the oldest
  std::uint64_t next_number_ = 1;
  std::set<std::pair<std::int64_t, Connection*>> deadlines_;
  std::vector<std::shared_ptr<Exchange>> lost_;
  std::size_t bodies_bytes_ = 0;
  std::size_t answers_bytes_ = 0;
  bool busy_ = false;      // within MHD or a call of the handler
  bool closing_ = false;   // close the server once it is not busy
  bool refusing_ = false;  // refusals have been logged
};

}  // namespace muniment::http
