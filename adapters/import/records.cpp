#include "adapters/import/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json/readable_characters.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t read_piece_bytes = 1 << 20;

bool is_white_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_blank_line(std::string_view text) { return std::all_of(text.begin(), text.end(), is_white_space); }

std::uint64_t lines_in(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// Finds the end of a JSON value byte by byte; only strings and brackets matter.
class Extent {
 public:
  // Returns true for the byte that ends the value; a scalar ends before `c`.
  bool ends_with(char c) {
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        in_string_ = false;
      return !in_string_ && depth_ == 0;
    }
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if ((c == '}' || c == ']') && depth_ > 0) return --depth_ == 0;
    return false;
  }
  bool inside() const { return in_string_ || depth_ > 0; }

 private:
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace

Result<RecordReader> RecordReader::open(const std::string& path) {
  ASSIGN_OR_RETURN(RegularFile file, open_named(path));
  return RecordReader(path, std::move(file));
}

Result<RecordReader> RecordReader::open_lines(const std::string& path) {
  ASSIGN_OR_RETURN(RecordReader reader, open(path));
  reader.form_ = Form::lines;
  return reader;
}

Error RecordReader::wrong(Errc code, std::uint64_t line, std::string what) {
  return Error(code, fmt::format("line {}: {}", line, what));
}

Result<bool> RecordReader::more() {
  std::string piece(read_piece_bytes, '\0');
  const std::int64_t offset = base_ + static_cast<std::int64_t>(buffer_.size());
  ASSIGN_OR_RETURN(const std::size_t got, read_into(file_.fd, offset, piece, path_));
  buffer_.append(piece, 0, got);
  return got > 0;
}

// Compacts rarely, so that each byte is moved at most once.
void RecordReader::drop_taken() {
  if (at_ < buffer_.size() / 2) return;
  base_ += static_cast<std::int64_t>(at_);
  buffer_.erase(0, at_);
  at_ = 0;
}

Result<bool> RecordReader::at_end() {
  for (;;) {
    while (at_ < buffer_.size() && is_white_space(buffer_[at_])) {
      if (buffer_[at_++] == '\n') ++line_;
    }
    if (at_ < buffer_.size()) return false;
    drop_taken();
    ASSIGN_OR_RETURN(const bool any, more());
    if (!any) return true;
  }
}

// An object that ends on its first line begins a JSONL file; otherwise the file is a sequence of objects of several
// lines.
Status RecordReader::begin() {
  RETURN_IF_ERROR(at_end());
  if (std::string_view(buffer_).substr(at_).starts_with(byte_order_mark)) at_ += byte_order_mark.size();
  ASSIGN_OR_RETURN(const bool empty, at_end());
  if (empty) {
    form_ = Form::lines;
    return success();
  }
  if (buffer_[at_] == '[') {
    form_ = Form::list;
    ++at_;
    return success();
  }
  if (buffer_[at_] != '{') {
    broken_ = true;
    return wrong(Errc::invalid_argument, line_, "not JSON: expected a list or an object");
  }
  ASSIGN_OR_RETURN(const std::size_t end, value_end());
  const std::string_view first(buffer_.data() + at_, end - at_);
  form_ = first.find('\n') == std::string_view::npos ? Form::lines : Form::objects;
  return success();
}

Result<std::size_t> RecordReader::value_end() {
  Extent extent;
  for (std::size_t i = at_;; ++i) {
    if (i - at_ > import_record_bytes_max) {
      broken_ = true;
      return wrong(Errc::too_large, line_, fmt::format("the record is over {} bytes", import_record_bytes_max));
    }
    if (i == buffer_.size()) {
      ASSIGN_OR_RETURN(const bool any, more());
      if (!any && !extent.inside()) return i;
      if (!any) {
        broken_ = true;
        return wrong(Errc::invalid_argument, line_, "the file ends inside the record that begins here");
      }
    }
    const char c = buffer_[i];
    if (!extent.inside() && (is_white_space(c) || c == ',' || c == ']' || c == '}')) return i;  // a scalar has ended
    if (extent.ends_with(c)) return i + 1;
  }
}

Result<TraceRecord> RecordReader::take_value() {
  drop_taken();
  ASSIGN_OR_RETURN(const std::size_t end, value_end());
  TraceRecord record{std::string_view(buffer_).substr(at_, end - at_), ++records_, line_, position()};
  line_ += lines_in(record.text);
  at_ = end;
  return record;
}

Result<std::size_t> RecordReader::line_end() {
  for (std::size_t searched = at_;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) return end;
    searched = buffer_.size();
    if (searched - at_ > import_record_bytes_max) return searched;
    ASSIGN_OR_RETURN(const bool any, more());
    if (!any) return buffer_.size();
  }
}

// Skips the rest of an overlong line.
Status RecordReader::skip_line() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos) {
      at_ = end + 1;
      ++line_;
      return success();
    }
    at_ = buffer_.size();
    drop_taken();
    ASSIGN_OR_RETURN(const bool any, more());
    if (!any) return success();
  }
}

Result<std::optional<TraceRecord>> RecordReader::next_line() {
  for (;;) {
    drop_taken();
    ASSIGN_OR_RETURN(const std::size_t end, line_end());
    if (end == at_ && end == buffer_.size()) return std::optional<TraceRecord>();
    const std::uint64_t line = line_;
    if (end - at_ > import_record_bytes_max) {
      ++records_;
      RETURN_IF_ERROR(skip_line());
      return wrong(Errc::too_large, line, fmt::format("the line is over {} bytes", import_record_bytes_max));
    }
    if (std::string_view(buffer_).substr(at_, end - at_).starts_with(byte_order_mark)) at_ += byte_order_mark.size();
    const TraceRecord record{std::string_view(buffer_).substr(at_, end - at_), records_ + 1, line, position()};
    at_ = std::min(end + 1, buffer_.size());
    if (end < buffer_.size()) ++line_;
    if (is_blank_line(record.text)) continue;
    ++records_;
    return std::optional(record);
  }
}

Result<std::optional<TraceRecord>> RecordReader::next_in_list() {
  ASSIGN_OR_RETURN(const bool ended, at_end());
  if (!ended && records_ > 0 && buffer_[at_] == ',') ++at_;
  ASSIGN_OR_RETURN(const bool cut, at_end());
  if (cut) {
    broken_ = true;
    return wrong(Errc::invalid_argument, line_, "the file ends inside its list");
  }
  if (buffer_[at_] == ']') {
    ++at_;
    broken_ = true;  // independent of the rest of the file
    ASSIGN_OR_RETURN(const bool done, at_end());
    if (done) return std::optional<TraceRecord>();
    return wrong(Errc::invalid_argument, line_, "unexpected data after the end of the list");
  }
  ASSIGN_OR_RETURN(TraceRecord record, take_value());
  if (record.text.empty()) {
    broken_ = true;
    return wrong(Errc::invalid_argument, record.line, "a value was expected in the list");
  }
  return std::optional(record);
}

Result<std::optional<TraceRecord>> RecordReader::next() {
  if (broken_) return std::optional<TraceRecord>();
  if (form_ == Form::unknown) RETURN_IF_ERROR(begin());
  if (form_ == Form::list) return next_in_list();
  if (form_ == Form::lines) return next_line();
  ASSIGN_OR_RETURN(const bool ended, at_end());
  if (ended) return std::optional<TraceRecord>();
  ASSIGN_OR_RETURN(TraceRecord record, take_value());
  if (!record.text.empty()) return std::optional(record);
  broken_ = true;
  return wrong(Errc::invalid_argument, record.line, "a value was expected");
}

}  // namespace muniment::cli
