#include "client/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view codes[] = {"", "1", "2", "31", "32", "33", "36", "1;97;41"};

constexpr std::size_t gap_columns = 2;      // gap between two columns of a table
constexpr std::size_t cut_columns_min = 8;  // minimum width of a truncated column

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

// Returns the end of the colour sequence that starts at `at`; `at` if there is none.
std::size_t after_sequence(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\x1b[") return at;
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? at : end + 1;
}

}  // namespace

Output Output::to_stdout(bool raw, Advice advice) {
  Output out;
  out.advice_ = std::move(advice);
  out.terminal_ = ::isatty(STDOUT_FILENO) != 0;
  out.raw_ = raw && !out.terminal_;
  winsize size{};
  if (out.terminal_ && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
    out.width_ = size.ws_col;
  }
  return out;
}

std::string Output::tone(Tone tone, std::string_view text) const {
  static const bool refused = std::getenv("NO_COLOR") != nullptr;
  if (!terminal_ || refused || tone == Tone::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(tone)], text);
}

std::string Output::safe(std::string_view text) const { return raw_ ? std::string(text) : escape_for_terminal(text); }

std::string Output::safe_json(std::string_view json) const {
  return raw_ ? std::string(json) : escape_json_for_terminal(json);
}

std::string Output::one_line(std::string_view text) const {
  std::string joined;
  bool blank = false;
  for (char c : text) {
    const bool white = c == '\n' || c == '\t' || c == '\r' || c == ' ';
    if (white) {
      blank = !joined.empty();
    } else {
      if (blank) joined.push_back(' ');
      blank = false;
      joined.push_back(c);
    }
  }
  return safe(joined);
}

void Output::print(std::string_view text) const {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) failed_ = true;
}

void Output::line(std::string_view text) const {
  print(text);
  print("\n");
  if (terminal_) std::fflush(stdout);
}

void Output::json_line(std::string_view json) const {
  if (terminal_) {
    line(safe_json(json));
  } else {
    line(json);
  }
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = after_sequence(text, i); end > i) {
      i = end;
      continue;
    }
    if (!is_continuation(text[i])) ++columns;
    ++i;
  }
  return columns;
}

std::string fit(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  std::size_t seen = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    if (!is_continuation(text[end]) && ++seen >= columns) break;
    ++end;
  }
  return std::string(text.substr(0, end)) + "…";
}

// Returns the width of each column; 0: omitted.
std::vector<std::size_t> Table::widths(std::size_t width_max) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::size_t wide = 0;
  for (const std::size_t width : widths) wide += width + gap_columns;
  wide -= gap_columns;
  for (const std::size_t column : cut_) {
    std::size_t& width = widths[column];
    if (wide <= width_max || width <= cut_columns_min) continue;
    const std::size_t less = std::min(wide - width_max, width - cut_columns_min);
    width -= less;
    wide -= less;
    if (wide <= width_max || column == cut_.back()) continue;
    wide -= std::exchange(width, 0) + gap_columns;
  }
  return widths;
}

void Table::print_tabbed(const Output& out) const {
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    std::string text;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) text += (i == 0 ? "" : "\t") + rows_[r][i];
    out.line(text);
  }
}

void Table::omit_last_if_empty() {
  if (std::any_of(rows_.begin() + 1, rows_.end(), [](const auto& row) { return !row.back().empty(); })) return;
  for (auto& row : rows_) row.pop_back();
}

void Table::print(const Output& out) const {
  if (!out.terminal()) {
    print_tabbed(out);
    return;
  }
  const std::vector<std::size_t> wide = widths(out.width());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string text;
    std::size_t blanks = 0;  // written before the next cell, so that no line ends with blanks
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      if (wide[i] == 0) continue;
      const std::string cell = fit(rows_[r][i], wide[i]);
      text += std::string(blanks, ' ') + (r == 0 ? out.tone(Tone::dim, cell) : cell);
      blanks = wide[i] - columns_of(cell) + gap_columns;
    }
    out.line(text);
  }
}

std::string ago(std::string_view rfc3339, Time now) {
  const auto then = parse_time(rfc3339);
  if (!then) return std::string(rfc3339);
  const std::int64_t seconds = (now.micros - then->micros) / 1'000'000;
  if (seconds < 60) return fmt::format("{} s ago", std::max<std::int64_t>(seconds, 0));
  if (seconds < 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 86'400) return fmt::format("{} h ago", seconds / 3600);
  return std::string(rfc3339.substr(0, 10));
}

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total), shown_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::at(std::uint64_t done, std::string_view detail) {
  if (!shown_) return;
  constexpr std::uint64_t cells = 24;
  const std::uint64_t filled = total_ == 0 ? cells : std::min(cells, done * cells / total_);
  std::string bar;
  for (std::uint64_t i = 0; i < cells; ++i) bar += i < filled ? "━" : "╌";
  fmt::print(stderr, "\r\x1b[K{} {} {}/{} {}", what_, bar, done, total_, fit(escape_for_terminal(detail), 40));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace muniment::cli
