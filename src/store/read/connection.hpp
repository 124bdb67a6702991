// Holds one connection to Postgres for reading, with libpqxx. Reactivation is off, because libpqxx would reconnect
// silently and lose the session's settings; only this class reopens a broken connection. `guarded` converts exceptions
// of store/ to errors.
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

// Role of a connection (migrations/0005_roles.sql). It is assumed right after connecting, so that a programming error
// can do no more than the role permits. `login` remains the user of the URI, for statements before the roles exist;
// `follower` is a writer whose statements use the indexes.
enum class DatabaseRole { login, writer, follower, reporter, redactor };

class Connection;

// The connections of one daemon, which its shutdown interrupts if the server does not respond.
class Connections {
 public:
  // Ends all current and later waits for Postgres with an error. May be called from any thread.
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

  // Opens the connection, or reopens it after a failure. Session settings: UTC, READ COMMITTED, search_path public, jit
  // off, the role and its limits. Errors: unavailable; denied if the URI's user may not assume the role.
  Status ensure_open();

  // Shuts the socket down, so that a call blocked in libpq returns with an error. May be called from any thread.
  void interrupt();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
