// Reads Postgres for the verifier: read-only, as the role auditor if it exists, by binary COPY, in one repeatable-read
// snapshot that several connections share. Only postgres.cpp uses libpq.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "verify/postgres/copy_row.hpp"

namespace muniment::verify {

// One row of a COPY. Its bytes are valid until the next row is read. NULL reads as empty or 0, and so does a column
// that the server did not send.
class Row {
 public:
  Row() = default;
  explicit Row(CopyFields fields) : fields_(std::move(fields)) {}
  bool null(std::size_t column) const { return column >= fields_.size() || !fields_[column]; }
  std::string_view bytes(std::size_t column) const { return null(column) ? std::string_view() : *fields_[column]; }
  std::string text(std::size_t column) const { return std::string(bytes(column)); }
  std::optional<std::string> optional_text(std::size_t column) const;
  std::int64_t integer(std::size_t column) const;  // smallint, integer, bigint
  Time time(std::size_t column) const;             // timestamptz
  Uuid uuid(std::size_t column) const;
  std::string uuid_text(std::size_t column) const { return null(column) ? "" : uuid(column).text(); }
  std::string hex(std::size_t column) const { return to_hex(bytes(column)); }
  std::string_view jsonb(std::size_t column) const;  // the text after jsonb's version byte

 private:
  friend class Connection;
  friend class Cursor;
  CopyFields fields_;
};

class Connection {
 public:
  // Connects as the auditor of the log if the login may assume that role without losing access. Otherwise connects as
  // the login (an older database, a database restored without its roles, or the auditor's own login). Errors:
  // unavailable, with the message from Postgres.
  static Result<Connection> open(const std::string& uri);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // Starts a read-only transaction on a new snapshot, or on the one that `export_snapshot` of another connection
  // returned.
  Status begin(const std::string& snapshot = "");
  Result<std::string> export_snapshot();

  // Reads the result of `select`: call start_copy once, then next until it returns false.
  Status start_copy(const std::string& select);
  Result<bool> next(Row& row);

  // Returns the first column of the first row as an integer; nullopt for NULL or no row.
  Result<std::optional<std::int64_t>> integer(const std::string& select);

 private:
  friend class Cursor;
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A server-side cursor. Several cursors can be read concurrently on one connection, in its transaction.
class Cursor {
 public:
  static Result<Cursor> open(Connection& connection, const std::string& name, const std::string& select);
  Cursor(Cursor&&) noexcept;
  Cursor& operator=(Cursor&&) noexcept;
  ~Cursor();
  Result<bool> next(Row& row);

 private:
  struct Impl;
  explicit Cursor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::verify
