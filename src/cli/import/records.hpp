// A file of traces, one record at a time: the elements of a JSON list, the lines of a JSONL file, or one
// object after another. Memory is bounded by the largest record and not by the file. Whether a record is
// JSON is not judged here: where it ends, and in which line it begins, is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

inline constexpr std::size_t import_record_bytes_max = 256 << 20;
inline constexpr std::string_view no_record = "there is nothing in it";  // of a file without a record

struct TraceRecord {
  std::string_view text;     // until the next record is asked for
  std::uint64_t number = 0;  // from 1
  std::uint64_t line = 0;    // in which it begins, from 1
  std::int64_t offset = 0;   // of its first byte
};

class RecordReader {
 public:
  enum class Form : std::uint8_t { unknown, list, lines, objects };

  // Errors: what opening a file gives; invalid_argument for what is no regular file.
  static Result<RecordReader> open(const std::string& path);
  // Every line that is not empty is a record, whatever stands in it.
  static Result<RecordReader> open_lines(const std::string& path);

  // nullopt: there is no further record. Errors, which name the line: invalid_argument where the file ends
  // inside a record or is none of the three forms, too_large for a record over import_record_bytes_max.
  // After an error that ends nothing (`goes_on`) the next record can be asked for.
  Result<std::optional<TraceRecord>> next();
  bool goes_on() const { return !broken_; }

  Form form() const { return form_; }
  std::int64_t position() const { return base_ + static_cast<std::int64_t>(at_); }  // bytes read, for a progress bar
  std::int64_t size() const { return file_.size; }

 private:
  RecordReader(std::string path, RegularFile file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<bool> more();    // reads on; false at the file's end
  Result<bool> at_end();  // skips white space; true where nothing is left
  Status begin();         // finds out the form
  Result<std::optional<TraceRecord>> next_line();
  Result<std::optional<TraceRecord>> next_in_list();
  Result<TraceRecord> take_value();
  Result<std::size_t> value_end();  // past the value that begins at at_
  Result<std::size_t> line_end();   // the next line feed, or the file's end
  Status skip_line();
  void drop_taken();
  Error wrong(Errc code, std::uint64_t line, std::string what);

  std::string path_;
  RegularFile file_;
  Form form_ = Form::unknown;
  bool broken_ = false;
  std::string buffer_;
  std::int64_t base_ = 0;   // of buffer_ in the file
  std::size_t at_ = 0;      // in buffer_: what is not read yet
  std::uint64_t line_ = 1;  // that at_ is in
  std::uint64_t records_ = 0;
};

}  // namespace muniment::cli
