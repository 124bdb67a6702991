// One connection to Postgres for reading, on libpqxx. Reactivation is off: libpqxx would
// reconnect silently and lose the session's settings; a broken connection is rebuilt here and
// nowhere else. Everything in store/ that throws is caught at the edge by `guarded`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::store {

// As whom a connection works (migrations/0005_roles.sql): the role is taken on right after connecting,
// so that a mistake here can do no more than the role may. `login` stays the user of the URI: for what
// comes before there are roles.
enum class DatabaseRole { login, writer, reporter, redactor };

class Connection;

// The connections of one daemon, so that its end need not wait for a server that says nothing.
class Connections {
 public:
  // From any thread: whoever waits for Postgres gets an error, now and from now on.
  void give_up();
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }

 private:
  friend class Connection;
  void add(Connection* connection);
  void remove(Connection* connection);

  std::mutex mutex_;
  std::set<Connection*> all_;
  std::atomic<bool> given_up_{false};
};

class Connection {
 public:
  Connection(std::string uri, DatabaseRole role, std::shared_ptr<Connections> among = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;

  // Opens it, or opens it again after a failure. Session settings: UTC, READ COMMITTED,
  // search_path public, jit off, the role and its limits. Errors: unavailable; denied when the URI's
  // user may not take on the role.
  Status ensure_open();

  // From any thread: shuts the socket down, so that a call blocked in libpq returns with an error.
  void interrupt();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
