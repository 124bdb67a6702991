#include "verify/history.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "verify/run_facts.hpp"

namespace muniment::verify {

Result<History> History::open(Connection& connection, const Log& log, Findings& findings) {
  ASSIGN_OR_RETURN(Tables tables, Tables::open(connection, log, findings));
  ASSIGN_OR_RETURN(Cursor checkpoints,
                   Cursor::open(connection, "checkpoints",
                                fmt::format("SELECT size, root, edge FROM checkpoint WHERE log_no = {} ORDER BY size", log.log_no)));
  History history(connection, log, findings, std::move(tables), std::move(checkpoints));
  RETURN_IF_ERROR(history.runs_.open(connection));
  RETURN_IF_ERROR(history.advance_checkpoint());
  RETURN_IF_ERROR(history.check_points(0));
  return history;
}

History::History(Connection& connection, const Log& log, Findings& findings, Tables tables, Cursor checkpoints)
    : connection_(connection), log_(log), findings_(findings), tables_(std::move(tables)), runs_(log, findings),
      checkpoints_(std::move(checkpoints)) {
  heads_[0].stand = Stand::open;  // _log is never started
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
    if (waiting != span.waiting.end() && waiting->index == i) resolve(span, event, *waiting++);
    const Telling* const tells = telling != span.telling.end() && telling->index == i ? &*telling++ : nullptr;
    RETURN_IF_ERROR(follow(event, tells));
    tree_.add(event.leaf);
    RETURN_IF_ERROR(check_points(next_seq_));
  }
  for (const auto& [run_no, run_hash] : span.last_run_hash) heads_[run_no].run_hash = run_hash;
  for (std::size_t origin = 1; origin < counts_.origins.size(); ++origin) counts_.origins[origin] += span.origins[origin];
  counts_.redacted.insert(counts_.redacted.end(), span.redacted.begin(), span.redacted.end());
  counts_.events += static_cast<std::int64_t>(span.events.size());
  return success();
}

// The first event of its run in this span: the span before knows the run_hash that it follows.
void History::resolve(const Span&, SeenEvent& event, const Waiting& waiting) {
  const std::string& known = heads_[event.run_no].run_hash;
  const Hash zeros{};
  const EntryHashes hashes = hash_entry(waiting.before, known.empty() ? view(zeros) : std::string_view(known), waiting.body_hash);
  event.leaf = hashes.leaf_hash;
  if (view(hashes.run_hash) != waiting.run_hash) {
    found(Check::run_chain, event, to_hex(hashes.run_hash), to_hex(waiting.run_hash));
  }
}

Status History::follow(const SeenEvent& event, const Telling* telling) {
  Head& head = heads_[event.run_no];
  if (event.run_seq != head.next_run_seq) {
    found(Check::run_seq, event, fmt::format("run_seq {}", head.next_run_seq), fmt::format("run_seq {}", event.run_seq));
  }
  head.next_run_seq = event.run_seq + 1;
  if (event.run_no != 0) live(head, event, telling);
  if (telling == nullptr) return success();
  if (event.life == Life::always) note_redaction(*telling);
  if (telling->type.starts_with("run.")) runs_.see(event, *telling);
  return tables_.see(event, *telling);
}

// docs/format.md, Life of a run
void History::live(Head& head, const SeenEvent& event, const Telling* telling) {
  check_promise(head, &event, telling, event.run_no);
  const Stand before = head.stand;
  bool legal = before != Stand::not_started;
  switch (event.life) {
    case Life::started:
      legal = before == Stand::not_started;
      head.stand = Stand::open;
      break;
    case Life::ended:
      legal = before == Stand::open || before == Stand::halted;
      head.stand = Stand::ended;
      break;
    case Life::halted:
      legal = before == Stand::open || before == Stand::ended;
      head.stand = Stand::halted;
      break;
    case Life::resumed:
      legal = before == Stand::ended || before == Stand::halted;
      head.stand = Stand::open;
      break;
    case Life::stored:
      if (before == Stand::ended || before == Stand::halted) {
        const auto document = json::parse(telling != nullptr ? telling->json() : "{}");
        head.promise_seq = event.seq;
        head.promise_artifact = document ? text_of(document->root(), "artifact_id").value_or("") : "";
      }
      break;
    case Life::snapshot:
    case Life::always: break;
    case Life::other: legal = before == Stand::open; break;
  }
  if (legal) return;
  constexpr std::array<std::string_view, 4> stands{"not started", "open", "ended", "halted"};
  found(Check::transition, event, "an event that the run takes in its state",
        fmt::format("{} in a run that is {}", telling != nullptr ? telling->type : "an event for open runs",
                    stands[static_cast<std::size_t>(before)]));
}

void History::check_promise(Head& head, const SeenEvent* event, const Telling* telling, std::int64_t run_no) {
  if (head.promise_seq < 0) return;
  bool kept = false;
  if (event != nullptr && event->life == Life::snapshot && telling != nullptr) {
    const auto document = json::parse(telling->json());
    kept = document && text_of(document->root(), "artifact_id") == head.promise_artifact;
  }
  if (!kept) {
    findings_.add({Check::transition, head.promise_seq, log_.run_id(run_no), "the run's next event to be the snapshot that names this artifact",
                   "artifact.stored in a run that is not open"});
  }
  head.promise_seq = -1;
}

void History::note_redaction(const Telling& telling) {
  const auto document = json::parse(telling.json());
  if (!document) return;
  if (telling.type == "event.redacted") {
    if (const auto seq = document->root()["seq"].as_int()) announced_.insert(*seq);
  } else if (telling.type == "artifact.redacted") {
    if (auto id = text_of(document->root(), "artifact_id")) redacted_artifacts_.insert(*std::move(id));
  }
}

Status History::advance_checkpoint() {
  Row row;
  ASSIGN_OR_RETURN(const bool more, checkpoints_.next(row));
  checkpoint_ = more ? std::optional(Point{row.integer(0), row.text(1), row.text(2)}) : std::nullopt;
  return success();
}

Status History::check_points(std::int64_t size) {
  while (checkpoint_ && checkpoint_->size <= size) {
    const Hash root = tree_.root();
    if (checkpoint_->size != size || view(root) != checkpoint_->root || tree_.edge() != checkpoint_->edge) {
      findings_.add({Check::checkpoint_root, checkpoint_->size - 1, "",
                     fmt::format("{} after {} events", to_hex(checkpoint_->root), checkpoint_->size),
                     fmt::format("{} after {} events", to_hex(root), tree_.size())});
    }
    ++counts_.checkpoints;
    RETURN_IF_ERROR(advance_checkpoint());
  }
  return success();
}

Status History::finish() {
  while (checkpoint_) {
    findings_.add({Check::checkpoint_root, next_seq_, "", fmt::format("a log of at least {} events", checkpoint_->size),
                   fmt::format("a log of {} events", next_seq_)});
    RETURN_IF_ERROR(advance_checkpoint());
  }
  for (auto& [run_no, head] : heads_) check_promise(head, nullptr, nullptr, run_no);
  for (const std::int64_t seq : counts_.redacted) {
    if (!announced_.contains(seq)) findings_.add({Check::redaction, seq, "", "an event.redacted that names this seq", "none"});
  }
  RETURN_IF_ERROR(tables_.finish());
  RETURN_IF_ERROR(runs_.finish(connection_));
  counts_.runs = static_cast<std::int64_t>(heads_.size()) - 1;
  counts_.tables = tables_.counts();
  counts_.halted_without_reason = runs_.halted_without_reason();
  counts_.root = tree_.root();
  return success();
}

void History::found(Check check, const SeenEvent& event, std::string expected, std::string actual) {
  findings_.add({check, event.seq, log_.run_id(event.run_no), std::move(expected), std::move(actual)});
}

}  // namespace muniment::verify
