#include "store/binary_rows.hpp"

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

void put_null(std::string& out) { put(out, std::int32_t{-1}); }

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

template <typename Value>
void field(std::string& out, const std::optional<Value>& value) {
  if (value) {
    field(out, *value);
  } else {
    put_null(out);
  }
}

// Calls visit(value) for every column after log_no, in order.
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

// COPY text: backslash, tab, newline and carriage return are escaped.
void copy_escaped(std::string& out, std::string_view text) {
  for (char c : text) {
    switch (c) {
      case '\\': out.append("\\\\"); break;
      case '\t': out.append("\\t"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      default: out.push_back(c);
    }
  }
}

// One line of COPY text, column by column.
class Line {
 public:
  explicit Line(std::string& out) : out_(out) {}
  ~Line() { out_.push_back('\n'); }
  Line(const Line&) = delete;

  Line& add(std::string_view text) { separate(); copy_escaped(out_, text); return *this; }
  Line& add(const std::string& text) { return add(std::string_view(text)); }
  Line& add(std::int64_t value) { return add(std::to_string(value)); }
  Line& add(const Uuid& id) { return add(id.text()); }
  Line& add(Time time) { return add(format_time(time)); }
  Line& bytes(const Hash& hash) { separate(); out_.append("\\\\x"); out_.append(to_hex(hash)); return *this; }
  Line& null() { separate(); out_.append("\\N"); return *this; }
  template <typename Value>
  Line& add(const std::optional<Value>& value) { return value ? add(*value) : null(); }
  Line& bytes(const std::optional<Hash>& hash) { return hash ? bytes(*hash) : null(); }

 private:
  void separate() {
    if (!first_) out_.push_back('\t');
    first_ = false;
  }
  std::string& out_;
  bool first_ = true;
};

struct Target {
  CopyTarget operator()(const ArtifactRow&) const {
    return {"artifact", "log_no, seq, artifact_id, run_id, step_id, path, hash, mime_type, size_bytes, created_at, metadata"};
  }
  CopyTarget operator()(const ManifestRow&) const {
    return {"manifest", "log_no, seq, manifest_id, run_id, base_id, salt, hash, size_bytes, manifest, created_at"};
  }
  CopyTarget operator()(const SnapshotRow&) const {
    return {"snapshot", "log_no, run_no, seq, run_seq, event_seq, salt, hash, state_hash, size_bytes, state, artifact_id, reason, created_at"};
  }
  CopyTarget operator()(const ClaimRow&) const {
    return {"claim", "log_no, seq, claim_id, run_id, step_id, text, pointers, status, created_at"};
  }
  CopyTarget operator()(const EvidenceRow&) const {
    return {"evidence", "log_no, seq, evidence_id, run_id, type, content, pointer, hash, validator_id, actor, created_at"};
  }
  CopyTarget operator()(const EvidenceLinkRow&) const {
    return {"evidence_link", "log_no, seq, claim_id, evidence_id, relation"};
  }
};

struct TextLine {
  std::int16_t log_no;
  std::string& out;
  void operator()(const ArtifactRow& r) const {
    Line(out).add(log_no).add(r.seq).add(r.artifact_id).add(r.run_id).add(r.step_id).add(r.path)
        .add(to_hex(r.hash)).add(r.mime_type).add(r.size_bytes).add(r.created_at).add(r.metadata);
  }
  void operator()(const ManifestRow& r) const {
    Line(out).add(log_no).add(r.seq).add(r.manifest_id).add(r.run_id).add(r.base_id).bytes(r.salt)
        .bytes(r.hash).add(r.size_bytes).add(r.manifest).add(r.created_at);
  }
  void operator()(const SnapshotRow& r) const {
    Line(out).add(log_no).add(r.run_no).add(r.seq).add(r.run_seq).add(r.event_seq).bytes(r.salt)
        .bytes(r.hash).bytes(r.state_hash).add(r.size_bytes).add(r.state).add(r.artifact_id)
        .add(r.reason).add(r.created_at);
  }
  void operator()(const ClaimRow& r) const {
    Line(out).add(log_no).add(r.seq).add(r.claim_id).add(r.run_id).add(r.step_id).add(r.text)
        .add(r.pointers).add(r.status).add(r.created_at);
  }
  void operator()(const EvidenceRow& r) const {
    Line(out).add(log_no).add(r.seq).add(r.evidence_id).add(r.run_id).add(r.type).add(r.content)
        .add(r.pointer).add(to_hex(r.hash)).add(r.validator_id).add(r.actor).add(r.created_at);
  }
  void operator()(const EvidenceLinkRow& r) const {
    Line(out).add(log_no).add(r.seq).add(r.claim_id).add(r.evidence_id).add(r.relation);
  }
};

}  // namespace

void append_binary_copy(std::int16_t log_no, std::span<const EventPtr> events, std::string& out) {
  out.append(std::string_view("PGCOPY\n\377\r\n\0", 11));
  put(out, std::int32_t{0});  // flags
  put(out, std::int32_t{0});  // header extension
  for (const EventPtr& event : events) {
    put(out, static_cast<std::int16_t>(event_columns + 1));
    field(out, log_no);
    visit_columns(*event, [&](const auto& value) { field(out, value); });
  }
  put(out, std::int16_t{-1});
}

CopyTarget copy_target(const Row& row) { return std::visit(Target{}, row); }

void append_copy_text(std::int16_t log_no, const Row& row, std::string& out) {
  std::visit(TextLine{log_no, out}, row);
}

}  // namespace muniment::store
