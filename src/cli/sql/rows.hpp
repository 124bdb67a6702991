// Prints the rows of a query as a table, CSV or JSON lines, without collecting them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/sql/connection.hpp"
#include "client/output.hpp"

namespace muniment::cli {

enum class SqlForm : std::uint8_t { table, csv, json };

class SqlRows {
 public:
  SqlRows(const Output& out, SqlForm form) : out_(out), form_(form) {}

  // `columns` must be the same in every call.
  void add(const std::vector<SqlColumn>& columns, const SqlRow& row);
  // Ends the output; a result without rows still gets its heading.
  void finish(const std::vector<SqlColumn>& columns);
  std::uint64_t count() const { return count_; }

 private:
  void begin(const std::vector<SqlColumn>& columns);
  void add_cells(const std::vector<SqlColumn>& columns, const SqlRow& row);
  void print_measured();
  void print_csv_line() const;
  void print_cells(const std::vector<std::string>& cells, Tone tone) const;

  const Output& out_;
  SqlForm form_;
  std::uint64_t count_ = 0;
  bool begun_ = false;
  std::string line_;
  std::vector<std::string> keys_;                  // JSON: quoted, unique column names
  std::vector<std::vector<std::string>> waiting_;  // table: rows held until the column widths are known
  std::vector<std::size_t> widths_;
  std::vector<bool> right_;
};

// Writes a CSV row (RFC 4180): NULL is empty, an empty text is quoted.
void append_csv_cell(std::string& out, std::optional<std::string_view> value);

}  // namespace muniment::cli
