// Splits a file of traces into the sources of runs: depending on its format, one per record or one for the whole file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/import/format.hpp"
#include "adapters/import/records.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct TraceSource {
  std::string name;  // the beginning of the run's id
  std::string text;
  std::uint64_t line = 0;  // of its first byte; 0: the whole file
  bool is_parts = false;   // its records are the parts of one run
};

class TraceSources {
 public:
  // Errors: those of opening the file.
  static Result<TraceSources> open(const std::string& path, const TraceFormat& format);

  // Returns the next source; nullopt at the end. Errors: those of RecordReader::next, after which `goes_on` says
  // whether there may be more; too_large if a run's file exceeds import_record_bytes_max.
  Result<std::optional<TraceSource>> next();
  bool goes_on() const { return reader_.goes_on() && !is_done_; }

  std::int64_t position() const { return is_done_ ? reader_.size() : reader_.position(); }
  std::int64_t size() const { return reader_.size(); }

 private:
  enum class Shape : std::uint8_t { records, document, parts };
  TraceSources(std::string path, RecordReader reader) : path_(std::move(path)), reader_(std::move(reader)) {}
  static Result<Shape> shape_of(const std::string& path, const TraceFormat& format);

  std::string path_;
  RecordReader reader_;
  Shape shape_ = Shape::records;
  bool is_done_ = false;
};

}  // namespace muniment::cli
