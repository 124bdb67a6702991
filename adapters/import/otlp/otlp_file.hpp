// Indexes an OTLP/JSON file by trace (ExportTraceServiceRequest, ExportLogsServiceRequest: one, a list, or one per line
// as written by the collector's file exporter). The spans of a trace may be anywhere in the file: it is read once to
// record the offset and order of each span, and the contents of a span are read again when it is translated.
//
// Memory: the largest request and about 150 bytes per span; a file may have otlp_items_max spans.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/import/otlp/otlp_names.hpp"
#include "adapters/import/records.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// A span or a log record.
struct OtlpItem {
  std::uint64_t start_ns = 0;  // 0: unknown
  std::uint64_t end_ns = 0;
  std::uint64_t id = 0;      // id of the span; 0 for a log record
  std::uint64_t parent = 0;  // 0: none
  std::int64_t offset = 0;   // offset in the file
  std::uint32_t length = 0;
  std::uint32_t trace = 0;
  std::uint32_t scope = 0;
  std::uint32_t repair = 0;  // 1 + its request's place in repairs(); 0: none
  OtlpKind kind = OtlpKind::other;
  bool has_text = false;    // the span has an input or an output
  bool is_details = false;  // the log record is the event of an inference's details
};

// Context of spans: the other members of their resourceSpans and scopeSpans, as JSON.
struct OtlpScope {
  std::int64_t resource_offset = 0;
  std::uint32_t resource_length = 0;
  std::int64_t scope_offset = 0;
  std::uint32_t scope_length = 0;
  std::string others;  // remaining members, mostly schema URLs
};

// A request with characters that were replaced.
struct OtlpRepair {
  std::int64_t offset = 0;
  std::size_t length = 0;
  std::uint64_t line = 0;
  std::uint64_t replaced = 0;
};

struct OtlpTraceItems {
  std::string id;         // 32 hexadecimal digits, or a substitute for an invalid id
  std::size_t first = 0;  // index in items()
  std::size_t count = 0;
};

class OtlpFile {
 public:
  // `complain` receives the problem of an invalid request; reading continues with the next. Errors: those of reading
  // the file; too_large for more than `items_max` spans.
  static Result<OtlpFile> open(const std::string& path, const std::function<void(const std::string&)>& complain,
                               const std::function<void(std::int64_t, std::int64_t)>& progress = {},
                               std::size_t items_max = limits::otlp_items_max);

  // Traces in order of their first span in the file; the spans of each by time.
  const std::vector<OtlpTraceItems>& traces() const { return traces_; }
  const std::vector<OtlpItem>& items() const { return items_; }
  const OtlpScope& scope(std::uint32_t index) const { return scopes_[index]; }
  std::uint64_t duplicates() const { return duplicates_; }  // number of dropped byte-identical copies of spans

  Result<std::string> text(const OtlpItem& item) const { return read(item.offset, item.length); }
  // Readable JSON with the field names of OTLP/JSON, and the bytes themselves.
  Result<std::string> read(std::int64_t offset, std::size_t length) const;
  Result<std::string> read_bytes(std::int64_t offset, std::size_t length) const;
  const std::vector<OtlpRepair>& repairs() const { return repairs_; }

 private:
  struct Around;  // offsets of the values of the current request
  OtlpFile() = default;
  Status take_request(const TraceRecord& record);
  Status take_group(const Around& around, const json::Value& resources, bool is_log);
  Status add(const Around& around, const json::Value& value, std::uint32_t scope, bool is_log);
  void describe(OtlpItem& item, const json::Value& value, bool is_log);
  Result<std::uint32_t> scope_of(const Around& around, const json::Value& resource, const json::Value& scope,
                                 std::string others);
  std::uint32_t trace_of(const json::Value& value);
  Status sort();
  Result<bool> equal(const OtlpItem& a, const OtlpItem& b) const;

  std::string path_;
  RegularFile file_;
  std::size_t items_max_ = limits::otlp_items_max;
  std::vector<OtlpItem> items_;
  std::vector<OtlpScope> scopes_;
  std::vector<OtlpTraceItems> traces_;
  std::unordered_map<std::string, std::uint32_t> trace_index_;
  std::unordered_map<std::string, std::uint32_t> scope_index_;  // by 32 digits of its content's hash
  std::vector<OtlpRepair> repairs_;
  std::uint64_t duplicates_ = 0;
  bool has_snake_case_ = false;  // a request has the field names of the .proto files
};

// Orders the starts and ends of the items of a trace by time, with every span within its parent. A clock step does not
// move a span out of its parent; a cycle of parents is cut at its earliest span.
struct OtlpOrder {
  static constexpr std::uint32_t none = 0xffffffff;
  struct Edge {
    std::uint32_t item = 0;  // index in the trace
    bool end = false;
  };
  std::vector<Edge> edges;
  std::vector<std::uint32_t> parents;   // parent of each item, or none
  std::vector<std::uint32_t> top_down;  // all items, parents before children
};
// `items` by start.
OtlpOrder otlp_order(const OtlpItem* items, std::size_t count);

}  // namespace muniment::cli
