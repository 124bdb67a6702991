#include "adapters/receive/otlp_protobuf.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <bit>
#include <span>
#include <vector>

#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::cli {
namespace {

namespace pb = google::protobuf::io;

// How a field is written in OTLP/JSON.
enum class Form : std::uint8_t {
  message,
  text,
  hex,
  base64,
  int64_text,
  fixed64_text,
  number32,
  fixed32,
  boolean,
  real
};

enum class Type : std::uint8_t {
  none,
  traces,
  resource_spans,
  scope_spans,
  span,
  event,
  link,
  status,
  logs,
  resource_logs,
  scope_logs,
  record,
  resource,
  scope,
  attribute,
  any,
  array,
  kvlist,
};

struct Field {
  std::uint32_t number;
  std::string_view name;
  Form form;
  bool repeated = false;
  Type type = Type::none;
};

constexpr Field traces_fields[] = {{1, "resourceSpans", Form::message, true, Type::resource_spans}};
constexpr Field logs_fields[] = {{1, "resourceLogs", Form::message, true, Type::resource_logs}};
constexpr Field resource_spans_fields[] = {{1, "resource", Form::message, false, Type::resource},
                                           {2, "scopeSpans", Form::message, true, Type::scope_spans},
                                           {3, "schemaUrl", Form::text}};
constexpr Field resource_logs_fields[] = {{1, "resource", Form::message, false, Type::resource},
                                          {2, "scopeLogs", Form::message, true, Type::scope_logs},
                                          {3, "schemaUrl", Form::text}};
constexpr Field scope_spans_fields[] = {{1, "scope", Form::message, false, Type::scope},
                                        {2, "spans", Form::message, true, Type::span},
                                        {3, "schemaUrl", Form::text}};
constexpr Field scope_logs_fields[] = {{1, "scope", Form::message, false, Type::scope},
                                       {2, "logRecords", Form::message, true, Type::record},
                                       {3, "schemaUrl", Form::text}};
constexpr Field resource_fields[] = {{1, "attributes", Form::message, true, Type::attribute},
                                     {2, "droppedAttributesCount", Form::number32}};
constexpr Field scope_fields[] = {{1, "name", Form::text},
                                  {2, "version", Form::text},
                                  {3, "attributes", Form::message, true, Type::attribute},
                                  {4, "droppedAttributesCount", Form::number32}};
constexpr Field span_fields[] = {{1, "traceId", Form::hex},
                                 {2, "spanId", Form::hex},
                                 {3, "traceState", Form::text},
                                 {4, "parentSpanId", Form::hex},
                                 {5, "name", Form::text},
                                 {6, "kind", Form::number32},
                                 {7, "startTimeUnixNano", Form::fixed64_text},
                                 {8, "endTimeUnixNano", Form::fixed64_text},
                                 {9, "attributes", Form::message, true, Type::attribute},
                                 {10, "droppedAttributesCount", Form::number32},
                                 {11, "events", Form::message, true, Type::event},
                                 {12, "droppedEventsCount", Form::number32},
                                 {13, "links", Form::message, true, Type::link},
                                 {14, "droppedLinksCount", Form::number32},
                                 {15, "status", Form::message, false, Type::status},
                                 {16, "flags", Form::fixed32}};
constexpr Field event_fields[] = {{1, "timeUnixNano", Form::fixed64_text},
                                  {2, "name", Form::text},
                                  {3, "attributes", Form::message, true, Type::attribute},
                                  {4, "droppedAttributesCount", Form::number32}};
constexpr Field link_fields[] = {{1, "traceId", Form::hex},
                                 {2, "spanId", Form::hex},
                                 {3, "traceState", Form::text},
                                 {4, "attributes", Form::message, true, Type::attribute},
                                 {5, "droppedAttributesCount", Form::number32},
                                 {6, "flags", Form::fixed32}};
constexpr Field status_fields[] = {{2, "message", Form::text}, {3, "code", Form::number32}};
constexpr Field record_fields[] = {{1, "timeUnixNano", Form::fixed64_text},
                                   {2, "severityNumber", Form::number32},
                                   {3, "severityText", Form::text},
                                   {5, "body", Form::message, false, Type::any},
                                   {6, "attributes", Form::message, true, Type::attribute},
                                   {7, "droppedAttributesCount", Form::number32},
                                   {8, "flags", Form::fixed32},
                                   {9, "traceId", Form::hex},
                                   {10, "spanId", Form::hex},
                                   {11, "observedTimeUnixNano", Form::fixed64_text},
                                   {12, "eventName", Form::text}};
constexpr Field attribute_fields[] = {{1, "key", Form::text}, {2, "value", Form::message, false, Type::any}};
constexpr Field any_fields[] = {{1, "stringValue", Form::text},
                                {2, "boolValue", Form::boolean},
                                {3, "intValue", Form::int64_text},
                                {4, "doubleValue", Form::real},
                                {5, "arrayValue", Form::message, false, Type::array},
                                {6, "kvlistValue", Form::message, false, Type::kvlist},
                                {7, "bytesValue", Form::base64}};
constexpr Field array_fields[] = {{1, "values", Form::message, true, Type::any}};
constexpr Field kvlist_fields[] = {{1, "values", Form::message, true, Type::attribute}};

std::span<const Field> fields_of(Type type) {
  switch (type) {
    case Type::none: return {};
    case Type::traces: return traces_fields;
    case Type::resource_spans: return resource_spans_fields;
    case Type::scope_spans: return scope_spans_fields;
    case Type::span: return span_fields;
    case Type::event: return event_fields;
    case Type::link: return link_fields;
    case Type::status: return status_fields;
    case Type::logs: return logs_fields;
    case Type::resource_logs: return resource_logs_fields;
    case Type::scope_logs: return scope_logs_fields;
    case Type::record: return record_fields;
    case Type::resource: return resource_fields;
    case Type::scope: return scope_fields;
    case Type::attribute: return attribute_fields;
    case Type::any: return any_fields;
    case Type::array: return array_fields;
    case Type::kvlist: return kvlist_fields;
  }
  return {};
}

constexpr std::uint32_t varint = 0, fixed64 = 1, delimited = 2, fixed32_type = 5;

std::uint32_t wire_type_of(Form form) {
  switch (form) {
    case Form::message:
    case Form::text:
    case Form::hex:
    case Form::base64: return delimited;
    case Form::fixed64_text:
    case Form::real: return fixed64;
    case Form::fixed32: return fixed32_type;
    case Form::int64_text:
    case Form::number32:
    case Form::boolean: return varint;
  }
  return varint;
}

class Reader {
 public:
  Reader(std::string_view bytes, std::size_t bytes_max)
      : input_(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size())),
        bytes_max_(bytes_max) {}

  // Returns the message that ends where the input does, or at the limit that the caller has pushed.
  Result<std::string> message(Type type, int level) {
    const std::span<const Field> fields = fields_of(type);
    std::vector<std::string> values(fields.size());
    while (const std::uint32_t tag = input_.ReadTagNoLastTag()) {
      std::size_t index = 0;
      while (index < fields.size() && fields[index].number != tag >> 3) ++index;
      if (index == fields.size() || (tag & 7) != wire_type_of(fields[index].form)) {
        if (!skip(tag)) return broken();
        continue;
      }
      const Field& field = fields[index];
      ASSIGN_OR_RETURN(std::string value, this->value(field, level));
      // The last value of a field counts; a message given twice is not merged.
      if (!field.repeated)
        values[index] = std::move(value);
      else
        (values[index] += values[index].empty() ? "" : ",") += value;
      if (values[index].size() > bytes_max_)
        return Error(Errc::too_large, fmt::format("the request is over {} bytes as JSON", bytes_max_));
    }
    if (!input_.ConsumedEntireMessage()) return broken();
    return object(fields, values);
  }

 private:
  static Error broken() {
    return Error(Errc::invalid_argument, "the body is not the protobuf message of this endpoint, or is truncated");
  }

  static std::string object(std::span<const Field> fields, const std::vector<std::string>& values) {
    json::Writer out;
    out.begin_object();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (values[i].empty()) continue;
      out.raw_member(fields[i].name, fields[i].repeated ? "[" + values[i] + "]" : values[i]);
    }
    return std::move(out.end_object()).text();
  }

  Result<std::string> value(const Field& field, int level) {
    const std::uint32_t wire = wire_type_of(field.form);
    if (wire == delimited) return delimited_value(field, level);
    std::uint64_t number = 0;
    std::uint32_t small = 0;
    const bool read = wire == varint    ? input_.ReadVarint64(&number)
                      : wire == fixed64 ? input_.ReadLittleEndian64(&number)
                                        : input_.ReadLittleEndian32(&small);
    if (!read) return broken();
    switch (field.form) {
      case Form::int64_text: return fmt::format("\"{}\"", static_cast<std::int64_t>(number));
      case Form::fixed64_text: return fmt::format("\"{}\"", number);
      case Form::number32: return fmt::format("{}", static_cast<std::int32_t>(number));
      case Form::fixed32: return fmt::format("{}", small);
      case Form::boolean: return std::string(number != 0 ? "true" : "false");
      case Form::real: return real(std::bit_cast<double>(number));
      case Form::message:
      case Form::text:
      case Form::hex:
      case Form::base64: break;
    }
    return broken();
  }

  static std::string real(double value) {
    if (value != value) return "\"NaN\"";
    if (value > 1.7976931348623157e308) return "\"Infinity\"";
    if (value < -1.7976931348623157e308) return "\"-Infinity\"";
    return std::move(json::Writer().number(value)).text();
  }

  Result<std::string> delimited_value(const Field& field, int level) {
    std::uint32_t size = 0;
    if (!input_.ReadVarint32(&size) || size > bytes_max_) return broken();
    const int left = input_.BytesUntilLimit();
    if (left >= 0 && size > static_cast<std::uint32_t>(left)) return broken();
    const bool is_too_deep = field.type == Type::any && level >= limits::otlp_protobuf_levels_max;
    if (field.form == Form::message && !is_too_deep) {
      const pb::CodedInputStream::Limit limit = input_.PushLimit(static_cast<int>(size));
      ASSIGN_OR_RETURN(std::string inner, message(field.type, level + 1));
      if (input_.BytesUntilLimit() != 0) return broken();
      input_.PopLimit(limit);
      return inner;
    }
    std::string bytes;
    if (!input_.ReadString(&bytes, static_cast<int>(size))) return broken();
    if (field.form == Form::hex) return json::quote(to_hex(bytes));
    if (field.form == Form::message) return "{\"bytesValue\":" + json::quote(to_base64(bytes)) + "}";
    if (field.form == Form::base64) return json::quote(to_base64(bytes));
    return json::quote(bytes);
  }

  bool skip(std::uint32_t tag) {
    std::uint64_t number = 0;
    std::uint32_t small = 0;
    switch (tag & 7) {
      case varint: return input_.ReadVarint64(&number);
      case fixed64: return input_.ReadLittleEndian64(&number);
      case fixed32_type: return input_.ReadLittleEndian32(&small);
      case delimited: return input_.ReadVarint32(&small) && input_.Skip(static_cast<int>(small));
      default: return false;
    }
  }

  pb::CodedInputStream input_;
  const std::size_t bytes_max_;
};

void write_text(pb::CodedOutputStream& out, std::uint32_t field, std::string_view text) {
  out.WriteTag(field << 3 | delimited);
  out.WriteVarint32(static_cast<std::uint32_t>(text.size()));
  out.WriteRaw(text.data(), static_cast<int>(text.size()));
}

}  // namespace

Result<std::string> otlp_json_of(OtlpSignal signal, std::string_view protobuf, std::size_t bytes_max) {
  if (protobuf.size() > bytes_max)
    return Error(Errc::too_large, fmt::format("the request is over {} bytes", bytes_max));
  return Reader(protobuf, bytes_max).message(signal == OtlpSignal::traces ? Type::traces : Type::logs, 1);
}

std::string otlp_response_protobuf(const OtlpRefused& refused) {
  if (refused.items == 0) return {};
  std::string partial, response;
  {
    pb::StringOutputStream stream(&partial);
    pb::CodedOutputStream out(&stream);
    out.WriteTag(1U << 3 | varint);
    out.WriteVarint64(refused.items);
    write_text(out, 2, refused.why);
  }
  pb::StringOutputStream stream(&response);
  pb::CodedOutputStream out(&stream);
  write_text(out, 1, partial);
  out.Trim();
  return response;
}

std::string otlp_status_protobuf(int code, std::string_view message) {
  std::string status;
  {
    pb::StringOutputStream stream(&status);
    pb::CodedOutputStream out(&stream);
    out.WriteTag(1U << 3 | varint);
    out.WriteVarint32(static_cast<std::uint32_t>(code));
    write_text(out, 2, message);
  }
  return status;
}

}  // namespace muniment::cli
