#include "store/append/binary_rows.hpp"

#include <array>
#include <type_traits>

namespace muniment::store {
namespace {

using events::Event;

constexpr std::int64_t postgres_epoch_micros = 946'684'800'000'000;  // 2000-01-01

template <typename Integer>
void put(std::string& out, Integer value) {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
  for (int shift = (static_cast<int>(sizeof bits) - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(bits >> shift));
  }
}

template <typename Integer>
void field(std::string& out, Integer value) {
  put(out, static_cast<std::int32_t>(sizeof value));
  put(out, value);
}

void field(std::string& out, Time time) { field(out, time.micros - postgres_epoch_micros); }

void field(std::string& out, std::string_view bytes) {
  put(out, static_cast<std::int32_t>(bytes.size()));
  out.append(bytes);
}

template <std::size_t size>
void field(std::string& out, const std::array<std::uint8_t, size>& bytes) {
  field(out, std::string_view(reinterpret_cast<const char*>(bytes.data()), size));
}

void field(std::string& out, const Uuid& id) { field(out, id.bytes); }
void field(std::string& out, const std::string& text) { field(out, std::string_view(text)); }

// A column of type jsonb: the version of its format, then the text.
struct Jsonb {
  const std::string& text;
};

void field(std::string& out, Jsonb json) {
  put(out, static_cast<std::int32_t>(json.text.size() + 1));
  out.push_back('\1');
  out.append(json.text);
}

template <typename Value>
void field(std::string& out, const std::optional<Value>& value) {
  if (value) {
    field(out, *value);
  } else {
    put(out, std::int32_t{-1});
  }
}

// Each function calls visit(value) for every column after log_no, in the order of its table.

template <typename Visitor>
void visit_columns(const Event& e, Visitor&& visit) {
  visit(e.seq);
  visit(e.run_no);
  visit(e.run_seq);
  visit(e.recorded_at);
  visit(e.occurred_at);
  visit(static_cast<std::int16_t>(e.origin));
  visit(e.type);
  visit(e.schema_version);
  visit(e.step_id);
  visit(e.actor);
  visit(e.event_id);
  visit(e.body_hash);
  visit(e.salt);
  visit(e.body);
  visit(e.run_hash);
}

// The tables beside `event`, in the order of Row's alternatives.
constexpr std::array<Table, std::variant_size_v<Row>> tables = {{
    {"artifact", "log_no, seq, artifact_id, run_id, step_id, path, hash, mime_type, size_bytes, created_at, metadata"},
    {"manifest", "log_no, seq, manifest_id, run_id, base_id, salt, hash, size_bytes, manifest, created_at"},
    {"snapshot",
     "log_no, run_no, seq, run_seq, event_seq, salt, hash, state_hash, size_bytes, state, artifact_id, reason, created_at"},
    {"claim", "log_no, seq, claim_id, run_id, step_id, text, pointers, status, created_at"},
    {"evidence",
     "log_no, seq, evidence_id, run_id, type, content, pointer, hash, validator_id, actor, corpus_id, index_id, chunk_id, span, task_id, command_id, created_at"},
    {"evidence_link", "log_no, seq, claim_id, run_id, evidence_id, relation"},
    {"claim_decision", "log_no, seq, claim_id, status"},
    {"task_change", "log_no, seq, run_id, task_id, change"},
    {"task_evidence", "log_no, seq, run_id, task_id, evidence_id, evidence_seq"},
}};

template <typename Visitor>
void visit_columns(const ArtifactRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.artifact_id);
  visit(r.run_id);
  visit(r.step_id);
  visit(r.path);
  visit(to_hex(r.hash));
  visit(r.mime_type);
  visit(r.size_bytes);
  visit(r.created_at);
  visit(Jsonb{r.metadata});
}

template <typename Visitor>
void visit_columns(const ManifestRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.manifest_id);
  visit(r.run_id);
  visit(r.base_id);
  visit(r.salt);
  visit(r.hash);
  visit(static_cast<std::int32_t>(r.size_bytes));
  visit(r.manifest);
  visit(r.created_at);
}

template <typename Visitor>
void visit_columns(const SnapshotRow& r, Visitor&& visit) {
  visit(r.run_no);
  visit(r.seq);
  visit(r.run_seq);
  visit(r.event_seq);
  visit(r.salt);
  visit(r.hash);
  visit(r.state_hash);
  visit(r.size_bytes);
  visit(r.state);
  visit(r.artifact_id);
  visit(r.reason);
  visit(r.created_at);
}

template <typename Visitor>
void visit_columns(const ClaimRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.claim_id);
  visit(r.run_id);
  visit(r.step_id);
  visit(r.text);
  visit(Jsonb{r.pointers});
  visit(r.status);
  visit(r.created_at);
}

template <typename Visitor>
void visit_columns(const EvidenceRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.evidence_id);
  visit(r.run_id);
  visit(r.type);
  visit(r.content);
  visit(r.pointer);
  visit(to_hex(r.hash));
  visit(r.validator_id);
  visit(r.actor);
  visit(r.corpus_id);
  visit(r.index_id);
  visit(r.chunk_id);
  visit(r.span);
  visit(r.task_id);
  visit(r.command_id);
  visit(r.created_at);
}

template <typename Visitor>
void visit_columns(const EvidenceLinkRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.claim_id);
  visit(r.run_id);
  visit(r.evidence_id);
  visit(r.relation);
}

template <typename Visitor>
void visit_columns(const ClaimDecisionRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.claim_id);
  visit(r.status);
}

template <typename Visitor>
void visit_columns(const TaskChangeRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.run_id);
  visit(r.task_id);
  visit(r.change);
}

template <typename Visitor>
void visit_columns(const TaskEvidenceRow& r, Visitor&& visit) {
  visit(r.seq);
  visit(r.run_id);
  visit(r.task_id);
  visit(r.evidence_id);
  visit(r.evidence_seq);
}

template <typename AnyRow>
void put_fields(std::int16_t log_no, const AnyRow& row, std::string& out) {
  field(out, log_no);
  visit_columns(row, [&](const auto& value) { field(out, value); });
}

template <typename AnyRow>
void put_tuple(std::int16_t log_no, const AnyRow& row, std::string& out) {
  std::int16_t fields = 1;
  visit_columns(row, [&](const auto&) { ++fields; });
  put(out, fields);
  put_fields(log_no, row, out);
}

void begin_stream(std::string& out) {
  out.append(std::string_view("PGCOPY\n\377\r\n\0", 11));
  put(out, std::int32_t{0});  // flags
  put(out, std::int32_t{0});  // header extension
}

void end_stream(std::string& out) { put(out, std::int16_t{-1}); }

}  // namespace

std::span<const Table> side_tables() { return tables; }
const Table& table_of(const Row& row) { return tables[row.index()]; }

void append_fields(std::int16_t log_no, const Event& event, std::string& out) { put_fields(log_no, event, out); }

void append_fields(std::int16_t log_no, const Row& row, std::string& out) {
  std::visit([&](const auto& r) { put_fields(log_no, r, out); }, row);
}

void append_copy(std::int16_t log_no, std::span<const EventPtr> events, std::string& out) {
  begin_stream(out);
  for (const EventPtr& event : events) put_tuple(log_no, *event, out);
  end_stream(out);
}

void append_copy(std::int16_t log_no, std::span<const Row> rows, std::string& out) {
  begin_stream(out);
  for (const Row& row : rows) std::visit([&](const auto& r) { put_tuple(log_no, r, out); }, row);
  end_stream(out);
}

}  // namespace muniment::store
