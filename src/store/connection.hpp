// One connection to Postgres for reading, on libpqxx. Reactivation is off: libpqxx would
// reconnect silently and lose the session's settings; a broken connection is rebuilt here and
// nowhere else. Everything in store/ that throws is caught at the edge by `guarded`.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"


namespace muniment::store {

class Connection {
 public:
  explicit Connection(std::string uri);
  ~Connection();
  Connection(const Connection&) = delete;

  // Opens it, or opens it again after a failure. Session settings: UTC, READ COMMITTED,
  // search_path public, jit off. Errors: unavailable.
  Status ensure_open();

  // From any thread: shuts the socket down, so that a call blocked in libpq returns with an error.
  void interrupt();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::store
