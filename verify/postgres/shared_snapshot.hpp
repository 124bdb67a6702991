// Gives all threads one view of the database: one connection holds the snapshot, and further ones join it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

class SharedSnapshot {
 public:
  static Result<SharedSnapshot> take(const std::string& uri);

  Connection& holder() { return holder_; }
  Result<Connection> join() const;     // another connection, in the same snapshot
  Result<Connection> outside() const;  // a connection that sees later commits

 private:
  SharedSnapshot(std::string uri, Connection holder, std::string name)
      : uri_(std::move(uri)), holder_(std::move(holder)), name_(std::move(name)) {}
  std::string uri_;
  Connection holder_;
  std::string name_;
};

}  // namespace muniment::verify
