// Applies document events to the tables.
#include "retrieval/corpus/document_follower.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "events/readable_text.hpp"
#include "evidence/pointer.hpp"
#include "store/files/artifact_row.hpp"
#include "store/logs/document_seal.hpp"
#include "store/read/document_row.hpp"
#include "store/read/recorded.hpp"
#include "store/tables/rebuild.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t lives_per_page = 50'000, events_per_page = 4'096, events_bytes_max = 16 << 20;
constexpr std::size_t chunk_rows_bytes_max = 64 << 20;  // size of some 40,000 rows

constexpr std::size_t followed_chunks_max = 16'384;  // approximate number of chunks that one transaction writes

store::Follower::Options confirmed(store::Follower::Options options) {
  options.confirmed = true;
  return options;
}

std::vector<std::string> followed_types() {
  std::vector<std::string> types = {"document.*", "source.revoked", "feedback.recorded", "event.redacted",
                                    "run.started"};
  types.insert(types.end(), std::begin(events::readable_types), std::end(events::readable_types));
  return types;
}

Result<std::string> read_artifact(store::Reader& reader, store::ArtifactFiles& files, const Uuid& id) {
  ASSIGN_OR_RETURN(const auto row, reader.artifact(id));
  if (!row) return Error(Errc::corrupt, "no artifact " + id.text());
  return files.read(store::file_of(*row), 0, row->size_bytes);
}

// Returns the change of an event. `long_list` is the text of the artifact that chunks_artifact_id names, if any.
std::optional<store::CorpusChange> change_by(const events::Event& event, std::string_view long_list) {
  if (!event.body) return std::nullopt;
  const auto parsed = json::parse(*event.body);
  if (!parsed) return std::nullopt;
  const json::Value body = parsed->root();
  if (event.type == "document.revised") return store::revised_by(event, body, long_list);
  if (event.type == "document.retracted")
    return store::Retracted{event.seq, body["corpus"].string_or(""), body["document"].string_or("")};
  if (event.type == "source.revoked")
    return store::Revoked{event.seq, body["source"].string_or(""), body["owner"].as_string()};
  if (event.type == "event.redacted") return store::Erased{event.seq, body["seq"].as_int().value_or(-1)};
  if (event.type != "feedback.recorded") return std::nullopt;
  const auto value = body["value"].as_double();
  const std::string target = body["target"].string_or("");
  if (!value || *value < -1 || *value > 1 || !target.starts_with("ev://")) return std::nullopt;
  store::FeedbackRow row{event.seq, target, std::nullopt, *value, event.actor};
  const auto pointer = evidence::parse_pointer(target);
  if (pointer && pointer->corpus == store::run_corpus) {
    row.passage = store::Citation{pointer->corpus, fmt::format("{}#e{}", pointer->run_id, pointer->seq),
                                  pointer->revision, pointer->passage.value_or(0)};
  } else if (pointer && pointer->fragment.starts_with('p')) {
    row.passage = store::Citation{pointer->corpus, pointer->document, pointer->revision, pointer->seq};
  }
  return row;
}

}  // namespace

Result<std::optional<store::CorpusChange>> corpus_change(const events::Event& event, IndexedRuns& runs,
                                                         store::Reader& reader, store::ArtifactFiles& files) {
  runs.see(event);
  if (events::is_readable(event.type)) return change_by_run_event(event, runs, reader, files);
  std::string long_list;
  if (event.type == "document.revised" && event.body) {
    const auto body = json::parse(*event.body);
    if (const auto id = body ? store::chunk_list_of(body->root()) : std::nullopt) {
      auto text = read_artifact(reader, files, *id);
      if (!text && text.error().code == Errc::unavailable) return std::move(text).error();
      if (text) long_list = *std::move(text);  // if the list was erased, the document has no chunks
    }
  }
  return change_by(event, long_list);
}

DocumentFollower::DocumentFollower(Options options, const store::Tail& tail, store::ArtifactFiles& files)
    : Follower("document", followed_types(), confirmed(options), tail),
      place_(std::move(options.place)),
      log_tail_(tail),
      files_(files),
      chunk_rows_(chunk_rows_bytes_max),
      last_change_(tail.next_seq() - 1) {}

// Reads the lives of all revisions from the table.
Status DocumentFollower::load_lives(store::Reader& reader) {
  store::DocumentLives& lives = *place_.recorded->facts()->lives;
  lives.unload();
  const auto loaded = lives.fresh();
  for (std::int64_t from = 0;;) {
    ASSIGN_OR_RETURN(const auto rows, reader.document_lives(from, lives_per_page));
    for (const store::DocumentRow& row : rows) loaded->add(row);
    if (rows.size() < lives_per_page) break;
    from = rows.back().seq + 1;
  }
  lives.replace(*loaded);
  return success();
}

// Holds every event against the log's tree, and derives the tables from them again. The position may have been set
// back, so that they are derived from the whole log.
Status DocumentFollower::compare_with_log(store::Reader& reader) {
  const std::int64_t size = log_tail_.next_seq();
  for (std::int64_t seq = 0; seq < size;) {
    ASSIGN_OR_RETURN(const auto events, reader.recorded_events({seq, size}, events_per_page, events_bytes_max));
    seq = events.back().seq + 1;
  }
  RETURN_IF_ERROR(move_to(size));
  store::Rebuild work(place_);
  RETURN_IF_ERROR(work.collect(size));
  IndexedRuns runs;
  ASSIGN_OR_RETURN(const auto tables, work.rebuild_corpora({store::corpus_tables.begin(), store::corpus_tables.end()},
                                                           [&](const events::Event& event) {
                                                             return corpus_change(event, runs, reader, files_);
                                                           }));
  for (const store::RebuiltTable& table : tables) {
    if (!table.equal()) {
      const std::lock_guard lock(known_mutex_);
      rebuilt_ += (rebuilt_.empty() ? "" : ", ") + table.name;
    }
    if (!table.equal())
      log_warning("a table differed from the log and was rebuilt", {{"table", table.name},
                                                                    {"missing", std::to_string(table.missing)},
                                                                    {"unexpected", std::to_string(table.unexpected)}});
  }
  return success();
}

std::string DocumentFollower::rebuilt() {
  const std::lock_guard lock(known_mutex_);
  return rebuilt_.empty() ? rebuilt_ : "tables that differed from the log were rebuilt at the start: " + rebuilt_;
}

// Checks that the table holds as many events as the log has.
Status DocumentFollower::check_events(store::Reader& reader) {
  const std::int64_t size = log_tail_.next_seq();
  ASSIGN_OR_RETURN(const std::int64_t count, reader.event_count());
  if (count >= size) return success();
  const Error missing(Errc::corrupt,
                      fmt::format("{} events are missing: the log was changed. Run muniment-verify", size - count));
  place_.recorded->facts()->lives->refuse(missing);
  return missing;
}

Status DocumentFollower::begin(store::Reader& reader) {
  const store::Recorded::Facts* const facts = place_.recorded ? place_.recorded->facts() : nullptr;
  writing_.reset();
  if (facts == nullptr || !facts->lives) return success();
  RETURN_IF_ERROR(refused());
  RETURN_IF_ERROR(check_events(reader));
  RETURN_IF_ERROR(load_lives(reader));
  const bool empty = next_seq() == 0 && facts->lives->digest() == facts->lives->fresh()->digest();
  if (!empty && !facts->seal->matches(next_seq(), facts->lives->digest())) {
    log_info("the document tables are compared with the log: they are not sealed as they are", {});
    const Status compared = compare_with_log(reader);
    if (!compared && compared.error().code == Errc::corrupt) facts->lives->refuse(compared.error());
    RETURN_IF_ERROR(compared);
    RETURN_IF_ERROR(load_lives(reader));
    facts->seal->note(next_seq(), facts->lives->digest());
    facts->seal->keep();
  }
  facts->lives->begin(next_seq());
  return success();
}

void DocumentFollower::writing(const store::FollowedRows& rows, const store::CorpusEffects& effects,
                               std::int64_t next_seq) {
  const store::Recorded::Facts* const facts = place_.recorded ? place_.recorded->facts() : nullptr;
  if (facts == nullptr || !facts->lives) return;
  writing_ = facts->lives->derive(rows.corpus, effects);
  writing_to_ = next_seq;
  facts->seal->note(next_seq, facts->lives->digest(&*writing_));
}

void DocumentFollower::written(const store::FollowedRows& rows) {
  if (writing_) {
    place_.recorded->facts()->seal->keep();
    place_.recorded->facts()->lives->take(*std::exchange(writing_, std::nullopt), writing_to_);
  }
  chunk_rows_.changed(rows.corpus);
  const bool erased = std::ranges::any_of(rows.corpus, [](const store::CorpusChange& change) {
    return std::holds_alternative<store::Erased>(change) || std::holds_alternative<store::Revoked>(change);
  });
  if (erased && on_erased) on_erased();
}

// Assumes a change if the last one cannot be determined.
void DocumentFollower::look_back() {
  store::Reader reader(place_);
  const auto last = reader.last_corpus_change();
  const auto position = reader.follower_position(name());
  if (!last || !position) return;
  store::EventFilter unseen;
  unseen.from_seq = *position;
  unseen.types = followed_types();
  unseen.newest_first = true;
  const auto newest = reader.events(unseen, 1);
  if (newest) last_change_ = std::max(*last, newest->empty() ? std::int64_t{-1} : newest->front().seq);
}

void DocumentFollower::changed_at(std::int64_t seq) {
  std::int64_t known = last_change_.load(std::memory_order_relaxed);
  while (known < seq && !last_change_.compare_exchange_weak(known, seq, std::memory_order_acq_rel)) {
  }
}

Status DocumentFollower::refused() const {
  const store::Recorded::Facts* const facts = place_.recorded ? place_.recorded->facts() : nullptr;
  return facts == nullptr || !facts->lives ? success() : facts->lives->refused();
}

Status DocumentFollower::wait_for_changes(Deadline deadline) {
  RETURN_IF_ERROR(refused());
  if (wait_for(last_change() + 1, deadline)) return success();
  const std::string why = problem();
  return Error(Errc::deadline_exceeded,
               "the document tables are behind the log" + (why.empty() ? std::string(".") : ": " + why));
}

Result<std::shared_ptr<const DocumentFollower::Owners>> DocumentFollower::owners(store::Reader& reader) {
  const std::lock_guard lock(known_mutex_);
  if (owners_) return owners_;
  ASSIGN_OR_RETURN(const auto rows, reader.corpora(std::nullopt, false));
  auto read = std::make_shared<Owners>();
  for (const store::CorpusRow& row : rows) read->emplace(row.corpus, row.owner);
  owners_ = std::move(read);
  return owners_;
}

Result<bool> DocumentFollower::has_feedback(store::Reader& reader) {
  const std::lock_guard lock(known_mutex_);
  if (!has_feedback_) {
    ASSIGN_OR_RETURN(has_feedback_, reader.has_feedback());
  }
  return *has_feedback_;
}

// The creator of a new corpus is its owner.
void DocumentFollower::note(const std::vector<store::CorpusChange>& changes) {
  const std::lock_guard lock(known_mutex_);
  std::shared_ptr<Owners> grown;
  for (const store::CorpusChange& change : changes) {
    if (std::holds_alternative<store::FeedbackRow>(change)) has_feedback_ = true;
    const auto* revised = std::get_if<store::Revised>(&change);
    if (revised == nullptr || revised->row.of_run() || !owners_ || owners_->contains(revised->row.corpus)) continue;
    if (!grown) grown = std::make_shared<Owners>(*owners_);
    grown->emplace(revised->row.corpus, revised->actor);
  }
  if (grown) owners_ = std::move(grown);
}

Result<store::FollowedRows> DocumentFollower::apply(const std::vector<store::EventPtr>& events, store::Reader& reader) {
  store::FollowedRows followed;
  std::size_t chunks = 0;
  for (const store::EventPtr& event : events) {
    ASSIGN_OR_RETURN(auto change, corpus_change(*event, runs_, reader, files_));
    if (!change) continue;
    if (const auto* revised = std::get_if<store::Revised>(&*change)) chunks += revised->chunks.size();
    followed.corpus.push_back(*std::move(change));
    if (chunks < followed_chunks_max) continue;
    followed.next_seq = event->seq + 1;
    break;
  }
  note(followed.corpus);
  return followed;
}

}  // namespace muniment::retrieval
