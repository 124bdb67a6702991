// Reads Postgres for an export: one read-only transaction on one snapshot, as the role auditor if the login may assume
// it; each select is a binary COPY that is read row by row. The daemon is not involved. Only connection.cpp uses libpq.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

using ExportFields = std::vector<std::optional<std::string_view>>;  // fields of one row; nullopt: NULL

// Parses one message of a binary COPY, which begins with the header if it is the `first`; the fields point into it.
// Returns false for the trailer. Errors: unavailable unless it is one complete row.
Result<bool> parse_export_row(std::string_view message, bool first, ExportFields& fields);

// Decodes an integer of 2, 4 or 8 bytes as sent by Postgres; returns 0 for any other length.
std::int64_t export_integer(std::string_view bytes);

class ExportConnection {
 public:
  // Begins the transaction. Errors: unavailable, with the message of Postgres.
  static Result<ExportConnection> open(const std::string& uri);
  ExportConnection(ExportConnection&&) noexcept;
  ExportConnection& operator=(ExportConnection&&) noexcept;
  ~ExportConnection();

  // Call start once, then next until it returns false. Fields are valid until the next call.
  Status start(const std::string& select);
  Result<bool> next(ExportFields& fields);

  // Returns the text as an SQL literal.
  Result<std::string> quoted(const std::string& text) const;

 private:
  struct Impl;
  explicit ExportConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::cli
