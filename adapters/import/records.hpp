// Reads a file of traces record by record: the elements of a JSON list, the lines of a JSONL file, or a sequence of
// objects. Memory is bounded by the largest record. It finds the beginning and end of each record but does not check
// that it is valid JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::size_t import_record_bytes_max = 256 << 20;
inline constexpr std::string_view no_record = "the file is empty";  // error for a file without a record

struct TraceRecord {
  std::string_view text;     // valid until the next record is read
  std::uint64_t number = 0;  // from 1
  std::uint64_t line = 0;    // line of its first byte, from 1
  std::int64_t offset = 0;   // offset of its first byte
};

class RecordReader {
 public:
  enum class Form : std::uint8_t { unknown, list, lines, objects };

  // Errors: those of opening a file; invalid_argument if it is not a regular file.
  static Result<RecordReader> open(const std::string& path);
  // Treats every nonempty line as a record, whatever its content.
  static Result<RecordReader> open_lines(const std::string& path);

  // Returns the next record; nullopt at the end. Errors, with the line: invalid_argument if the file ends inside a
  // record or has none of the three forms; too_large for a record over import_record_bytes_max. If `goes_on` is true
  // after an error, the caller can read the next record.
  Result<std::optional<TraceRecord>> next();
  bool goes_on() const { return !broken_; }

  Form form() const { return form_; }
  std::int64_t position() const { return base_ + static_cast<std::int64_t>(at_); }  // bytes read, for a progress bar
  std::int64_t size() const { return file_.size; }

 private:
  RecordReader(std::string path, RegularFile file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<bool> more();    // reads more; false at the end of the file
  Result<bool> at_end();  // skips white space; true at the end of the file
  Status begin();         // detects the form
  Result<std::optional<TraceRecord>> next_line();
  Result<std::optional<TraceRecord>> next_in_list();
  Result<TraceRecord> take_value();
  Result<std::size_t> value_end();  // end of the value that begins at at_
  Result<std::size_t> line_end();   // the next line feed or the end of the file
  Status skip_line();
  void drop_taken();
  Error wrong(Errc code, std::uint64_t line, std::string what);

  std::string path_;
  RegularFile file_;
  Form form_ = Form::unknown;
  bool broken_ = false;
  std::string buffer_;
  std::int64_t base_ = 0;   // offset of buffer_ in the file
  std::size_t at_ = 0;      // start of the unread part of buffer_
  std::uint64_t line_ = 1;  // line number of at_
  std::uint64_t records_ = 0;
};

}  // namespace muniment::cli
