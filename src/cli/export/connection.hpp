// How an export reads Postgres: one read-only transaction on one snapshot, as the role auditor where the login may take
// it, each select as a binary COPY whose rows come one by one. No event goes through the daemon. Only
// connection.cpp knows libpq.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

using ExportFields = std::vector<std::optional<std::string_view>>;  // of one row; nullopt: NULL

// The fields of one message of a binary COPY, which begins with the COPY's header when it is the `first`; they point
// into it. False: it is the trailer. Errors: unavailable for what is not one whole row.
Result<bool> parse_export_row(std::string_view message, bool first, ExportFields& fields);

// An integer of 2, 4 or 8 bytes as Postgres sends it; 0 for anything else.
std::int64_t export_integer(std::string_view bytes);

class ExportConnection {
 public:
  // Begins the transaction. Errors: unavailable, with Postgres' own words.
  static Result<ExportConnection> open(const std::string& uri);
  ExportConnection(ExportConnection&&) noexcept;
  ExportConnection& operator=(ExportConnection&&) noexcept;
  ~ExportConnection();

  // start once, then next until it says false. Fields live until the next call.
  Status start(const std::string& select);
  Result<bool> next(ExportFields& fields);

  // A text as SQL writes one.
  Result<std::string> quoted(const std::string& text) const;

 private:
  struct Impl;
  explicit ExportConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::cli
