#include "verify/log/run_life.hpp"

#include <fmt/format.h>

#include <array>

#include "verify/log/run_facts.hpp"

namespace muniment::verify {

RunLife::RunLife(const Log& log, Findings& findings) : log_(log), findings_(findings) {
  heads_[0].stand = Stand::open;  // _log is never started
}

void RunLife::follow(const SeenEvent& event, const Telling* telling) {
  Head& head = heads_[event.run_no];
  if (event.run_seq != head.next_run_seq) {
    found(Check::run_seq, event, fmt::format("run_seq {}", head.next_run_seq),
          fmt::format("run_seq {}", event.run_seq));
  }
  head.next_run_seq = event.run_seq + 1;
  if (event.run_no != 0) live(head, event, telling);
  if (telling != nullptr && event.life == Life::always) note_redaction(*telling);
}

void RunLife::finish() {
  for (auto& [run_no, head] : heads_) check_promise(head, nullptr, nullptr, run_no);
}

void RunLife::live(Head& head, const SeenEvent& event, const Telling* telling) {
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
        head.promise_erased = telling != nullptr && telling->redacted;
        head.promise_artifact = document ? text_of(document->root(), "artifact_id").value_or("") : "";
      }
      break;
    case Life::snapshot:
    case Life::always: break;
    case Life::other: legal = before == Stand::open; break;
  }
  if (legal) return;
  constexpr std::array<std::string_view, 4> stands{"not started", "open", "ended", "halted"};
  found(Check::transition, event, "an event that the run's state permits",
        fmt::format("{} in a run that is {}", telling != nullptr ? telling->type : "an event for open runs",
                    stands[static_cast<std::size_t>(before)]));
}

void RunLife::check_promise(Head& head, const SeenEvent* event, const Telling* telling, std::int64_t run_no) {
  if (head.promise_seq < 0) return;
  bool kept = false;
  if (event != nullptr && event->life == Life::snapshot && telling != nullptr) {
    const auto document = json::parse(telling->json());
    kept = head.promise_erased || (document && text_of(document->root(), "artifact_id") == head.promise_artifact);
  }
  if (!kept) {
    findings_.add({Check::transition, head.promise_seq, log_.run_id(run_no),
                   "the run's next event to be the snapshot that names this artifact",
                   "artifact.stored in a run that is not open"});
  }
  head.promise_seq = -1;
}

void RunLife::note_redaction(const Telling& telling) {
  const auto document = json::parse(telling.json());
  if (!document) return;
  if (telling.type == "event.redacted") {
    if (const auto seq = document->root()["seq"].as_int()) announced_.insert(*seq);
  } else if (telling.type == "artifact.redacted") {
    if (auto id = text_of(document->root(), "artifact_id")) redacted_artifacts_.insert(*std::move(id));
  }
}

void RunLife::found(Check check, const SeenEvent& event, std::string expected, std::string actual) {
  findings_.add({check, event.seq, log_.run_id(event.run_no), std::move(expected), std::move(actual)});
}

}  // namespace muniment::verify
