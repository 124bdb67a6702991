// How an analyst's query is asked: as the role reporter, in a read-only transaction, with a limit of time, its rows one
// by one. Nothing goes through the daemon. Only sql_connection.cpp knows libpq.
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

using SqlRow = std::vector<std::optional<std::string_view>>;  // as Postgres writes values; nullopt: NULL

class SqlConnection {
 public:
  // To the private Postgres as its login reporter; elsewhere as the URI says, taking the role on. Errors: unavailable;
  // denied where that login may not be a reporter.
  static Result<SqlConnection> open(const std::string& uri, std::chrono::seconds limit);
  SqlConnection(SqlConnection&&) noexcept;
  SqlConnection& operator=(SqlConnection&&) noexcept;
  ~SqlConnection();

  // Until the views show what the log holds now, at most 2 s: a statement of its own, before the one that asks. Answers
  // how many events they are behind all the same; nullopt: this database cannot say.
  Result<std::optional<std::int64_t>> wait();
  // One statement. Errors: invalid_argument and denied, with the place in the query; deadline_exceeded, with the limit;
  // over_budget for a query that would need more room on the disk than reporters have.
  Status start(const std::string& query);
  // Of the rows that come; known once `next` was called.
  const std::vector<SqlColumn>& columns() const;
  // Views live until the next call. False: that was all.
  Result<bool> next(SqlRow& row);

  // The same connection for another program: a URI, and what libpq's own programs read from their environment.
  std::string uri() const;
  std::vector<std::pair<std::string, std::string>> environment() const;

 private:
  struct Impl;
  explicit SqlConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string seconds_text(std::chrono::seconds time);  // "30 s", "5 min", "2 h"

}  // namespace muniment::cli
