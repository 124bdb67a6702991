#include "verify/log/history.hpp"

#include <fmt/format.h>

namespace muniment::verify {

Result<History> History::open(Connection& connection, const Log& log, const ArtifactRoot& root, SignedLog& signatures,
                              TileFiles* tiles, const SavedState* resumed, Findings& findings) {
  ASSIGN_OR_RETURN(RowSources rows, database_rows(connection, log));
  ASSIGN_OR_RETURN(Tables tables,
                   Tables::open(std::move(rows), log, resumed != nullptr ? Extent::part : Extent::all, findings));
  ASSIGN_OR_RETURN(TaskEvidence task_evidence, TaskEvidence::open(connection, log, findings));
  ASSIGN_OR_RETURN(
      Cursor checkpoints,
      Cursor::open(connection, "checkpoints",
                   fmt::format("SELECT size, root, edge FROM checkpoint WHERE log_no = {} AND size >= {} ORDER BY size",
                               log.log_no, log.from)));
  History history(connection, log, root, signatures, tiles, findings, std::move(tables), std::move(task_evidence),
                  std::move(checkpoints));
  if (resumed != nullptr) {
    history.resume(*resumed);
  } else {
    RETURN_IF_ERROR(history.runs_.open(connection));
    RETURN_IF_ERROR(history.corpora_.open(connection));
  }
  RETURN_IF_ERROR(history.advance_checkpoint());
  RETURN_IF_ERROR(history.check_points());
  return history;
}

History::History(Connection& connection, const Log& log, const ArtifactRoot& root, SignedLog& signatures,
                 TileFiles* tiles, Findings& findings, Tables tables, TaskEvidence task_evidence, Cursor checkpoints)
    : connection_(connection),
      log_(log),
      signatures_(signatures),
      tiles_(tiles),
      findings_(findings),
      tables_(std::move(tables)),
      task_evidence_(std::move(task_evidence)),
      runs_(log, findings),
      corpora_(log, root, findings),
      life_(log, findings),
      checkpoints_(std::move(checkpoints)) {}

void History::resume(const SavedState& state) {
  resumed_ = true;
  tree_ = *Tree::from_edge(state.size, state.edge);
  next_seq_ = state.size;
  life_.heads() = state.heads;
  counts_.adopted = state.adopted;
}

SavedState History::state() const {
  SavedState state;
  state.log_id = log_.log_id;
  state.size = tree_.size();
  state.root = tree_.root();
  state.edge = tree_.edge();
  state.rotations = signatures_.rotations();
  state.heads = life_.heads();
  state.adopted = counts_.adopted;
  for (const auto& [run_no, head] : state.heads) {
    if (run_no != 0) state.run_ids.emplace(run_no, log_.run_id(run_no));
  }
  return state;
}

Status History::add(Span&& span) {
  auto waiting = span.waiting.begin();
  auto telling = span.telling.begin();
  for (std::size_t i = 0; i < span.events.size(); ++i) {
    SeenEvent& event = span.events[i];
    if (event.seq != next_seq_) {
      findings_.add({Check::seq, next_seq_, log_.run_id(event.run_no), fmt::format("seq {}", next_seq_),
                     fmt::format("seq {} comes next", event.seq)});
    }
    next_seq_ = event.seq + 1;
    if (waiting != span.waiting.end() && waiting->index == i) resolve(event, *waiting++);
    const Telling* const tells = telling != span.telling.end() && telling->index == i ? &*telling++ : nullptr;
    life_.follow(event, tells);
    if (tells != nullptr) RETURN_IF_ERROR(tell(event, *tells));
    tree_.add(event.leaf);
    if (tiles_ != nullptr) tiles_->add(event.leaf);
    RETURN_IF_ERROR(check_points());
  }
  for (const auto& [run_no, run_hash] : span.last_run_hash) life_.heads()[run_no].run_hash = run_hash;
  for (std::size_t origin = 1; origin < counts_.origins.size(); ++origin)
    counts_.origins[origin] += span.origins[origin];
  counts_.redacted.insert(counts_.redacted.end(), span.redacted.begin(), span.redacted.end());
  counts_.events += static_cast<std::int64_t>(span.events.size());
  return success();
}

// Resolves the first event of a run in this span from the run_hash in the preceding span.
void History::resolve(SeenEvent& event, const Waiting& waiting) {
  const std::string& known = life_.heads()[event.run_no].run_hash;
  const Hash zeros{};
  const EntryHashes hashes =
      hash_entry(waiting.before, known.empty() ? view(zeros) : std::string_view(known), waiting.body_hash);
  event.leaf = hashes.leaf_hash;
  if (view(hashes.run_hash) != waiting.run_hash) {
    findings_.add(
        {Check::run_chain, event.seq, log_.run_id(event.run_no), to_hex(hashes.run_hash), to_hex(waiting.run_hash)});
  }
}

Status History::tell(const SeenEvent& event, const Telling& telling) {
  if (telling.type.starts_with("run.")) runs_.see(event, telling);
  if (event.run_no == 0 && telling.type == "key.rotated")
    signatures_.see({event.seq, telling.recorded_at, std::string(telling.json())});
  if (event.run_no == 0 && telling.type == "log.archived") note_archived(telling);
  if (event.run_no == 0 && telling.type == "log.started") see_start(event, telling);
  RETURN_IF_ERROR(corpora_.see(connection_, event, telling));
  if (telling.type == "task.completed") RETURN_IF_ERROR(task_evidence_.see(event, telling));
  return tables_.see(event, telling);
}

void History::note_archived(const Telling& telling) {
  const auto document = json::parse(telling.json());
  if (!document) return;
  const auto number = [body = document->root()](std::string_view name) { return body[name].as_int().value_or(-1); };
  archived_.insert({number("partition"), number("from_seq"), number("to_seq")});
}

void History::see_start(const SeenEvent& event, const Telling& telling) {
  const auto document = json::parse(telling.json());
  const json::Value adopted = document ? document->root()["adopted"] : json::Value();
  if (adopted.is(json::Kind::object)) {
    counts_.adopted.push_back({event.seq, natural_of(adopted, "from_seq"), natural_of(adopted, "to_seq")});
  } else if (telling.redacted) {
    counts_.adopted.push_back({event.seq, -1, -1});
  }
}

Status History::advance_checkpoint() {
  Row row;
  ASSIGN_OR_RETURN(const bool more, checkpoints_.next(row));
  checkpoint_ = more ? std::optional(Point{row.integer(0), row.text(1), row.text(2)}) : std::nullopt;
  return success();
}

// Compares the current tree with the checkpoints of its size.
Status History::check_points() {
  while (checkpoint_ && checkpoint_->size <= next_seq_) {
    const Hash root = tree_.root();
    if (checkpoint_->size != next_seq_ || view(root) != checkpoint_->root || tree_.edge() != checkpoint_->edge) {
      findings_.add({Check::checkpoint_root, checkpoint_->size - 1, "",
                     fmt::format("{} after {} events", to_hex(checkpoint_->root), checkpoint_->size),
                     fmt::format("{} after {} events", to_hex(root), tree_.size())});
    }
    ++counts_.checkpoints;
    RETURN_IF_ERROR(advance_checkpoint());
  }
  if (signatures_.next_size() <= tree_.size()) return signatures_.reached(tree_);
  return success();
}

Status History::finish() {
  while (checkpoint_) {
    findings_.add({Check::checkpoint_root, next_seq_, "", fmt::format("a log of at least {} events", checkpoint_->size),
                   fmt::format("a log of {} events", next_seq_)});
    RETURN_IF_ERROR(advance_checkpoint());
  }
  life_.finish();
  RETURN_IF_ERROR(signatures_.finish(tree_.size()));
  if (tiles_ != nullptr) RETURN_IF_ERROR(tiles_->finish());
  for (const std::int64_t seq : counts_.redacted) {
    if (!life_.announced().contains(seq))
      findings_.add({Check::redaction, seq, "", "an event.redacted that names this seq", "none"});
  }
  RETURN_IF_ERROR(tables_.finish());
  RETURN_IF_ERROR(task_evidence_.finish());
  if (!resumed_) RETURN_IF_ERROR(runs_.finish(connection_));
  if (!resumed_) RETURN_IF_ERROR(corpora_.finish(connection_));
  counts_.runs = static_cast<std::int64_t>(life_.heads().size()) - 1;
  counts_.tables = tables_.counts();
  counts_.corpora = corpora_.counts();
  counts_.halted_without_reason = runs_.halted_without_reason();
  counts_.root = tree_.root();
  return success();
}

}  // namespace muniment::verify
