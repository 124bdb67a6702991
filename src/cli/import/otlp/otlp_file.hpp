// A file of OTLP/JSON (ExportTraceServiceRequest, ExportLogsServiceRequest; one, a list of them, or one a line, as the
// collector's file exporter writes) by traces. Spans of a trace may stand anywhere in it: the file is read once, and of
// each span is kept where it stands and what orders it; what it says is read again when its turn comes.
//
// Memory: the largest request, and some 150 bytes a span, of which a file may have otlp_items_max.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/import/records.hpp"

namespace muniment::cli {

inline constexpr std::size_t otlp_items_max = 4'000'000;
inline constexpr std::size_t otlp_scopes_max = 100'000;

enum class OtlpKind : std::uint8_t { other, model, tool, agent, log };

// A span, or a log record of one.
struct OtlpItem {
  std::uint64_t start_ns = 0;  // 0: not known
  std::uint64_t end_ns = 0;
  std::uint64_t id = 0;      // of the span; of a log record, 0
  std::uint64_t parent = 0;  // 0: none
  std::int64_t offset = 0;   // in the file
  std::uint32_t length = 0;
  std::uint32_t trace = 0;
  std::uint32_t scope = 0;
  std::uint32_t repair = 0;  // 1 + its request's place in repairs(); 0: none
  OtlpKind kind = OtlpKind::other;
};

// What stands around spans: the members of the resourceSpans and scopeSpans that hold them, as JSON.
struct OtlpScope {
  std::int64_t resource_offset = 0;
  std::uint32_t resource_length = 0;
  std::int64_t scope_offset = 0;
  std::uint32_t scope_length = 0;
  std::string others;  // what else stands there: schema URLs, mostly
};

// A request with characters that were replaced.
struct OtlpRepair {
  std::int64_t offset = 0;
  std::size_t length = 0;
  std::uint64_t line = 0;
  std::uint64_t replaced = 0;
};

struct OtlpTraceItems {
  std::string id;         // 32 hexadecimal digits, or what stands for an id that is none
  std::size_t first = 0;  // in items()
  std::size_t count = 0;
};

class OtlpFile {
 public:
  // `complain` is told what is wrong with a request; the others are read all the same. Errors: what reading the file
  // gives; too_large for more than `items_max` spans.
  static Result<OtlpFile> open(const std::string& path, const std::function<void(const std::string&)>& complain,
                               const std::function<void(std::int64_t, std::int64_t)>& progress = {},
                               std::size_t items_max = otlp_items_max);

  // In the order in which they begin in the file; the spans of each by time.
  const std::vector<OtlpTraceItems>& traces() const { return traces_; }
  const std::vector<OtlpItem>& items() const { return items_; }
  const OtlpScope& scope(std::uint32_t index) const { return scopes_[index]; }
  std::uint64_t duplicates() const { return duplicates_; }  // spans that stand there twice, byte for byte: once is kept

  Result<std::string> text(const OtlpItem& item) const { return read(item.offset, item.length); }
  // Readable JSON, and the bytes themselves.
  Result<std::string> read(std::int64_t offset, std::size_t length) const;
  Result<std::string> read_bytes(std::int64_t offset, std::size_t length) const;
  const std::vector<OtlpRepair>& repairs() const { return repairs_; }

 private:
  struct Around;  // where the values of the request that is being taken stand
  OtlpFile() = default;
  Status take_request(const TraceRecord& record);
  Status take_group(const Around& around, const json::Value& resources, bool is_log);
  Status add(const Around& around, const json::Value& value, std::uint32_t scope, bool is_log);
  Result<std::uint32_t> scope_of(const Around& around, const json::Value& resource, const json::Value& scope,
                                 std::string others);
  std::uint32_t trace_of(const json::Value& value);
  Status sort();
  Result<bool> equal(const OtlpItem& a, const OtlpItem& b) const;

  std::string path_;
  RegularFile file_;
  std::size_t items_max_ = otlp_items_max;
  std::vector<OtlpItem> items_;
  std::vector<OtlpScope> scopes_;
  std::vector<OtlpTraceItems> traces_;
  std::unordered_map<std::string, std::uint32_t> trace_index_;
  std::unordered_map<std::string, std::uint32_t> scope_index_;  // by the start of the hash of what it says
  std::vector<OtlpRepair> repairs_;
  std::uint64_t duplicates_ = 0;
};

// The order in which a trace happened: begins and ends of its items, by time, but no span before its parent and none
// that outlives it. A clock that jumps moves nothing out of its parent; parents that go in a circle are cut at the
// earliest.
struct OtlpOrder {
  static constexpr std::uint32_t none = 0xffffffff;
  struct Edge {
    std::uint32_t item = 0;  // in the trace
    bool end = false;
  };
  std::vector<Edge> edges;
  std::vector<std::uint32_t> parents;   // of each item, or none
  std::vector<std::uint32_t> top_down;  // all items, parents before children
};
// `items` by start.
OtlpOrder otlp_order(const OtlpItem* items, std::size_t count);

}  // namespace muniment::cli
