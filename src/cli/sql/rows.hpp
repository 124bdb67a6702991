// Rows of a query as a table, CSV or JSON lines, each written as it comes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/show/output.hpp"
#include "cli/sql/connection.hpp"

namespace muniment::cli {

enum class SqlForm : std::uint8_t { table, csv, json };

class SqlRows {
 public:
  SqlRows(const Output& out, SqlForm form) : out_(out), form_(form) {}

  // `columns` are the same each time.
  void add(const std::vector<SqlColumn>& columns, const SqlRow& row);
  // A result without rows still has its heading.
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
  std::vector<std::string> keys_;                  // of JSON: quoted, each once
  std::vector<std::vector<std::string>> waiting_;  // of a table: until its widths are known
  std::vector<std::size_t> widths_;
  std::vector<bool> right_;
};

// RFC 4180; NULL is nothing, a text that is empty is quoted.
void append_csv_cell(std::string& out, std::optional<std::string_view> value);

}  // namespace muniment::cli
