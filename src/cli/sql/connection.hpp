// Runs an analyst's query as the role reporter, in a read-only transaction with a time limit, and returns its rows one
// by one. The daemon is not involved. Only connection.cpp uses libpq.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

enum class SqlKind : std::uint8_t { text, number, boolean, json };

struct SqlColumn {
  std::string name;
  SqlKind kind = SqlKind::text;
};

using SqlRow = std::vector<std::optional<std::string_view>>;  // values as text; nullopt: NULL

class SqlConnection {
 public:
  // Connects to a private Postgres as its login reporter, to any other with the login of the URI, which then assumes
  // the role. Errors: unavailable; denied if the login may not assume the role.
  static Result<SqlConnection> open(const std::string& uri, std::chrono::seconds limit);
  SqlConnection(SqlConnection&&) noexcept;
  SqlConnection& operator=(SqlConnection&&) noexcept;
  ~SqlConnection();

  // Waits until the views include the current log, at most 2 s, in a separate statement. Returns the remaining lag in
  // events; nullopt if the database does not report it.
  Result<std::optional<std::int64_t>> wait();
  // Starts one statement. Errors: invalid_argument and denied, with the position in the query; deadline_exceeded, with
  // the limit; over_budget for a query that needs more temporary disk space than reporters have.
  Status start(const std::string& query);
  // Column names of the rows; known after the first `next`.
  const std::vector<SqlColumn>& columns() const;
  // Reads the next row; its views are valid until the next call. Returns false at the end.
  Result<bool> next(SqlRow& row);

  // Returns the connection for another program: a URI and the environment variables of libpq.
  std::string uri() const;
  std::vector<std::pair<std::string, std::string>> environment() const;

 private:
  struct Impl;
  explicit SqlConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string seconds_text(std::chrono::seconds time);  // "30 s", "5 min", "2 h"

}  // namespace muniment::cli
