#include "verify/portable/bundle_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json/json.hpp"
#include "verify/log/run_facts.hpp"

namespace muniment::verify {
namespace {

Error bad_line(std::string_view what, std::string_view why) {
  return {Errc::corrupt, fmt::format("{}: {}", what, why)};
}

bool is_null(const json::Value& value) { return !value || value.kind() == json::Kind::null; }

bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Decodes bytes of a fixed size from their only valid form.
std::optional<std::string> bytes_of(const json::Value& value, std::size_t size) {
  const Text text = value.as_string();
  if (!text || text->size() != 2 * size || !is_lower_hex(*text)) return std::nullopt;
  return from_hex(*text);
}

// Accepts a value that the row may lack; only null means that it does.
bool is_text_or_null(const json::Value& value) { return value && (is_null(value) || value.is(json::Kind::string)); }
bool is_salt_or_null(const json::Value& value) { return value && (is_null(value) || bytes_of(value, 32)); }

// Parses a time in its only valid form.
std::optional<Time> time_of(const json::Value& value) {
  const Text text = value.as_string();
  const auto time = parse_time(text.value_or(""));
  return time && format_time(*time) == text ? time : std::nullopt;
}

// Converts a value to the form of the database. A value in another form is marked, so that the comparison finds it.
Text value_of(const json::Value& value, Kind kind) {
  if (is_null(value)) return std::nullopt;
  const bool wants_number = kind == Kind::integer;
  if (wants_number != value.is(json::Kind::number) || (!wants_number && !value.is(json::Kind::string))) {
    return fmt::format("{} (of another kind)", value.source());
  }
  if (kind == Kind::bytes && !is_lower_hex(value.string_or("")))
    return fmt::format("{} (not lower-case hex)", value.source());
  return wants_number ? std::string(value.source()) : value.string_or("");
}

class JsonRows : public RowSource {
 public:
  JsonRows(const TableSpec& spec, const LineFile& file) : spec_(spec), lines_(file) {}

  Result<bool> next(std::int64_t& seq, std::vector<Text>& values) override {
    ASSIGN_OR_RETURN(const auto line, lines_.next());
    if (!line) return false;
    const auto document = json::parse(*line);
    const json::Value row = document ? document->root() : json::Value();
    const auto position = row[spec_.seq_column].as_int();
    if (!position) return bad_line(spec_.name, document ? "a line without its seq" : document.error().message);
    seq = *position;
    values.clear();
    for (const Column& column : spec_.columns) {
      const json::Value value = row[column.name];
      values.push_back(value ? value_of(value, column.kind) : column.later ? Text() : Text("(no such column)"));
    }
    return true;
  }

 private:
  const TableSpec& spec_;
  LineReader lines_;
};

Result<TakenSnapshot> snapshot_of(std::string_view line, const std::map<std::string, ArtifactClaim>& artifacts) {
  const auto document = json::parse(line);
  if (!document) return bad_line("snapshots.jsonl", document.error().message);
  const json::Value row = document->root();
  TakenSnapshot snapshot;
  const auto number = [&row](std::string_view name) { return row[name].as_int().value_or(-1); };
  snapshot.run_no = number("run_no");
  snapshot.seq = number("seq");
  snapshot.run_seq = number("run_seq");
  snapshot.event_seq = number("event_seq");
  snapshot.size_bytes = number("size_bytes");
  snapshot.salt = bytes_of(row["salt"], 32);
  snapshot.state = row["state"].as_string();
  const auto hash = bytes_of(row["hash"], 32), state_hash = bytes_of(row["state_hash"], 32);
  if (!hash || !state_hash || !is_salt_or_null(row["salt"]) || !is_text_or_null(row["state"]) ||
      !is_text_or_null(row["artifact_id"])) {
    return bad_line("snapshots.jsonl", "a line with a missing or invalid member of a snapshot");
  }
  snapshot.hash = *hash;
  snapshot.state_hash = *state_hash;
  snapshot.artifact_id = row["artifact_id"].string_or("");
  const auto artifact = artifacts.find(snapshot.artifact_id);
  if (artifact != artifacts.end()) snapshot.artifact_hash = artifact->second.hash;
  return snapshot;
}

class JsonSnapshots : public SnapshotSource {
 public:
  // `places` has the start of each line, by seq.
  JsonSnapshots(const LineFile& file, std::vector<std::pair<std::int64_t, std::int64_t>> places,
                const std::map<std::string, ArtifactClaim>& artifacts)
      : file_(file), places_(std::move(places)), artifacts_(artifacts) {}

  Result<std::optional<TakenSnapshot>> next() override {
    if (next_ == places_.size()) return std::optional<TakenSnapshot>();
    LineReader reader(file_, places_[next_++].second);
    ASSIGN_OR_RETURN(const auto line, reader.next());
    ASSIGN_OR_RETURN(TakenSnapshot snapshot, snapshot_of(line.value_or(""), artifacts_));
    return std::optional(std::move(snapshot));
  }

 private:
  const LineFile& file_;
  std::vector<std::pair<std::int64_t, std::int64_t>> places_;
  const std::map<std::string, ArtifactClaim>& artifacts_;
  std::size_t next_ = 0;
};

}  // namespace

constexpr std::size_t event_members = 15;  // docs/format.md, Run bundles

Result<std::unique_ptr<BundleEvent>> parse_bundle_event(std::string_view line) {
  const auto document = json::parse(line);
  if (!document) return bad_line("events.jsonl", document.error().message);
  const json::Value row = document->root();
  auto event = std::make_unique<BundleEvent>();
  EventView& view = event->view;
  const auto seq = row["seq"].as_int(), run_no = row["run_no"].as_int(), run_seq = row["run_seq"].as_int(),
             origin = row["origin"].as_int(), schema_version = row["schema_version"].as_int();
  const auto recorded_at = time_of(row["recorded_at"]);
  const auto event_id = parse_uuid(text_of(row, "event_id").value_or(""));
  auto body_hash = bytes_of(row["body_hash"], 32), run_hash = bytes_of(row["run_hash"], 32);
  const Text type = text_of(row, "type"), actor = text_of(row, "actor");
  const bool all_there = row["occurred_at"] && is_text_or_null(row["step_id"]) && is_salt_or_null(row["salt"]) &&
                         is_text_or_null(row["body"]);
  if (row.size() != event_members || !seq || !run_no || !run_seq || !origin || !schema_version || !recorded_at ||
      !event_id || !body_hash || !run_hash || !type || !actor || !all_there) {
    return bad_line("events.jsonl", "a line with a missing, invalid or unknown member of an event");
  }
  view.seq = *seq;
  view.run_no = *run_no;
  view.run_seq = *run_seq;
  view.origin = *origin;
  view.schema_version = *schema_version;
  view.recorded_at = *recorded_at;
  if (!is_null(row["occurred_at"])) {
    view.occurred_at = time_of(row["occurred_at"]);
    if (!view.occurred_at) return bad_line("events.jsonl", "occurred_at is not a time");
  }
  const auto keep = [](std::string& place, std::string bytes) {
    place = std::move(bytes);
    return std::string_view(place);
  };
  view.type = keep(event->type, *type);
  view.actor = keep(event->actor, *actor);
  view.event_id = keep(event->event_id, std::string(event_id->bytes.begin(), event_id->bytes.end()));
  view.body_hash = keep(event->body_hash, *std::move(body_hash));
  view.run_hash = keep(event->run_hash, *std::move(run_hash));
  if (!is_null(row["step_id"])) view.step_id = keep(event->step_id, row["step_id"].string_or(""));
  if (!is_null(row["salt"])) view.salt = keep(event->salt, *bytes_of(row["salt"], 32));
  if (!is_null(row["body"])) view.body = keep(event->body, row["body"].string_or(""));
  return event;
}

RowSources bundle_rows(const BundleArchive& bundle) {
  constexpr std::array texts{BundleText::artifacts, BundleText::manifests, BundleText::snapshots, BundleText::claims,
                             BundleText::evidence};
  RowSources sources;  // a bundle has no table of links: their events hold them
  for (std::size_t i = 0; i < texts.size(); ++i)
    sources[i] = std::make_unique<JsonRows>(table_specs[i], bundle.text(texts[i]));
  return sources;
}

Result<std::map<std::string, ArtifactClaim>> artifact_claims(const BundleArchive& bundle) {
  std::map<std::string, ArtifactClaim> claims;
  LineReader lines(bundle.text(BundleText::artifacts));
  while (true) {
    ASSIGN_OR_RETURN(const auto line, lines.next());
    if (!line) return claims;
    const auto document = json::parse(*line);
    if (!document) return bad_line("artifacts.jsonl", document.error().message);
    const json::Value row = document->root();
    claims.insert_or_assign(row["artifact_id"].string_or(""),
                            ArtifactClaim{row["seq"].as_int().value_or(-1), row["hash"].string_or(""),
                                          row["size_bytes"].as_int().value_or(-1)});
  }
}

Result<std::unique_ptr<SnapshotSource>> bundle_snapshots(const BundleArchive& bundle,
                                                         const std::map<std::string, ArtifactClaim>& artifacts) {
  const LineFile& file = bundle.text(BundleText::snapshots);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  LineReader lines(file);
  while (true) {
    ASSIGN_OR_RETURN(const auto line, lines.next());
    if (!line) break;
    const auto document = json::parse(*line);
    places.emplace_back(document ? document->root()["seq"].as_int().value_or(-1) : -1, lines.line_at());
  }
  std::sort(places.begin(), places.end());
  return std::unique_ptr<SnapshotSource>(std::make_unique<JsonSnapshots>(file, std::move(places), artifacts));
}

}  // namespace muniment::verify
