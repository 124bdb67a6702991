// Tests of numbering without a database: the events that a run accepts in each state, and the state after a refusal.
#include "store/append/append_batch.hpp"

#include <gtest/gtest.h>

#include "events/entry.hpp"

namespace muniment::store {
namespace {

using enum AppendConflict;
using RunPtr = std::shared_ptr<Run>;  // in a fixture, Run is a member of gtest's

class Append : public testing::Test {
 protected:
  RunPtr run_in(RunStatus status) {
    auto run = std::make_shared<store::Run>("r1");
    run->head.status = status;
    if (status != RunStatus::absent) run->head.run_no = 1;
    run->head.run_seq = status == RunStatus::absent ? 0 : 3;
    RunView view;
    view.status = status;
    if (status == RunStatus::halted)
      view.halt = Halt{"SYSTEM_ERROR", "artifact://r1/a7 missing", "artifact://r1/a7", Time{51'731'000'000}, 918};
    run->publish(view);
    return run;
  }

  static events::NewEvent event_of(std::string_view type) {
    events::NewEvent event;
    event.type = type;
    event.body = "{}";
    event.event_id = make_uuid_v7(Time{1});
    event.event_id_is_ours = true;
    events::seal(event);
    return event;
  }

  AppendRequest request_of(RunPtr run, std::initializer_list<std::string_view> types) {
    AppendRequest request;
    request.actor = "uid:1000";
    for (std::string_view type : types) request.events.push_back({run, event_of(type), false});
    return request;
  }

  // Numbers and commits one request. Returns the receipts, or the error of the refusal.
  Result<std::vector<events::Receipt>> commit(AppendRequest request) {
    Result<std::vector<events::Receipt>> answer = Error(Errc::system_error, "not answered");
    request.done = [&](auto result) { answer = std::move(result); };
    AppendBatch batch;
    batch.add(std::move(request), log_, Time{1'000'000});
    batch.committed(tail_);
    return answer;
  }

  std::string outcome(RunStatus status, std::initializer_list<std::string_view> types) {
    const auto answer = commit(request_of(run_in(status), types));
    return answer ? "taken" : std::string(name_of(answer.error().code));
  }

  LogHead log_;
  Tail tail_;
};

TEST_F(Append, ARunBeginsWithItsStartAndWithNothingElse) {
  EXPECT_EQ(outcome(RunStatus::absent, {"run.started", "message.added"}), "taken");
  EXPECT_EQ(outcome(RunStatus::absent, {"message.added"}), "not_found");
  EXPECT_EQ(outcome(RunStatus::open, {"run.started"}), "conflict");
}

TEST_F(Append, AnEndedRunTakesNotesAndAReopening) {
  EXPECT_EQ(outcome(RunStatus::ended, {"message.added"}), "conflict");
  EXPECT_EQ(outcome(RunStatus::ended, {"run.ended"}), "conflict");
  EXPECT_EQ(outcome(RunStatus::ended, {"run.annotated"}), "taken");
  EXPECT_EQ(outcome(RunStatus::ended, {"run.halted"}), "taken");
  EXPECT_EQ(outcome(RunStatus::ended, {"run.resumed", "message.added"}), "taken");
  EXPECT_EQ(outcome(RunStatus::open, {"run.resumed"}), "conflict");
}

TEST_F(Append, AHaltedRunMayOnlyBeNotedAndEnded) {
  EXPECT_EQ(outcome(RunStatus::halted, {"x.acme.note"}), "run_halted");
  EXPECT_EQ(outcome(RunStatus::halted, {"run.halted"}), "run_halted");
  EXPECT_EQ(outcome(RunStatus::halted, {"pointer.unresolved", "run.annotated", "run.ended"}), "taken");
}

TEST_F(Append, AHaltSaysWhatIsMissingAndWhatToDo) {
  const auto answer = commit(request_of(run_in(RunStatus::halted), {"x.acme.note"}));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message,
            "SYSTEM_ERROR since 14:22:11Z (seq 918): artifact://r1/a7 missing. See: muniment recover r1");
  EXPECT_EQ(answer.error().pointer, "artifact://r1/a7");
}

TEST_F(Append, AFileOfASnapshotIsTakenWithTheSnapshotOnly) {
  EXPECT_EQ(outcome(RunStatus::ended, {"artifact.stored"}), "conflict");
  EXPECT_EQ(outcome(RunStatus::ended, {"artifact.stored", "snapshot.taken"}), "taken");
  EXPECT_EQ(outcome(RunStatus::ended, {"artifact.stored", "artifact.stored", "snapshot.taken"}), "conflict");
}

TEST_F(Append, ARefusedRequestLeavesNothingBehind) {
  auto run = run_in(RunStatus::open);
  const auto answer = commit(request_of(run, {"message.added", "run.ended", "message.added"}));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(run->head.run_seq, 3);
  EXPECT_EQ(run->head.status, RunStatus::open);
  EXPECT_EQ(log_.next_seq, 0);
  EXPECT_EQ(tail_.next_seq(), 0);
}

TEST_F(Append, AnIdThatMayBeKnownIsAskedForBeforeTheRunsState) {
  auto run = run_in(RunStatus::open);
  AppendRequest first = request_of(run, {"message.added"});
  first.events[0].event.event_id_is_ours = false;
  AppendRequest repeated = request_of(run, {"message.added"});
  repeated.events[0].event.event_id = first.events[0].event.event_id;
  repeated.events[0].event.event_id_is_ours = false;
  repeated.expected_run_seq = 3;
  ASSERT_TRUE(commit(std::move(first)).ok());
  ASSERT_TRUE(commit(request_of(run, {"run.ended"})).ok());
  const auto answer = commit(std::move(repeated));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().conflict, maybe_duplicate);
}

TEST_F(Append, ExpectedRunSeqNamesBothPositions) {
  AppendRequest request = request_of(run_in(RunStatus::open), {"message.added"});
  request.expected_run_seq = 2;
  const auto answer = commit(std::move(request));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message,
            "the next run_seq of r1 is 3, you expected 2. Read from 2, or drop expected_run_seq.");
}

TEST_F(Append, WhatIsLeftOutForAClosedParentHasNoPosition) {
  auto parent = run_in(RunStatus::ended);
  AppendRequest request = request_of(run_in(RunStatus::open), {"run.ended"});
  request.events.push_back({parent, event_of("child.ended"), true});
  const auto answer = commit(std::move(request));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ((*answer)[0].run_seq, 3);
  EXPECT_EQ((*answer)[1].seq, -1);
  EXPECT_EQ(parent->head.run_seq, 3);
}

TEST_F(Append, AReceiptHoldsTheHashesOfTheEntry) {
  auto run = run_in(RunStatus::absent);
  const auto answer = commit(request_of(run, {"run.started", "message.added"}));
  ASSERT_TRUE(answer.ok());
  const auto events = tail_.read(0, 10);
  ASSERT_TRUE(events && events->size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Hash previous = i == 0 ? Hash{} : (*answer)[0].run_hash;
    const auto hashes = events::hash_entry(log_.log_id, *(*events)[i], previous);
    EXPECT_EQ((*answer)[i].run_hash, hashes.run_hash);
    EXPECT_EQ((*answer)[i].leaf_hash, hashes.leaf_hash);
  }
  EXPECT_EQ(log_.edge.size(), 2);
}

TEST_F(Append, ARequestBehindARequeuedOneIsRequeuedToo) {
  const RunPtr run = run_in(RunStatus::open);
  const auto order = std::make_shared<Requeued>();
  const auto send = [&](events::NewEvent event) {
    AppendRequest request = request_of(run, {});
    request.order = order;
    request.events.push_back({run, std::move(event), false});
    return commit(std::move(request));
  };
  events::NewEvent known = event_of("message.added");
  known.event_id_is_ours = false;
  EXPECT_TRUE(send(known));
  const auto again = send(known);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().conflict, maybe_duplicate);
  const auto behind = send(event_of("message.added"));
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().conflict, out_of_turn);
  EXPECT_TRUE(commit(request_of(run, {"message.added"}))) << "another connection's stands in another order";
  order->any = false;
  EXPECT_TRUE(send(event_of("message.added")));
}

TEST_F(Append, BytesThatCameToAStepSinceItWasAskedAreAskedForAgain) {
  const RunPtr run = run_in(RunStatus::open);
  const auto put = [&](std::string_view step, std::string_view bytes, std::int64_t asked_at) {
    AppendRequest request = request_of(run, {"artifact.stored"});
    ArtifactRow row;
    row.step_id = step;
    row.hash = sha256(bytes);
    request.rows.push_back({0, row});
    request.contents_asked_at = asked_at;
    const auto answer = commit(std::move(request));
    return answer ? none : answer.error().conflict;
  };
  EXPECT_EQ(put("s1", "a", 3), none);
  EXPECT_EQ(put("s1", "a", 3), maybe_stored);
  EXPECT_EQ(put("s1", "b", 3), none);
  EXPECT_EQ(put("s2", "a", 3), none);
  EXPECT_EQ(put("s1", "a", run->next_run_seq()), none) << "asked since, and not there: it was erased";
}

TEST_F(Append, WhatWasMadeBeforeAnEventAboutTheSameNameCameIsMadeAgain) {
  const RunPtr log = run_in(RunStatus::open);
  const auto change = [&](const std::string& name, std::int64_t known_upto) {
    AppendRequest request = request_of(log, {"document.revised"});
    request.names = {"another", name};
    if (name != "b") request.names = {name};
    request.names_known_upto = known_upto;
    const auto answer = commit(std::move(request));
    return answer ? none : answer.error().conflict;
  };
  const std::int64_t before = log_.next_seq;
  EXPECT_EQ(change("a", before), none);
  EXPECT_EQ(change("a", before), moved_on);
  EXPECT_EQ(change("b", before), none);
  EXPECT_EQ(change("another", before), moved_on) << "each of its names";
  EXPECT_EQ(change("a", before + 1), none) << "the tables had the first change";
  EXPECT_EQ(change("c", 0), none) << "nothing was ever about it";
  AppendRequest two = request_of(log, {"document.revised"});
  two.names = {"a", "d"};
  two.names_known_upto = before + 1;
  const auto answer = commit(std::move(two));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().conflict, moved_on);
  EXPECT_TRUE(is_requeued(answer.error()));
}

TEST_F(Append, NamesMayBeComparedInAnotherRun) {
  const RunPtr first = run_in(RunStatus::open), second = run_in(RunStatus::open), log = run_in(RunStatus::open);
  const std::int64_t before = log_.next_seq;
  const auto record = [&](const RunPtr& run, const RunPtr& names_run) {
    AppendRequest request = request_of(run, {"evidence.recorded"});
    request.names = {"a"};
    request.names_known_upto = before;
    request.names_run = names_run;
    const auto answer = commit(std::move(request));
    return answer ? none : answer.error().conflict;
  };
  EXPECT_EQ(record(first, log), none);
  EXPECT_EQ(record(second, log), moved_on);
  EXPECT_EQ(record(second, nullptr), none);
}

TEST_F(Append, ARequestThatReliesOnANameIsMadeAgainForEventsAboutItAlone) {
  const RunPtr log = run_in(RunStatus::open);
  const std::int64_t before = log_.next_seq;
  const auto rely = [&](const std::string& about) {
    AppendRequest request = request_of(log, {"document.revised"});
    request.names = {about};
    request.names_relied_on = {"source"};
    request.names_known_upto = before;
    return commit(std::move(request));
  };
  EXPECT_TRUE(rely("a"));
  EXPECT_TRUE(rely("b")) << "two that rely on one name do not disturb each other";
  AppendRequest revoked = request_of(log, {"source.revoked"});
  revoked.names = {"source"};
  revoked.names_known_upto = before;
  EXPECT_TRUE(commit(std::move(revoked)));
  const auto late = rely("c");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().conflict, moved_on);
}

TEST(LastNumbered, ForgetsWhatIsSettledAndSaysSo) {
  LastNumbered things(1'024);
  for (std::int64_t i = 0; i < 2'000; ++i) things.add(fingerprint(std::to_string(i)), i, i);
  EXPECT_TRUE(things.any_since(fingerprint("1999"), 1'999, 2'000));
  EXPECT_FALSE(things.any_since(fingerprint("other"), 1'999, 2'000));
  EXPECT_FALSE(things.any_since(fingerprint("1999"), 1'999, 1'999)) << "that position was taken back";
  EXPECT_TRUE(things.any_since(fingerprint("other"), 3, 2'000)) << "whoever asked so early has to ask again";
  EXPECT_FALSE(things.any_since(fingerprint("other"), 3, 3))
      << "whoever knows all that there is need not, though some was taken back";
}

}  // namespace
}  // namespace muniment::store
