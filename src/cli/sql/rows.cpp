#include "cli/sql/rows.hpp"

#include <algorithm>
#include <map>

#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::cli {
namespace {

// NaN and Infinity are not valid JSON numbers.
bool is_json_number(std::string_view text) {
  return !text.empty() && (text.back() >= '0' && text.back() <= '9') &&
         (text.front() == '-' ? text.size() > 1 && text[1] >= '0' && text[1] <= '9'
                              : text.front() >= '0' && text.front() <= '9');
}

void append_json_value(std::string& out, SqlKind kind, std::string_view value) {
  switch (kind) {
    case SqlKind::boolean: out += value == "t" ? "true" : "false"; return;
    case SqlKind::number: out += is_json_number(value) ? std::string(value) : json::quote(value); return;
    case SqlKind::json:
      // A value of type json may contain line feeds, but only between tokens.
      for (const char c : value) out += c == '\n' || c == '\r' ? ' ' : c;
      return;
    case SqlKind::text: out += json::quote(value); return;
  }
}

}  // namespace

void append_csv_cell(std::string& out, std::optional<std::string_view> value) {
  if (!value) return;
  if (!value->empty() && value->find_first_of(",\"\r\n") == std::string_view::npos) {
    out += *value;
    return;
  }
  out += '"';
  for (const char c : *value) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void SqlRows::begin(const std::vector<SqlColumn>& columns) {
  begun_ = true;
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const SqlColumn& column : columns) {
    const int time = ++seen[column.name];
    keys_.push_back(json::quote(time == 1 ? column.name : column.name + "_" + std::to_string(time)));
    names.push_back(out_.one_line(column.name));
    widths_.push_back(columns_of(names.back()));
    right_.push_back(column.kind == SqlKind::number);
  }
  if (form_ == SqlForm::table) waiting_.push_back(std::move(names));
  if (form_ != SqlForm::csv) return;
  for (const SqlColumn& column : columns) {
    if (!line_.empty()) line_ += ',';
    append_csv_cell(line_, column.name);
  }
  print_csv_line();
}

void SqlRows::add(const std::vector<SqlColumn>& columns, const SqlRow& row) {
  if (!begun_) begin(columns);
  ++count_;
  if (form_ == SqlForm::table) return add_cells(columns, row);
  line_.clear();
  if (form_ == SqlForm::csv) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line_ += ',';
      append_csv_cell(line_, row[i]);
    }
    // Readers of CSV skip an empty line.
    if (line_.empty() && row.size() == 1) line_ = "\"\"";
    print_csv_line();
    return;
  }
  line_ = "{";
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line_ += ',';
    line_ += keys_[i] + ":";
    if (row[i])
      append_json_value(line_, columns[i].kind, *row[i]);
    else
      line_ += "null";
  }
  out_.json_line(line_ + "}");
}

void SqlRows::print_csv_line() const {
  if (out_.terminal())
    out_.line(out_.safe(line_));
  else
    out_.print(line_ + "\n");
}

// Column widths come from the first rows; a wider cell in a later row shifts the cells after it.
void SqlRows::add_cells(const std::vector<SqlColumn>& columns, const SqlRow& row) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::string cell = row[i] ? fit(out_.one_line(*row[i]), limits::sql_cell_columns_max) : "";
    if (columns[i].kind == SqlKind::boolean && row[i]) cell = *row[i] == "t" ? "true" : "false";
    if (count_ <= limits::sql_rows_measured) widths_[i] = std::max(widths_[i], columns_of(cell));
    cells.push_back(std::move(cell));
  }
  if (count_ > limits::sql_rows_measured) return print_cells(cells, Tone::plain);
  waiting_.push_back(std::move(cells));
  if (count_ == limits::sql_rows_measured) print_measured();
}

void SqlRows::print_measured() {
  for (std::size_t i = 0; i < waiting_.size(); ++i) print_cells(waiting_[i], i == 0 ? Tone::dim : Tone::plain);
  waiting_.clear();
}

void SqlRows::print_cells(const std::vector<std::string>& cells, Tone tone) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t wide = columns_of(cells[i]);
    const std::string blanks(widths_[i] > wide ? widths_[i] - wide : 0, ' ');
    if (i > 0) text += "  ";
    if (right_[i]) text += blanks;
    text += cells[i];
    if (!right_[i]) text += blanks;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  out_.line(out_.tone(tone, text));
}

void SqlRows::finish(const std::vector<SqlColumn>& columns) {
  if (!begun_ && !columns.empty()) begin(columns);
  if (!waiting_.empty()) print_measured();
  if (form_ == SqlForm::table && out_.terminal() && begun_)
    out_.line(out_.tone(Tone::dim, "(" + std::to_string(count_) + (count_ == 1 ? " row)" : " rows)")));
}

}  // namespace muniment::cli
