// Holds events against the log's tree, and rows against their events.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/json/json.hpp"
#include "base/json/json_tree.hpp"
#include "base/log.hpp"
#include "events/entry.hpp"
#include "store/files/artifact_files.hpp"
#include "store/files/artifact_row.hpp"
#include "store/logs/erasure.hpp"
#include "store/read/document_row.hpp"
#include "store/read/reader_impl.hpp"
#include "store/read/recorded.hpp"

namespace muniment::store {
namespace {

constexpr std::int64_t confirmed_per_page = 1'024;  // events without bodies
constexpr std::chrono::seconds published_within{10};

using events::Event;
using RunPosition = std::pair<std::int64_t, std::int64_t>;  // run_no, run_seq

const Recorded::Facts* facts_of(const Reader::Impl& impl) {
  return impl.place.recorded ? impl.place.recorded->facts() : nullptr;
}

Error differs(const Event& event, std::string_view how) {
  return {Errc::corrupt, fmt::format("event {} {}: the log was changed. Run muniment-verify", event.seq, how)};
}

bool body_fits(const Event& event) {
  if (!event.body) return true;  // erased, or archived and not read
  if (!event.salt) return false;
  const std::string_view salt(reinterpret_cast<const char*>(event.salt->data()), event.salt->size());
  return sha256({salt, *event.body}) == event.body_hash;
}

// Returns the run_hash to which each of these events is chained, from the other events or from the table.
Result<std::map<RunPosition, Hash>> chained_to(Reader::Impl& impl, const std::vector<Event>& events) {
  std::map<RunPosition, Hash> known;
  for (const Event& event : events) known.emplace(RunPosition{event.run_no, event.run_seq}, event.run_hash);
  std::vector<std::int64_t> runs, positions;
  for (const Event& event : events) {
    if (event.run_seq == 0 || known.contains({event.run_no, event.run_seq - 1})) continue;
    runs.push_back(event.run_no);
    positions.push_back(event.run_seq - 1);
  }
  if (runs.empty()) return known;
  return guarded(impl.connection, "reading the hashes before events", [&] {
    for (const pqxx::row& row :
         query(impl.connection, "previous_run_hashes",
               "SELECT e.run_no, e.run_seq, e.run_hash FROM unnest($2::bigint[], $3::bigint[]) AS u(run_no, run_seq) "
               "JOIN event e ON e.log_no = $1 AND e.run_no = u.run_no AND e.run_seq = u.run_seq",
               impl.params().integers(runs).integers(positions))) {
      known.emplace(RunPosition{integer_of(row[0]), integer_of(row[1])}, hash_of(row[2]));
    }
    return known;
  });
}

// Returns those of the seqs that an event.redacted names which is in the log's tree.
Result<std::set<std::int64_t>> announced_erasures(Reader& reader, Reader::Impl& impl,
                                                  const std::vector<std::int64_t>& seqs) {
  std::set<std::int64_t> named;
  if (seqs.empty()) return named;
  ASSIGN_OR_RETURN(const auto found, guarded(impl.connection, "reading announcements of erasures", [&] {
                     auto events = rows_of(
                         query(impl.connection, "erasures_of",
                               "SELECT " MUNIMENT_EVENT_COLUMNS
                               " FROM event WHERE log_no = $1 AND type = 'event.redacted' AND salt IS NOT NULL AND "
                               "((body->>'seq')::bigint = ANY ($2::bigint[]) OR (body->>'seq')::bigint IS NULL)",
                               impl.params().integers(seqs)),
                         event_of);
                     impl.fill(events);
                     impl.name_runs(events);
                     return events;
                   }));
  ASSIGN_OR_RETURN(const auto differing, reader.differing(found));
  for (const Event& event : found) {
    if (const auto wrong = differing.find(event.seq); wrong != differing.end()) {
      if (is_transient(wrong->second.code)) return wrong->second;
      continue;
    }
    const auto body = event.body ? json::parse(*event.body) : Result<json::Document>(Error(Errc::corrupt, "archived"));
    if (body) named.insert(body->root()["seq"].as_int().value_or(-1));
  }
  return named;
}

std::vector<std::int64_t> erased_among(const std::vector<Event>& events) {
  std::vector<std::int64_t> seqs;
  for (const Event& event : events) {
    if (!event.salt) seqs.push_back(event.seq);
  }
  return seqs;
}

}  // namespace

Result<std::map<std::int64_t, Error>> Reader::differing(const std::vector<Event>& events) {
  std::map<std::int64_t, Error> found;
  const Recorded::Facts* const facts = facts_of(*impl_);
  if (facts == nullptr) return found;
  if (facts->lives) RETURN_IF_ERROR(facts->lives->refused());
  if (events.empty()) return found;
  const Deadline until = std::chrono::steady_clock::now() + published_within;  // for all events together
  ASSIGN_OR_RETURN(const auto chains, chained_to(*impl_, events));
  ASSIGN_OR_RETURN(const auto erased, announced_erasures(*this, *impl_, erased_among(events)));
  for (const Event& event : events) {
    const auto previous = chains.find({event.run_no, event.run_seq - 1});
    if (event.run_seq > 0 && previous == chains.end()) {
      found.emplace(event.seq, differs(event, "follows an event of its run that is missing"));
      continue;
    }
    const events::EntryHashes hashes =
        events::hash_entry(facts->log_id, event, event.run_seq > 0 ? previous->second : Hash{});
    Status holds = success();
    if (!event.salt && !erased.contains(event.seq)) {
      holds = differs(event, "lacks its body, which no event erased");
    } else if (!body_fits(event)) {
      holds = differs(event, "has a body that does not match its hash");
    } else if (hashes.run_hash != event.run_hash) {
      holds = differs(event, "does not match its hash");
    } else {
      holds = facts->tree->holds(event, hashes.leaf_hash, until);
    }
    if (!holds && is_transient(holds.error().code)) return holds.error();
    if (!holds) found.emplace(event.seq, holds.error());
  }
  return found;
}

Status Reader::confirm(const std::vector<Event>& events) {
  ASSIGN_OR_RETURN(const auto found, differing(events));
  return found.empty() ? success() : Status(found.begin()->second);
}

Result<std::vector<Event>> Reader::recorded_events(SeqSpan span, std::size_t limit, std::size_t body_bytes_max) {
  EventFilter filter;
  filter.from_seq = span.from;
  filter.to_seq = span.to - 1;
  ASSIGN_OR_RETURN(auto found, events(filter, limit, body_bytes_max));
  if (facts_of(*impl_) == nullptr) return found;
  std::int64_t seq = span.from;
  for (const Event& event : found) seq += event.seq == seq ? 1 : 0;
  if (seq != span.from + std::ssize(found) || (found.empty() && span.from < span.to))
    return Error(Errc::corrupt, fmt::format("event {} is missing: the log was changed. Run muniment-verify", seq));
  RETURN_IF_ERROR(confirm(found));
  return found;
}

Status Reader::confirm(const std::vector<EvidenceRow>& evidence) { return hold_evidence(*this, *impl_, evidence); }

Status Reader::confirm(const std::vector<SnapshotRow>& snapshots) { return hold_snapshots(*this, *impl_, snapshots); }

Status Reader::confirm_run(const EventFilter& filter, std::int64_t from_seq, std::int64_t to_seq) {
  if (facts_of(*impl_) == nullptr || !filter.run_no) return success();
  std::int64_t from = std::max<std::int64_t>(filter.from_run_seq.value_or(0), 0);
  const std::int64_t to = filter.to_run_seq.value_or(std::numeric_limits<std::int64_t>::max());
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(
        const auto events, guarded(impl_->connection, "reading the events of a run", [&] {
          auto page =
              rows_of(query(impl_->connection, "events_of_run",
                            "SELECT " MUNIMENT_EVENT_COLUMNS_WITH(
                                "NULL::json") " FROM event "
                                              "WHERE log_no = $1 AND run_no = $2 AND run_seq BETWEEN $3 AND $4 AND "
                                              "seq BETWEEN $5 AND $6 ORDER BY run_seq LIMIT $7",
                            impl_->params()
                                .integer(*filter.run_no)
                                .integer(from)
                                .integer(to)
                                .integer(from_seq)
                                .integer(to_seq)
                                .integer(confirmed_per_page)),
                      event_of);
          impl_->name_runs(page);
          return page;
        }));
    RETURN_IF_ERROR(confirm(events));
    more = std::ssize(events) == confirmed_per_page;
    if (more) from = events.back().run_seq + 1;
  }
  return success();
}

Status Reader::check_run(std::int64_t run_no, std::int64_t from_run_seq, std::int64_t next_run_seq) {
  if (facts_of(*impl_) == nullptr) return success();
  ASSIGN_OR_RETURN(
      const bool complete, guarded(impl_->connection, "counting the events of a run", [&] {
        const pqxx::row row = query(
            impl_->connection, "run_complete",
            "SELECT count(*), coalesce(max(run_seq) + 1, 0) FROM event WHERE log_no = $1 AND run_no = $2 AND run_seq >= $3",
            impl_->params().integer(run_no).integer(from_run_seq))[0];
        const std::int64_t count = integer_of(row[0]), next = integer_of(row[1]);
        return (next == 0 || count == next - from_run_seq) && std::max(next, from_run_seq) >= next_run_seq;
      }));
  if (complete) return success();
  return Error(Errc::corrupt, "events of the run are missing: the log was changed. Run muniment-verify");
}

Status Reader::check_ledger(std::int64_t run_no, std::string_view run_id, bool evidence) {
  if (facts_of(*impl_) == nullptr) return success();
  const auto missing = [&](std::string_view name, const char* sql) {
    return query(impl_->connection, name, sql, impl_->params().integer(run_no).text(run_id));
  };
  ASSIGN_OR_RETURN(const pqxx::result found, guarded(impl_->connection, "comparing the ledger with the log", [&] {
                     return evidence
                                ? missing("evidence_missing",
                                          "SELECT e.seq FROM event e WHERE e.log_no = $1 AND e.run_no = $2 AND "
                                          "e.type = 'evidence.recorded' AND NOT EXISTS (SELECT FROM evidence r WHERE "
                                          "r.log_no = $1 AND r.seq = e.seq AND r.run_id = $3) LIMIT 1")
                                : missing("claims_missing",
                                          "SELECT e.seq FROM event e WHERE e.log_no = $1 AND e.run_no = $2 AND "
                                          "e.type = 'claim.recorded' AND NOT EXISTS (SELECT FROM claim r WHERE "
                                          "r.log_no = $1 AND r.seq = e.seq AND r.run_id = $3) LIMIT 1");
                   }));
  if (found.empty()) return success();
  return Error(Errc::corrupt,
               fmt::format("the ledger has no row for event {}: the tables were changed. Run muniment-verify, and: "
                           "muniment rebuild",
                           integer_of(found[0][0])));
}

Result<std::int64_t> Reader::event_count() {
  return guarded(impl_->connection, "counting events", [&] {
    return integer_of(
        query(impl_->connection, "event_count", "SELECT count(*) FROM event WHERE log_no = $1", impl_->params())[0][0]);
  });
}

Result<std::optional<Event>> Reader::confirmed(Result<std::optional<Event>> read) {
  if (read && *read) RETURN_IF_ERROR(confirm({**read}));
  return read;
}

namespace {

// The event of a row, and the revision that it recorded.
struct Held {
  const Event* event = nullptr;
  std::optional<Revised> revised{};  // unless it is the event of a run
  std::string owner{};               // actor of the run's first event, for the event of a run
  std::string refused{};             // reason for which it cannot be used; empty: none
};

struct HeldEvents {
  std::vector<Event> events;
  std::map<std::int64_t, Held> by_seq;
};

Result<std::string> long_list_of(Reader& reader, ArtifactFiles& files, const Uuid& id) {
  ASSIGN_OR_RETURN(const auto row, reader.artifact(id));
  if (!row) return Error(Errc::corrupt, "its list of chunks is missing");
  return files.read(file_of(*row), 0, row->size_bytes);
}

// Reads the revision that the event recorded, or the reason for which there is none.
Status read_revision(Reader& reader, ArtifactFiles& files, Held& held) {
  if (!held.event->body) {
    held.refused = "its event was erased";
    return success();
  }
  const auto parsed = json::parse(*held.event->body);
  if (!parsed || held.event->type != "document.revised") {
    held.refused = "its event revises no document";
    return success();
  }
  std::string long_list;
  if (const auto id = chunk_list_of(parsed->root())) {
    auto text = long_list_of(reader, files, *id);
    if (!text && is_transient(text.error().code)) return text.error();
    if (!text) held.refused = text.error().message;
    if (text) long_list = *std::move(text);
  }
  held.revised = revised_by(*held.event, parsed->root(), long_list);
  return success();
}

// Finds the owners of the runs of events, from the first event of each run.
Status find_owners(Reader& reader, HeldEvents& held) {
  std::map<std::int64_t, std::string> owners;
  for (auto& [seq, one] : held.by_seq) {
    if (one.event == nullptr || one.event->run_no == 0) continue;
    const auto known = owners.find(one.event->run_no);
    if (known != owners.end()) {
      one.owner = known->second;
      continue;
    }
    ASSIGN_OR_RETURN(const auto started, reader.event_of_run(one.event->run_no, 0));
    if (started) RETURN_IF_ERROR(reader.confirm({*started}));
    one.owner = owners[one.event->run_no] = started ? started->actor : std::string();
  }
  return success();
}

Result<std::vector<Event>> events_at(Reader::Impl& impl, const std::vector<std::int64_t>& seqs) {
  return guarded(impl.connection, "reading the events of rows", [&] {
    auto events =
        rows_of(query(impl.connection, "events_at",
                      "SELECT " MUNIMENT_EVENT_COLUMNS " FROM event WHERE log_no = $1 AND seq = ANY ($2::bigint[])",
                      impl.params().integers(seqs)),
                event_of);
    impl.fill(events);
    impl.name_runs(events);
    return events;
  });
}

Result<HeldEvents> read_held(Reader& reader, Reader::Impl& impl, const std::set<std::int64_t>& seqs) {
  HeldEvents held;
  ASSIGN_OR_RETURN(held.events, events_at(impl, {seqs.begin(), seqs.end()}));
  ASSIGN_OR_RETURN(const auto differing, reader.differing(held.events));
  for (const std::int64_t seq : seqs) held.by_seq[seq].refused = fmt::format("event {} is missing from the log", seq);
  for (const Event& event : held.events) {
    Held& one = held.by_seq[event.seq];
    one.event = &event;
    one.refused.clear();
    if (const auto found = differing.find(event.seq); found != differing.end()) {
      if (is_transient(found->second.code)) return found->second;
      one.refused = found->second.message;
    } else if (event.run_no == 0) {
      RETURN_IF_ERROR(read_revision(reader, *impl.place.recorded->facts()->files, one));
    }
  }
  if (facts_of(impl) != nullptr) RETURN_IF_ERROR(find_owners(reader, held));
  return held;
}

// Compares what a revision recorded; its end and its place among the chunks follow from later events.
bool same_content(const DocumentRow& a, const DocumentRow& b) {
  const auto facts = [](const DocumentRow& row) {
    return std::tie(row.hash, row.artifact_id, row.start_byte, row.size_bytes, row.text_artifact_id, row.mime_type,
                    row.format, row.language, row.title, row.tags, row.source, row.sources, row.source_url, row.trust,
                    row.chunker);
  };
  return facts(a) == facts(b) && a.document_time.micros == b.document_time.micros &&
         a.recorded_at.micros == b.recorded_at.micros;
}

// Replaces the content of the row by what its event recorded.
void take_content(DocumentRow& row, DocumentRow recorded, std::size_t chunks) {
  recorded.first_chunk = row.first_chunk;
  recorded.chunks = static_cast<std::int64_t>(chunks);
  recorded.valid_to = row.valid_to;
  recorded.ended_by = std::move(row.ended_by);
  recorded.removed_at = row.removed_at;
  recorded.mended = row.mended || !same_content(row, recorded) || row.chunks != recorded.chunks;
  row = std::move(recorded);
}

void hold_event_of_run(DocumentRow& row, const Held& held) {
  const Event& event = *held.event;
  const bool same = row.document == fmt::format("{}#e{}", event.run_id, event.run_seq) && row.format == event.type &&
                    row.hash == event.body_hash && to_hex(row.hash).starts_with(row.revision) && !row.revision.empty();
  if (!same) {
    row.differs = "it is not that event of the run";
    return;
  }
  DocumentRow recorded = row;
  recorded.origin = event.origin;
  recorded.owner = held.owner;
  recorded.trust = "untrusted";
  recorded.source = "run://" + event.run_id;
  recorded.sources = {recorded.source};
  recorded.document_time = event.occurred_at.value_or(event.recorded_at);
  recorded.recorded_at = event.recorded_at;
  recorded.mended =
      row.mended || !same_content(row, recorded) || row.origin != recorded.origin || row.owner != recorded.owner;
  row = std::move(recorded);
}

// Holds the ends of a row against the lives of the documents.
void hold_life(DocumentRow& row, const DocumentLives* lives) {
  if (lives == nullptr) return;
  const auto differed = lives->put_life(row);
  if (!differed) row.differs = "the log has no such revision";
  row.mended = differed.value_or(false);
}

void hold_row(DocumentRow& row, const Held& held, const DocumentLives* lives) {
  hold_life(row, lives);
  const bool erased = row.removed_at && row.ended_by == "erased";
  if (!row.differs.empty()) return;
  if (erased && (held.event == nullptr || !held.event->body)) return;  // nothing of it is left
  if (!held.refused.empty()) {
    row.differs = held.refused;
    return;
  }
  if (row.of_run() != (held.event->run_no != 0)) {
    row.differs = "its event belongs to another corpus";
    return;
  }
  if (row.of_run()) return hold_event_of_run(row, held);
  const DocumentRow& recorded = held.revised->row;
  if (row.corpus != recorded.corpus || row.document != recorded.document || row.revision != recorded.revision) {
    row.differs = fmt::format("its event recorded {}/{} at {}", recorded.corpus, recorded.document, recorded.revision);
    return;
  }
  take_content(row, recorded, held.revised->chunks.size());
}

// Returns the last event that changed one of the rows.
std::int64_t last_change(const std::vector<DocumentRow*>& rows) {
  std::int64_t last = -1;
  for (const DocumentRow* row : rows)
    last = std::max({last, row->seq, row->valid_to.value_or(-1), row->removed_at.value_or(-1)});
  return last;
}

void report(const DocumentRow& row) {
  if (!row.mended && row.differs.empty()) return;
  log_warning(
      row.mended ? "a row of the table document differs from its event, and is not used"
                 : "a document is refused: it is not in the log as the tables hold it",
      {{"corpus", row.corpus}, {"document", row.document}, {"seq", std::to_string(row.seq)}, {"reason", row.differs}});
}

// Replaces the passage by what the event recorded. The hash of a passage of an event is compared with the event's text.
void hold_chunk(ChunkInDocument& item, const Held& held) {
  const ChunkRow& row = item.chunk;
  if (row.chunk_id != item.document.first_chunk + row.number || row.number >= item.document.chunks) {
    item.document.differs = fmt::format("its event recorded no passage {}", row.number);
    return;
  }
  if (item.document.of_run()) return;
  if (!held.revised) {
    item.document.differs = "its event was erased";
    return;
  }
  ChunkRow recorded = held.revised->chunks[static_cast<std::size_t>(row.number)];
  recorded.chunk_id = row.chunk_id;
  const auto facts = [](const ChunkRow& chunk) {
    return std::tie(chunk.start_byte, chunk.end_byte, chunk.hash, chunk.heading);
  };
  if (facts(row) != facts(recorded)) item.document.mended = true;
  item.chunk = std::move(recorded);
}

}  // namespace

Result<const DocumentLives*> lives_up_to(const Reader::Impl& impl, std::int64_t seq) {
  const Recorded::Facts* const facts = facts_of(impl);
  if (facts == nullptr || !facts->lives) return nullptr;
  RETURN_IF_ERROR(facts->lives->wait_for(seq));
  return facts->lives.get();
}

Status hold_documents(Reader& reader, Reader::Impl& impl, const std::vector<DocumentRow*>& rows) {
  if (facts_of(impl) == nullptr) return success();
  std::set<std::int64_t> seqs;
  for (const DocumentRow* row : rows) seqs.insert(row->seq);
  ASSIGN_OR_RETURN(const DocumentLives* const lives, lives_up_to(impl, last_change(rows) + 1));
  if (seqs.empty()) return success();
  ASSIGN_OR_RETURN(const HeldEvents held, read_held(reader, impl, seqs));
  for (DocumentRow* row : rows) {
    hold_row(*row, held.by_seq.at(row->seq), lives);
    report(*row);
  }
  return success();
}

Status hold_chunks(Reader& reader, Reader::Impl& impl, std::vector<ChunkInDocument>& rows) {
  const bool tree = facts_of(impl) != nullptr;
  std::set<std::int64_t> seqs;
  for (const ChunkInDocument& item : rows) {
    if (tree || item.document.of_run()) seqs.insert(item.document.seq);
  }
  if (seqs.empty()) return success();
  std::vector<DocumentRow*> documents;
  for (ChunkInDocument& item : rows) documents.push_back(&item.document);
  ASSIGN_OR_RETURN(const DocumentLives* const lives, lives_up_to(impl, last_change(documents) + 1));
  ASSIGN_OR_RETURN(const HeldEvents held, read_held(reader, impl, seqs));
  std::map<std::int64_t, std::shared_ptr<const EventText>> texts;
  for (ChunkInDocument& item : rows) {
    const auto found = held.by_seq.find(item.document.seq);
    if (found == held.by_seq.end()) continue;
    if (tree) {
      hold_row(item.document, found->second, lives);
      if (item.document.differs.empty()) hold_chunk(item, found->second);
      report(item.document);
    }
    if (!item.document.of_run() || found->second.event == nullptr) continue;
    const auto [text, is_new] = texts.try_emplace(item.document.seq);
    if (is_new) {
      auto read = reader.event_text(*found->second.event);
      if (!read && is_transient(read.error().code)) return read.error();
      if (!read) item.document.differs = read.error().message;
      if (read) text->second = *std::move(read);
    }
    item.event_text = text->second;
  }
  return success();
}

namespace {

template <typename Row>
std::int64_t event_seq_of(const Row& row) {
  if constexpr (std::is_same_v<Row, SnapshotRow>)
    return row.event_seq;  // its seq is the position of the state
  else
    return row.seq;
}

// Returns whether the row has what an erasure leaves of it.
bool is_blank(const ArtifactRow& row) { return is_erased(row); }
bool is_blank(const ManifestRow& row) { return !row.manifest; }
bool is_blank(const ClaimRow& row) { return row.text.empty() && row.pointers == "[]"; }
bool is_blank(const EvidenceRow& row) {
  return row.hash == Hash{} && row.type.empty() && row.content.value_or("{}") == "{}" && !row.pointer && !row.task_id &&
         !row.validator_id && !row.command_id;
}
bool is_blank(const SnapshotRow& row) { return !row.salt; }

// Returns success if the event of a blank row was erased. Errors: corrupt, or unavailable while it is being erased.
Status hold_blank(Reader& reader, Reader::Impl& impl, const Event* event, std::int64_t seq) {
  if (event != nullptr && !event->salt) return success();
  ASSIGN_OR_RETURN(const auto announced, announced_erasures(reader, impl, {seq}));
  if (announced.contains(seq)) return Error(Errc::unavailable, fmt::format("event {} is being erased. Retry.", seq));
  return Error(Errc::corrupt, fmt::format("a row (seq {}) lacks what its event recorded: the tables were changed. Run "
                                          "muniment-verify, and: muniment rebuild",
                                          seq));
}

// Calls `fits(row, event, body)` with the event of each row; the event of a blank row is erased. Errors: corrupt,
// naming the first row that does not fit its event.
template <typename Row, typename Fits>
Status compare_rows(Reader& reader, Reader::Impl& impl, const std::vector<Row>& rows, const std::vector<Event>& events,
                    std::string_view type, Fits fits) {
  RETURN_IF_ERROR(reader.confirm(events));
  for (const Row& row : rows) {
    const std::int64_t seq = event_seq_of(row);
    const auto event = std::ranges::find(events, seq, &Event::seq);
    const bool is_that = event != events.end() && event->type == type;
    if (is_blank(row)) {
      if constexpr (std::is_same_v<Row, SnapshotRow>) {
        if (is_that && !event->body) continue;  // otherwise its position and its hash remain
      } else {
        RETURN_IF_ERROR(hold_blank(reader, impl, is_that ? &*event : nullptr, seq));
        continue;
      }
    }
    if (is_that && !event->body) return Error(Errc::unavailable, fmt::format("event {} was erased. Retry.", seq));
    const auto body = is_that ? json::parse(*event->body) : Result<json::Document>(Error(Errc::corrupt, "no event"));
    if (!body || row.created_at.micros != event->recorded_at.micros || !fits(row, *event, body->root()))
      return Error(Errc::corrupt, fmt::format("a row of {} (seq {}) is not what its event recorded: the tables were "
                                              "changed. Run muniment-verify, and: muniment rebuild",
                                              type, seq));
  }
  return success();
}

// Reads the events of the rows and compares them, if the log's tree is known. `kept` gets the events in either case.
template <typename Row, typename Fits>
Status hold_rows(Reader& reader, Reader::Impl& impl, const std::vector<Row>& rows, std::string_view type, Fits fits,
                 std::vector<Event>* kept = nullptr) {
  std::vector<std::int64_t> seqs;
  for (const Row& row : rows) seqs.push_back(event_seq_of(row));
  const Recorded::Facts* const facts = facts_of(impl);
  if (facts == nullptr && kept == nullptr) return success();
  if (facts != nullptr && facts->lives)
    RETURN_IF_ERROR(facts->lives->refused());  // also an empty list may lack what the log had
  if (seqs.empty()) return success();
  ASSIGN_OR_RETURN(std::vector<Event> events, events_at(impl, seqs));
  if (facts != nullptr) RETURN_IF_ERROR(compare_rows(reader, impl, rows, events, type, fits));
  if (kept != nullptr) *kept = std::move(events);
  return success();
}

bool same_text(const json::Value& value, const std::optional<std::string>& text) { return value.as_string() == text; }

bool same_json(const json::Value& value, const std::optional<std::string>& text) {
  if (!text) return !value.present();
  const auto parsed = json::parse(*text);
  return parsed && value.present() && json::Tree(value).canonical() == json::Tree(parsed->root()).canonical();
}

// Compares the names of the members, and those that are strings: jsonb prints a number in another form.
bool same_metadata(const json::Value& value, const std::string& text) {
  const auto parsed = json::parse(text);
  if (!parsed || parsed->root().size() != value.size()) return false;
  for (const json::Value member : value) {
    const json::Value there = parsed->root()[member.key()];
    if (!there.present() || there.as_string() != member.as_string()) return false;
  }
  return true;
}

}  // namespace

Status hold_artifacts(Reader& reader, Reader::Impl& impl, const std::vector<ArtifactRow>& rows) {
  return hold_rows(
      reader, impl, rows, "artifact.stored", [](const ArtifactRow& row, const Event& event, const json::Value& body) {
        return body["artifact_id"].string_or("") == row.artifact_id.text() && event.run_id == row.run_id &&
               body["hash"].string_or("") == to_hex(row.hash) && body["size_bytes"].as_int() == row.size_bytes &&
               body["path"].string_or("") == row.path && body["step_id"].string_or("") == row.step_id &&
               body["mime_type"].string_or("") == row.mime_type && same_metadata(body["metadata"], row.metadata);
      });
}

Status hold_manifests(Reader& reader, Reader::Impl& impl, const std::vector<ManifestRow>& rows) {
  return hold_rows(reader, impl, rows, "manifest.recorded",
                   [](const ManifestRow& row, const Event& event, const json::Value& body) {
                     const auto base = row.base_id ? std::optional(row.base_id->text()) : std::nullopt;
                     return body["manifest_id"].string_or("") == row.manifest_id.text() && event.run_id == row.run_id &&
                            body["hash"].string_or("") == to_hex(row.hash) && same_text(body["base"], base) &&
                            body["size_bytes"].as_int() == row.size_bytes;
                   });
}

Status hold_claims(Reader& reader, Reader::Impl& impl, const std::vector<ClaimRow>& rows) {
  return hold_rows(reader, impl, rows, "claim.recorded",
                   [](const ClaimRow& row, const Event& event, const json::Value& body) {
                     return body["claim_id"].string_or("") == row.claim_id.text() && event.run_id == row.run_id &&
                            event.step_id == row.step_id && body["text"].string_or("") == row.text &&
                            same_json(body["pointers"], row.pointers);
                   });
}

static bool fits_evidence(const EvidenceRow& row, const Event& event, const json::Value& body) {
  const auto command = row.command_id ? std::optional(row.command_id->text()) : std::nullopt;
  return body["evidence_id"].string_or("") == row.evidence_id.text() && event.run_id == row.run_id &&
         event.actor == row.actor && body["type"].string_or("") == row.type &&
         body["hash"].string_or("") == to_hex(row.hash) && same_json(body["content"], row.content) &&
         same_text(body["pointer"], row.pointer) && same_text(body["task_id"], row.task_id) &&
         same_text(body["validator_id"], row.validator_id) && same_text(body["command_id"], command) &&
         same_text(body["corpus_id"], row.corpus_id) && same_text(body["index_id"], row.index_id) &&
         same_text(body["chunk_id"], row.chunk_id) && same_text(body["span"], row.span);
}

Status hold_evidence(Reader& reader, Reader::Impl& impl, const std::vector<EvidenceRow>& rows) {
  return hold_rows(reader, impl, rows, "evidence.recorded", fits_evidence);
}

EvidenceTerms terms_of(const Event& recorded) {
  EvidenceTerms terms{recorded.seq, {}, {}, {}};
  if (!recorded.body) return terms;
  const auto body = json::parse(*recorded.body);
  if (!body) return terms;
  const auto source_of = [&](std::string_view name) {
    const json::Value member = body->root()[name];
    return member.present() ? std::optional(std::string(member.source())) : std::nullopt;
  };
  terms.expires_in_seconds = body->root()["expires_in_seconds"].as_int();
  terms.depends_on = source_of("depends_on");
  terms.artifacts = source_of("artifacts");
  return terms;
}

Result<std::vector<EvidenceTerms>> Reader::evidence_terms(const std::vector<EvidenceRow>& rows) {
  std::vector<Event> events;
  RETURN_IF_ERROR(hold_rows(*this, *impl_, rows, "evidence.recorded", fits_evidence, &events));
  std::vector<EvidenceTerms> terms;
  for (const Event& event : events) terms.push_back(terms_of(event));
  return terms;
}

// An erasure blanks the states that were taken after the erased event.
static Status hold_blank_states(Reader& reader, Reader::Impl& impl, const std::vector<SnapshotRow>& rows) {
  std::map<std::int64_t, std::int64_t> erased;  // the first erased event of each run
  for (const SnapshotRow& row : rows) {
    if (row.salt || facts_of(impl) == nullptr || erased.contains(row.run_no)) continue;
    ASSIGN_OR_RETURN(erased[row.run_no], guarded(impl.connection, "looking for erased events of a run", [&] {
                       return integer_of(query(impl.connection, "first_erased",
                                               "SELECT coalesce(min(seq), -1) FROM event WHERE log_no = $1 AND run_no "
                                               "= $2 AND salt IS NULL",
                                               impl.params().integer(row.run_no))[0][0]);
                     }));
  }
  std::vector<std::int64_t> seqs;
  for (const auto& [run_no, seq] : erased) seqs.push_back(seq);
  ASSIGN_OR_RETURN(const auto announced, announced_erasures(reader, impl, seqs));
  for (const SnapshotRow& row : rows) {
    const auto first = erased.find(row.run_no);
    if (row.salt || first == erased.end()) continue;
    if (first->second > row.event_seq || !announced.contains(first->second))
      return Error(Errc::corrupt,
                   fmt::format("the state at {} is missing, and no event that it includes was erased: the "
                               "tables were changed. Run muniment-verify",
                               row.seq));
  }
  return success();
}

Status hold_snapshots(Reader& reader, Reader::Impl& impl, const std::vector<SnapshotRow>& rows) {
  RETURN_IF_ERROR(hold_blank_states(reader, impl, rows));
  return hold_rows(reader, impl, rows, "snapshot.taken",
                   [](const SnapshotRow& row, const Event& event, const json::Value& body) {
                     const auto artifact = row.artifact_id ? std::optional(row.artifact_id->text()) : std::nullopt;
                     const std::string state_hash = body["state_hash"].string_or("");
                     return event.run_no == row.run_no && body["seq"].as_int() == row.seq &&
                            body["run_seq"].as_int() == row.run_seq && body["hash"].string_or("") == to_hex(row.hash) &&
                            body["size_bytes"].as_int() == row.size_bytes &&
                            body["reason"].string_or("") == row.reason && same_text(body["artifact_id"], artifact) &&
                            (state_hash.empty() || !row.salt || state_hash == to_hex(row.state_hash));
                   });
}

}  // namespace muniment::store
