// Prints output: escapes text for a terminal; colours and aligned tables are used only on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "client/hints.hpp"

namespace muniment::cli {

enum class Tone : std::uint8_t { plain, bold, dim, red, green, yellow, cyan, loud };

class Output {
 public:
  // `raw` prints external text unescaped, except on a terminal.
  static Output to_stdout(bool raw, Advice advice = {});

  bool terminal() const { return terminal_; }
  std::size_t width() const { return width_; }  // columns of the terminal, or 100

  std::string tone(Tone tone, std::string_view text) const;
  // Escapes external text but keeps line feeds and tabs.
  std::string safe(std::string_view text) const;
  // Escapes the text and puts it on one line, with white space collapsed to single blanks.
  std::string one_line(std::string_view text) const;

  // Adds the options that name the instance to the commands in a message.
  std::string advised(std::string_view text) const { return advice_.with_place(text); }

  // Like `safe`, for JSON, which remains valid JSON.
  std::string safe_json(std::string_view json) const;

  void print(std::string_view text) const;      // unchanged
  void line(std::string_view text) const;       // with a line feed
  void json_line(std::string_view json) const;  // unchanged, but escaped on a terminal
  bool failed() const { return failed_; }       // the reader has closed the output

 private:
  Advice advice_;
  bool raw_ = false;
  bool terminal_ = false;
  std::size_t width_ = 100;
  mutable bool failed_ = false;
};

// A table: aligned columns on a terminal; otherwise separated by tabs and without a heading, so that `cut` and `awk`
// see only rows. Cells are printed unchanged.
class Table {
 public:
  // `cut` lists the columns to shorten on a narrow terminal, in this order. Each is truncated to eight columns, then
  // omitted; the last one is only truncated.
  explicit Table(std::vector<std::string> heading, std::vector<std::size_t> cut = {})
      : rows_{std::move(heading)}, cut_(std::move(cut)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Omits the last column if no row has a text in it.
  void omit_last_if_empty();
  std::size_t size() const { return rows_.size() - 1; }
  void print(const Output& out) const;

 private:
  std::vector<std::size_t> widths(std::size_t width_max) const;
  void print_tabbed(const Output& out) const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> cut_;
};

// Returns the width of the text on a terminal without colour sequences.
std::size_t columns_of(std::string_view text);
// Truncates the text to at most `columns`, ending in "…" if it was truncated.
std::string fit(std::string_view text, std::size_t columns);

// Returns "3 min ago" for a table; the text itself if it is not a time.
std::string ago(std::string_view rfc3339, Time now);

// A progress bar on standard error for long operations; silent if that is not a terminal.
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
