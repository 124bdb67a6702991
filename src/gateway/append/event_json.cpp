// Writes events and receipts as JSON text, without a tree of values.
#include "gateway/append/event_json.hpp"

#include <array>
#include <charconv>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment::gateway {
namespace {

constexpr std::string_view event_field_names[] = {
    "seq",     "run_id", "run_seq",  "recorded_at", "occurred_at", "origin", "type",     "schema_version",
    "step_id", "actor",  "event_id", "body",        "body_hash",   "salt",   "run_hash", "redacted"};

constexpr char hex_digits[] = "0123456789abcdef";

void append_hex(std::string& out, const std::uint8_t* bytes, std::size_t size) {
  const std::size_t start = out.size();
  out.resize(start + size * 2);
  char* to = out.data() + start;
  for (std::size_t i = 0; i < size; ++i) {
    *to++ = hex_digits[bytes[i] >> 4];
    *to++ = hex_digits[bytes[i] & 15];
  }
}

void append_uuid(std::string& out, const Uuid& id) {
  constexpr std::size_t parts[] = {4, 2, 2, 2, 6};
  std::size_t at = 0;
  for (std::size_t size : parts) {
    if (at > 0) out.push_back('-');
    append_hex(out, id.bytes.data() + at, size);
    at += size;
  }
}

void append_number(std::string& out, std::int64_t number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// Writes members one after the other. The names are literals that need no escaping.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_.push_back('{'); }

  void number(std::string_view name, std::int64_t value) {
    key(name);
    append_number(out_, value);
  }
  void hash(std::string_view name, const Hash& value) {
    key(name);
    out_.push_back('"');
    append_hex(out_, value.data(), value.size());
    out_.push_back('"');
  }
  void uuid(std::string_view name, const Uuid& value) {
    key(name);
    out_.push_back('"');
    append_uuid(out_, value);
    out_.push_back('"');
  }
  void time(std::string_view name, Time value) { plain(name, format_time(value)); }
  // Writes text that needs no escaping: ids, types, times.
  void plain(std::string_view name, std::string_view value) {
    key(name);
    out_.push_back('"');
    out_ += value;
    out_.push_back('"');
  }
  void text(std::string_view name, std::string_view value) { raw(name, json::quote(value)); }
  void raw(std::string_view name, std::string_view json) {
    key(name);
    out_ += json;
  }

 private:
  void key(std::string_view name) {
    if (out_.back() != '{') out_.push_back(',');
    out_.push_back('"');
    out_ += name;
    out_ += "\":";
  }
  std::string& out_;
};

}  // namespace

Result<EventFields> event_fields(const json::Value& names) {
  if (!names) return all_event_fields;
  EventFields fields = 0;
  for (json::Value item : names) {
    const std::string name = item.string_or("");
    std::size_t i = 0;
    while (i < std::size(event_field_names) && event_field_names[i] != name) ++i;
    if (i == std::size(event_field_names)) {
      return Error(Errc::invalid_argument, "fields: an event has no field " + json::quote(name));
    }
    fields |= EventFields{1} << i;
  }
  return fields;
}

void append_event_json(std::string& out, const events::Event& event, EventFields fields) {
  std::size_t i = 0;
  // The calls below follow the order of event_field_names.
  const auto wanted = [&] { return (fields >> i++ & 1u) != 0; };
  out.reserve(out.size() + 700 + (event.body ? event.body->size() : 0));
  Members members(out);
  if (wanted()) members.number("seq", event.seq);
  if (wanted()) members.plain("run_id", event.run_id);
  if (wanted()) members.number("run_seq", event.run_seq);
  if (wanted()) members.time("recorded_at", event.recorded_at);
  if (wanted() && event.occurred_at) members.time("occurred_at", *event.occurred_at);
  if (wanted()) members.plain("origin", name_of(event.origin));
  if (wanted()) members.text("type", event.type);
  if (wanted()) members.number("schema_version", event.schema_version);
  if (wanted() && event.step_id) members.text("step_id", *event.step_id);
  if (wanted()) members.text("actor", event.actor);
  if (wanted()) members.uuid("event_id", event.event_id);
  if (wanted()) members.raw("body", event.body ? std::string_view(*event.body) : "null");
  if (wanted()) members.hash("body_hash", event.body_hash);
  if (wanted()) {
    if (event.salt) {
      members.hash("salt", *event.salt);
    } else {
      members.raw("salt", "null");
    }
  }
  if (wanted()) members.hash("run_hash", event.run_hash);
  if (wanted() && !event.body) members.raw("redacted", "true");
  out.push_back('}');
}

std::string event_json(const events::Event& event, EventFields fields) {
  std::string text;
  append_event_json(text, event, fields);
  return text;
}

void append_receipt_json(std::string& out, const events::Receipt& receipt, std::string_view more) {
  out.reserve(out.size() + 480 + more.size());
  Members members(out);
  members.uuid("event_id", receipt.event_id);
  members.number("seq", receipt.seq);
  members.number("run_seq", receipt.run_seq);
  members.time("recorded_at", receipt.recorded_at);
  members.hash("body_hash", receipt.body_hash);
  members.hash("salt", receipt.salt);
  members.hash("run_hash", receipt.run_hash);
  members.hash("leaf_hash", receipt.leaf_hash);
  members.raw("duplicate", receipt.duplicate ? "true" : "false");
  out += more;
  out.push_back('}');
}

}  // namespace muniment::gateway
