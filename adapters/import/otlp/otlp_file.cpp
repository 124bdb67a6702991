#include "adapters/import/otlp/otlp_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "adapters/import/events.hpp"
#include "adapters/import/guess.hpp"
#include "adapters/import/otlp/otlp_value.hpp"
#include "adapters/import/readable.hpp"
#include "adapters/import/records.hpp"
#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t scope_others_bytes_max = 4'096;

std::uint64_t number_of(const std::string& hex) {
  std::uint64_t number = 0;
  for (const char c : hex) number = number << 4 | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return number;
}

// An invalid id is distinguished by its text.
std::uint64_t span_number(const json::Value& id) {
  if (const std::string hex = otlp_id(id, 8); !hex.empty()) return number_of(hex);
  const std::string text = id.string_or("");
  if (text.find_first_not_of('0') == std::string::npos) return 0;
  return number_of(to_hex(sha256(text)).substr(0, 16)) | 1;
}

// A member by its name in OTLP/JSON, or by its name in the .proto files.
json::Value otlp_field(const json::Value& object, std::string_view name) {
  if (const json::Value member = object[name]) return member;
  return object[snake_case(name)];
}

}  // namespace

struct OtlpFile::Around {
  std::string_view text;
  std::int64_t offset = 0;
  const ReadableText* repaired = nullptr;

  std::size_t place(const char* at) const {
    const auto here = static_cast<std::size_t>(at - text.data());
    return repaired == nullptr ? here : repaired->source_offset(here);
  }
  std::int64_t of(const json::Value& value) const {
    return offset + static_cast<std::int64_t>(place(value.source().data()));
  }
  std::uint32_t length_of(const json::Value& value) const {
    const std::string_view source = value.source();
    return static_cast<std::uint32_t>(place(source.data() + source.size()) - place(source.data()));
  }
};

Result<OtlpFile> OtlpFile::open(const std::string& path, const std::function<void(const std::string&)>& complain,
                                const std::function<void(std::int64_t, std::int64_t)>& progress,
                                std::size_t items_max) {
  OtlpFile file;
  file.path_ = path;
  file.items_max_ = items_max;
  ASSIGN_OR_RETURN(file.file_, open_named(path));
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open(path));
  while (reader.goes_on()) {
    const auto record = reader.next();
    if (!record && is_halting(record.error().code)) return record.error();
    if (!record) {
      complain(record.error().message);
      continue;
    }
    if (!*record) break;
    if (const Status taken = file.take_request(**record); !taken) {
      if (taken.error().code == Errc::too_large) return taken.error();
      complain(fmt::format("line {}: {}", (*record)->line, taken.error().message));
    }
    if (progress) progress(reader.position(), reader.size());
  }
  RETURN_IF_ERROR(file.sort());
  return file;
}

Status OtlpFile::take_request(const TraceRecord& record) {
  auto document = json::parse(record.text);
  Around around{record.text, record.offset, nullptr};
  ReadableText repaired;
  if (!document) {
    repaired = with_readable_characters(record.text);
    auto readable = json::parse(std::string_view(repaired.text));
    if (!readable) return document.error();
    document = std::move(readable);
    around = {repaired.text, record.offset, &repaired};
    repairs_.push_back({record.offset, record.text.size(), record.line, repaired.replaced});
  }
  const json::Value request = document->root();
  const json::Value spans = otlp_field(request, "resourceSpans"), logs = otlp_field(request, "resourceLogs");
  if (!spans.is(json::Kind::array) && !logs.is(json::Kind::array)) {
    if (otlp_field(request, "resourceMetrics"))
      return Error(Errc::invalid_argument, "metrics cannot be imported; expected spans or logs");
    return Error(Errc::invalid_argument,
                 "this is not OTLP/JSON: it has no list \"resourceSpans\"" + looks_like(request));
  }
  has_snake_case_ = has_snake_case_ || request["resource_spans"] || request["resource_logs"];
  RETURN_IF_ERROR(take_group(around, spans, false));
  return take_group(around, logs, true);
}

Status OtlpFile::take_group(const Around& around, const json::Value& resources, bool is_log) {
  const std::string scopes_name = is_log ? "scopeLogs" : "scopeSpans";
  const std::string items_name = is_log ? "logRecords" : "spans";
  for (const json::Value resource : resources) {
    for (const json::Value scope : otlp_field(resource, scopes_name)) {
      json::Writer others;
      others.begin_object();
      write_members(others.key("resource").begin_object(), resource,
                    {scopes_name, snake_case(scopes_name), "resource"});
      write_members(others.end_object().key("scope").begin_object(), scope,
                    {items_name, snake_case(items_name), "scope"});
      ASSIGN_OR_RETURN(const std::uint32_t index,
                       scope_of(around, resource["resource"], scope["scope"], others.end_object().end_object().text()));
      for (const json::Value item : otlp_field(scope, items_name)) RETURN_IF_ERROR(add(around, item, index, is_log));
    }
  }
  return success();
}

Result<std::uint32_t> OtlpFile::scope_of(const Around& around, const json::Value& resource, const json::Value& scope,
                                         std::string others) {
  const std::string key = to_hex(sha256({resource.source(), "\n", scope.source(), "\n", others})).substr(0, 32);
  const auto [known, is_new] = scope_index_.emplace(key, static_cast<std::uint32_t>(scopes_.size()));
  if (!is_new) return known->second;
  if (scopes_.size() >= limits::otlp_scopes_max)
    return Error(Errc::too_large,
                 fmt::format("over {} different resources and scopes: split the file", limits::otlp_scopes_max));
  OtlpScope made;
  if (resource.present()) {
    made.resource_offset = around.of(resource);
    made.resource_length = around.length_of(resource);
  }
  if (scope.present()) {
    made.scope_offset = around.of(scope);
    made.scope_length = around.length_of(scope);
  }
  if (others.size() > scope_others_bytes_max)
    return Error(Errc::invalid_argument, "the attributes of a resource and its scope are too long");
  made.others = std::move(others);
  scopes_.push_back(std::move(made));
  return known->second;
}

std::uint32_t OtlpFile::trace_of(const json::Value& value) {
  std::string id = otlp_id(value["traceId"], 16);
  if (id.empty()) {
    const std::string text = value["traceId"].string_or("");
    id = text.find_first_not_of('0') == std::string::npos ? "untraced" : "odd-" + to_hex(sha256(text)).substr(0, 16);
  }
  const auto [known, is_new] = trace_index_.emplace(id, static_cast<std::uint32_t>(traces_.size()));
  if (is_new) traces_.push_back({std::move(id), 0, 0});
  return known->second;
}

Status OtlpFile::add(const Around& around, const json::Value& value, std::uint32_t scope, bool is_log) {
  if (!value.is(json::Kind::object)) return Error(Errc::invalid_argument, "a span is not an object");
  if (items_.size() == items_max_) {
    return Error(
        Errc::too_large,
        fmt::format("over {} spans in one file: split it, as the collector's file exporter does with `rotation`",
                    grouped(items_max_)));
  }
  OtlpItem item;
  item.scope = scope;
  if (around.repaired != nullptr) item.repair = static_cast<std::uint32_t>(repairs_.size());
  item.offset = around.of(value);
  item.length = around.length_of(value);
  if (has_snake_case_) {
    const std::string text = camel_case_json(value);
    const auto renamed = json::parse(std::string_view(text));
    if (!renamed) return renamed.error();
    describe(item, renamed->root(), is_log);
  } else {
    describe(item, value, is_log);
  }
  ++traces_[item.trace].count;
  items_.push_back(item);
  return success();
}

void OtlpFile::describe(OtlpItem& item, const json::Value& value, bool is_log) {
  item.trace = trace_of(value);
  if (is_log) {
    item.kind = OtlpKind::log;
    item.is_details = otlp_is_details_log(value);
    item.parent = span_number(value["spanId"]);
    item.start_ns = otlp_nanos(value["timeUnixNano"]).value_or(otlp_nanos(value["observedTimeUnixNano"]).value_or(0));
    return;
  }
  item.kind = otlp_kind(value);
  item.has_text = otlp_has_text(OtlpAttributes(value["attributes"]));
  item.id = span_number(value["spanId"]);
  item.parent = span_number(value["parentSpanId"]);
  item.start_ns = otlp_nanos(value["startTimeUnixNano"]).value_or(0);
  item.end_ns = otlp_nanos(value["endTimeUnixNano"]).value_or(0);
}

Result<std::string> OtlpFile::read(std::int64_t offset, std::size_t length) const {
  ASSIGN_OR_RETURN(std::string text, read_bytes(offset, length));
  if (!repairs_.empty()) text = with_readable_characters(text).text;
  if (!has_snake_case_) return text;
  const auto document = json::parse(std::string_view(text));
  return document ? camel_case_json(document->root()) : text;
}

Result<std::string> OtlpFile::read_bytes(std::int64_t offset, std::size_t length) const {
  ASSIGN_OR_RETURN(std::string text, read_at(file_.fd, offset, length));
  if (text.size() != length) return Error(Errc::unavailable, path_ + " was truncated while it was read");
  return text;
}

Result<bool> OtlpFile::equal(const OtlpItem& a, const OtlpItem& b) const {
  if (a.kind != b.kind || a.length != b.length || a.scope != b.scope || a.start_ns != b.start_ns) return false;
  ASSIGN_OR_RETURN(const std::string one, text(a));
  ASSIGN_OR_RETURN(const std::string other, text(b));
  return one == other;
}

// An exporter that retries sends a span twice.
Status OtlpFile::sort() {
  std::sort(items_.begin(), items_.end(), [](const OtlpItem& a, const OtlpItem& b) {
    return std::tie(a.trace, a.start_ns, a.id, a.parent, a.end_ns, a.length, a.offset) <
           std::tie(b.trace, b.start_ns, b.id, b.parent, b.end_ns, b.length, b.offset);
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const bool maybe = kept > 0 && items_[kept - 1].trace == items_[i].trace && items_[kept - 1].id == items_[i].id &&
                       items_[i].id != 0;
    if (maybe) {
      ASSIGN_OR_RETURN(const bool same, equal(items_[kept - 1], items_[i]));
      if (same) {
        ++duplicates_;
        --traces_[items_[i].trace].count;
        continue;
      }
    }
    items_[kept++] = items_[i];
  }
  items_.resize(kept);
  std::size_t first = 0;
  for (OtlpTraceItems& trace : traces_) {
    trace.first = first;
    first += trace.count;
  }
  return success();
}

}  // namespace muniment::cli
