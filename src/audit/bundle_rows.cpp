// Writes rows as lines of a bundle.
#include "audit/bundle_rows.hpp"

#include <optional>

#include "base/json/json.hpp"

namespace muniment::audit {
namespace {

// Writes one line, its members in the order of the table's columns.
class Line {
 public:
  Line() { writer_.begin_object(); }

  Line& number(std::string_view name, std::int64_t value) {
    writer_.member(name, value);
    return *this;
  }
  Line& text(std::string_view name, std::string_view value) {
    writer_.member(name, value);
    return *this;
  }
  Line& text(std::string_view name, const std::optional<std::string>& value) {
    return value ? text(name, std::string_view(*value)) : null(name);
  }
  Line& hex(std::string_view name, const Hash& value) { return text(name, std::string_view(to_hex(value))); }
  Line& hex(std::string_view name, const std::optional<Salt>& value) { return value ? hex(name, *value) : null(name); }
  Line& id(std::string_view name, const Uuid& value) { return text(name, std::string_view(value.text())); }
  Line& id(std::string_view name, const std::optional<Uuid>& value) { return value ? id(name, *value) : null(name); }
  Line& time(std::string_view name, Time value) { return text(name, std::string_view(format_time(value))); }
  Line& time(std::string_view name, const std::optional<Time>& value) {
    return value ? time(name, *value) : null(name);
  }

  void append_to(std::string& out) {
    out += writer_.end_object().text();
    out.push_back('\n');
  }

 private:
  Line& null(std::string_view name) {
    writer_.key(name).null();
    return *this;
  }
  json::Writer writer_;
};

}  // namespace

void append_bundle_line(std::string& out, std::int16_t, const events::Event& event) {
  Line()
      .number("seq", event.seq)
      .number("run_no", event.run_no)
      .number("run_seq", event.run_seq)
      .time("recorded_at", event.recorded_at)
      .time("occurred_at", event.occurred_at)
      .number("origin", static_cast<int>(event.origin))
      .text("type", std::string_view(event.type))
      .number("schema_version", event.schema_version)
      .text("step_id", event.step_id)
      .text("actor", std::string_view(event.actor))
      .id("event_id", event.event_id)
      .hex("body_hash", event.body_hash)
      .hex("salt", event.salt)
      .text("body", event.body)
      .hex("run_hash", event.run_hash)
      .append_to(out);
}

void append_bundle_line(std::string& out, std::int16_t log_no, const store::ArtifactRow& row) {
  Line()
      .id("artifact_id", row.artifact_id)
      .text("run_id", std::string_view(row.run_id))
      .text("step_id", std::string_view(row.step_id))
      .text("path", std::string_view(row.path))
      .hex("hash", row.hash)
      .text("mime_type", std::string_view(row.mime_type))
      .number("size_bytes", row.size_bytes)
      .time("created_at", row.created_at)
      .text("metadata", std::string_view(row.metadata))
      .number("log_no", log_no)
      .number("seq", row.seq)
      .append_to(out);
}

void append_bundle_line(std::string& out, std::int16_t log_no, const store::ManifestRow& row) {
  Line()
      .id("manifest_id", row.manifest_id)
      .number("log_no", log_no)
      .number("seq", row.seq)
      .text("run_id", std::string_view(row.run_id))
      .id("base_id", row.base_id)
      .hex("salt", row.salt)
      .hex("hash", row.hash)
      .number("size_bytes", row.size_bytes)
      .text("manifest", row.manifest)
      .time("created_at", row.created_at)
      .append_to(out);
}

void append_bundle_line(std::string& out, std::int16_t log_no, const store::SnapshotRow& row) {
  Line()
      .number("log_no", log_no)
      .number("run_no", row.run_no)
      .number("seq", row.seq)
      .number("run_seq", row.run_seq)
      .number("event_seq", row.event_seq)
      .hex("salt", row.salt)
      .hex("hash", row.hash)
      .hex("state_hash", row.state_hash)
      .number("size_bytes", row.size_bytes)
      .text("state", row.state)
      .id("artifact_id", row.artifact_id)
      .text("reason", std::string_view(row.reason))
      .time("created_at", row.created_at)
      .append_to(out);
}

void append_bundle_line(std::string& out, std::int16_t log_no, const store::ClaimRow& row) {
  Line()
      .id("claim_id", row.claim_id)
      .number("log_no", log_no)
      .number("seq", row.seq)
      .text("run_id", std::string_view(row.run_id))
      .text("step_id", row.step_id)
      .text("text", std::string_view(row.text))
      .text("pointers", std::string_view(row.pointers))
      .text("status", std::string_view(row.status))
      .time("created_at", row.created_at)
      .append_to(out);
}

void append_bundle_line(std::string& out, std::int16_t log_no, const store::EvidenceRow& row) {
  Line()
      .id("evidence_id", row.evidence_id)
      .number("log_no", log_no)
      .number("seq", row.seq)
      .text("run_id", std::string_view(row.run_id))
      .text("type", std::string_view(row.type))
      .text("content", row.content)
      .text("pointer", row.pointer)
      .hex("hash", row.hash)
      .text("validator_id", row.validator_id)
      .text("actor", std::string_view(row.actor))
      .time("created_at", row.created_at)
      .text("corpus_id", row.corpus_id)
      .text("index_id", row.index_id)
      .text("chunk_id", row.chunk_id)
      .text("span", row.span)
      .text("task_id", row.task_id)
      .id("command_id", row.command_id)
      .append_to(out);
}

}  // namespace muniment::audit
