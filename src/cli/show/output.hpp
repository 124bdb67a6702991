// What is printed: text made safe for a terminal, colours and tables only where a person reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/show/hints.hpp"

namespace muniment::cli {

enum class Tone : std::uint8_t { plain, bold, dim, red, green, yellow, cyan, loud };

class Output {
 public:
  // `raw` prints what came from outside as it is, which is refused on a terminal.
  static Output to_stdout(bool raw, Advice advice = {});

  bool terminal() const { return terminal_; }
  std::size_t width() const { return width_; }  // of the terminal, or 100

  std::string tone(Tone tone, std::string_view text) const;
  // Text from outside: escaped, line feeds and tabs kept.
  std::string safe(std::string_view text) const;
  // The same on one line: every run of white space is one blank.
  std::string one_line(std::string_view text) const;

  // A sentence of ours that names commands: with the options that say of which instance.
  std::string advised(std::string_view text) const { return advice_.with_place(text); }

  // The same as `safe` for JSON, which stays JSON.
  std::string safe_json(std::string_view json) const;

  void print(std::string_view text) const;      // as it is
  void line(std::string_view text) const;       // with a line feed
  void json_line(std::string_view json) const;  // byte for byte, but on a terminal safe
  bool failed() const { return failed_; }       // the reader of our output has gone

 private:
  Advice advice_;
  bool raw_ = false;
  bool terminal_ = false;
  std::size_t width_ = 100;
  mutable bool failed_ = false;
};

// Columns that are as wide as their widest cell on a terminal, separated by tabs elsewhere (and
// then without the heading, so that `cut` and `awk` see rows only). Cells are printed as given.
class Table {
 public:
  // `cut`: the columns that give way on a terminal too narrow for all, the first of them first. Each is cut to eight
  // columns, then left out; the last one is only cut.
  explicit Table(std::vector<std::string> heading, std::vector<std::size_t> cut = {})
      : rows_{std::move(heading)}, cut_(std::move(cut)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::size_t size() const { return rows_.size() - 1; }
  void print(const Output& out) const;

 private:
  std::vector<std::size_t> widths(std::size_t width_max) const;
  void print_tabbed(const Output& out) const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> cut_;
};

// Columns that the text takes on a terminal; colour sequences take none.
std::size_t columns_of(std::string_view text);
// Cut to at most `columns`, ending in "…" where it was cut.
std::string fit(std::string_view text, std::size_t columns);

// "3 min ago", for a table; the text itself where it is not a time.
std::string ago(std::string_view rfc3339, Time now);

// A bar on standard error while long work goes on; silent when that is not a terminal.
class Progress {
 public:
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  void at(std::uint64_t done, std::string_view detail = {});

 private:
  std::string what_;
  std::uint64_t total_;
  bool shown_;
  bool drawn_ = false;
};

}  // namespace muniment::cli
