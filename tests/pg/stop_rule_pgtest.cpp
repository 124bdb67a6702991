// Tests of pointers against a real log and real files: which ones resolve, halt the run, or do neither.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/json/json.hpp"
#include "evidence/pointer_follower.hpp"
#include "evidence/stop_rule.hpp"
#include "support/log_fixture.hpp"

namespace muniment::evidence {
namespace {

namespace fs = std::filesystem;
using Types = std::vector<std::string>;

class StopRuleTest : public test::LogFixture {
 protected:
  void SetUp() override {
    LogFixture::SetUp();
    run = start_run("r1");
    artifact = put(run, "the evidence");
  }

  Result<Outcome> resolve(const std::string& pointer, bool critical, bool with_text = false) {
    int attempt = 0;
    Resolver resolver(*reader, *files, Sight{[&](std::string_view) {
      if (++attempt == 2 && before_retry) before_retry();
      return Result<bool>(true);
    }});
    return StopRule(resolver, *reader, *tail, *runs, clock).resolve({{pointer, run, critical}}, with_text);
  }

  // Resolves the pointer and appends the resulting events. Returns the one item.
  Outcome::Item settle(const std::string& pointer, bool critical) {
    auto outcome = resolve(pointer, critical);
    EXPECT_TRUE(outcome) << outcome.error().message;
    if (!outcome->events.empty()) {
      store::AppendRequest request;
      request.actor = events::daemon_actor;
      request.events = outcome->events;
      const auto receipts = append(std::move(request));
      EXPECT_TRUE(receipts) << receipts.error().message;
    }
    return outcome->items.front();
  }

  store::AppendRequest a_step() {
    store::AppendRequest request;
    request.events.push_back(
        daemon_event(run, "step.started", R"({"name":"s","kind":"turn"})", make_uuid_v7(clock.now()), true));
    return request;
  }

  std::shared_ptr<store::Run> run;
  store::ArtifactRow artifact;
  std::function<void()> before_retry;  // called between the first look-up and the second
};

TEST_F(StopRuleTest, WhatIsThereResolvesAndLogsNothing) {
  const auto outcome = resolve(pointer_to(artifact) + "#b4-12", true, true);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->items.front().resolution.ok());
  EXPECT_EQ(outcome->items.front().resolution.text, "evidence");
  EXPECT_TRUE(outcome->events.empty());
  EXPECT_EQ(outcome->damage(), nullptr);
}

TEST_F(StopRuleTest, AMissingCriticalFileHaltsItsRunInOneCommit) {
  fs::remove(file_of(artifact));
  const auto item = settle(pointer_to(artifact), true);
  EXPECT_EQ(item.resolution.reason, Reason::not_found);
  EXPECT_EQ(types_of(run),
            (Types{"run.started", "artifact.stored", "pointer.retried", "pointer.unresolved", "run.halted"}));
  const auto events = events_of(run);
  EXPECT_EQ(events[2].recorded_at, events[4].recorded_at);  // one batch, one time
  const auto body = *json::parse(*events[4].body);
  EXPECT_EQ(body.root()["code"].as_string(), "SYSTEM_ERROR");
  EXPECT_EQ(body.root()["pointer"].as_string(), pointer_to(artifact));
  EXPECT_EQ(body.root()["expected"].as_string(), to_hex(artifact.hash));
  EXPECT_EQ(body.root()["attempts"].as_int(), 2);
  EXPECT_EQ(run->view().status, store::RunStatus::halted);
}

TEST_F(StopRuleTest, AHaltedRunIsNotHaltedAgain) {
  fs::remove(file_of(artifact));
  settle(pointer_to(artifact), true);
  const auto again = resolve(pointer_to(artifact), true);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->events.empty());
  EXPECT_NE(again->damage(), nullptr);
}

TEST_F(StopRuleTest, AfterAHaltWhatChangesTheRunIsRefusedWithTheReason) {
  fs::remove(file_of(artifact));
  settle(pointer_to(artifact), true);
  const auto refused = append(a_step());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::run_halted);
  EXPECT_EQ(refused.error().pointer, pointer_to(artifact));
}

TEST_F(StopRuleTest, TwoThatSeeTheSameDamageHaltTheRunOnce) {
  fs::remove(file_of(artifact));
  auto first = resolve(pointer_to(artifact), true);
  auto second = resolve(pointer_to(artifact), true);
  store::AppendRequest a;
  store::AppendRequest b;
  a.events = first->events;
  b.events = second->events;
  EXPECT_TRUE(append(std::move(a)));
  // Its events are all dropped as duplicates; an append that the halt refused would fail.
  EXPECT_TRUE(append(std::move(b)));
  EXPECT_EQ(types_of(run).size(), 5u);
}

TEST_F(StopRuleTest, AFlippedByteIsAHashMismatchWithBothHashes) {
  ::chmod(file_of(artifact).c_str(), 0600);
  std::ofstream(file_of(artifact)) << "the evidencE";
  const auto item = settle(pointer_to(artifact), true);
  EXPECT_EQ(item.resolution.reason, Reason::hash_mismatch);
  EXPECT_EQ(item.resolution.expected, to_hex(artifact.hash));
  EXPECT_EQ(item.resolution.actual, to_hex(sha256("the evidencE")));
}

TEST_F(StopRuleTest, AFifoInThePlaceHaltsAndNeverHangs) {
  fs::remove(file_of(artifact));
  ASSERT_EQ(::mkfifo(file_of(artifact).c_str(), 0600), 0);
  EXPECT_EQ(settle(pointer_to(artifact), true).resolution.reason, Reason::not_found);
  EXPECT_EQ(run->view().status, store::RunStatus::halted);
}

TEST_F(StopRuleTest, BackBeforeTheRetryTheRunGoesOnWithOneRetryInTheLog) {
  const std::string file = file_of(artifact);
  fs::rename(file, file + ".away");
  before_retry = [&] { fs::rename(file + ".away", file); };
  const auto item = settle(pointer_to(artifact), true);
  EXPECT_TRUE(item.resolution.ok());
  EXPECT_EQ(types_of(run), (Types{"run.started", "artifact.stored", "pointer.retried"}));
  EXPECT_EQ(run->view().status, store::RunStatus::open);
}

TEST_F(StopRuleTest, WhatNothingDependsOnIsSkippedAndTheSkipIsLogged) {
  fs::remove(file_of(artifact));
  settle(pointer_to(artifact), false);
  EXPECT_EQ(types_of(run), (Types{"run.started", "artifact.stored", "pointer.unresolved"}));
  const std::string skipped = *events_of(run)[2].body;
  EXPECT_EQ(json::parse(skipped)->root()["critical"].as_bool(), false);
  EXPECT_EQ(run->view().status, store::RunStatus::open);
}

TEST_F(StopRuleTest, AnUnknownButWellFormedPointerHaltsWhenItIsCritical) {
  EXPECT_EQ(settle("artifact://r1/" + make_uuid_v7(clock.now()).text(), true).resolution.reason, Reason::not_found);
  EXPECT_EQ(run->view().status, store::RunStatus::halted);
}

TEST_F(StopRuleTest, WhatDoesNotParseIsNeitherRetriedNorDoesItHalt) {
  const auto item = settle("artifact:/r1", true);
  EXPECT_EQ(item.resolution.reason, Reason::parse_error);
  EXPECT_EQ(types_of(run).size(), 2u);
}

TEST_F(StopRuleTest, ACriticalPointerNeedsARunThatCanStop) {
  Resolver resolver(*reader, *files, Sight{[](std::string_view) { return Result<bool>(true); }});
  StopRule rule(resolver, *reader, *tail, *runs, clock);
  const auto refused = rule.resolve({{"manifest://" + make_uuid_v7({}).text(), nullptr, true}}, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
}

TEST_F(StopRuleTest, AnotherPersonsRunLooksAsIfItWereNotThere) {
  Resolver resolver(*reader, *files, Sight{[](std::string_view) { return Result<bool>(false); }});
  for (const std::string& pointer :
       {pointer_to(artifact), std::string("run://r1"), std::string("ev://run/r1#e0?v=0000000000000000")}) {
    const auto found = resolver.resolve(pointer, Depth::whole);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->reason, Reason::not_found) << pointer;
  }
}

TEST_F(StopRuleTest, TheOpenParentIsToldAndAnEndedOneIsNot) {
  for (const bool ended : {false, true}) {
    const std::string suffix = ended ? "-ended" : "-open";
    const auto parent = start_run("p" + suffix);
    run = start_run("c" + suffix, "p" + suffix);
    artifact = put(run, "child's");
    if (ended) append(parent, "run.ended", R"({"outcome":"success"})");
    fs::remove(file_of(artifact));
    settle(pointer_to(artifact), true);
    EXPECT_EQ(run->view().status, store::RunStatus::halted);
    EXPECT_EQ(types_of(parent).back(), ended ? "run.ended" : "child.halted");
  }
}

TEST_F(StopRuleTest, TwoThatSeeTheSameDamageTellTheParentOnce) {
  const auto parent = start_run("p");
  run = start_run("c", "p");
  artifact = put(run, "child's");
  fs::remove(file_of(artifact));
  auto first = resolve(pointer_to(artifact), true);
  auto second = resolve(pointer_to(artifact), true);
  for (Outcome* const outcome : {&*first, &*second}) {
    store::AppendRequest request;
    request.events = outcome->events;
    EXPECT_TRUE(append(std::move(request)));
  }
  EXPECT_EQ(std::ranges::count(types_of(parent), "child.halted"), 1);
  EXPECT_EQ(std::ranges::count(types_of(run), "run.halted"), 1);
}

TEST_F(StopRuleTest, WhatAClaimNeedsIsCriticalWholeOrInPartBeforeAndAfterTheCatalogueKnows) {
  store::ClaimRow claim;
  claim.claim_id = make_uuid_v7(clock.now());
  claim.run_id = "r1";
  claim.text = "it works";
  claim.pointers = "[\"" + pointer_to(artifact) + "#b0-3\"]";
  append(run, "claim.recorded",
         R"({"claim_id":")" + claim.claim_id.text() + R"(","text":"it works","pointers":)" + claim.pointers + "}",
         {claim});
  const std::vector<std::string> pointers = {pointer_to(artifact), pointer_to(artifact) + "#b0-3",
                                             pointer_to(artifact) + "#b1-2"};
  for (const std::string& pointer : pointers) EXPECT_TRUE(resolve(pointer, false)->items.front().critical) << pointer;

  PointerFollower follower({{uri, 1}, std::chrono::milliseconds(1)}, *tail);
  follower.start();
  for (int i = 0; i < 200 && follower.next_seq() < tail->next_seq(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const std::string& pointer : pointers) EXPECT_TRUE(resolve(pointer, false)->items.front().critical) << pointer;
  const auto rows = reader->pointers_of_run("r1", std::nullopt, 10);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->size(), 2u);
  close_log();
  follower.stop();
}

TEST_F(StopRuleTest, AnEventIsEvidenceByTheStartOfItsHash) {
  const auto event = events_of(run).front();
  const std::string revision = to_hex(event.body_hash).substr(0, 16);
  EXPECT_TRUE(resolve("ev://run/r1#e0?v=" + revision, true)->items.front().resolution.ok());
  Resolver resolver(*reader, *files, Sight{[](std::string_view) { return Result<bool>(true); }});
  EXPECT_EQ(resolver.resolve("ev://run/r1#e0?v=0000000000000000", Depth::whole)->reason, Reason::version_mismatch);
  const auto unversioned = resolver.resolve("ev://run/r1#e0", Depth::whole);
  EXPECT_EQ(unversioned->reason, Reason::missing_version);
  EXPECT_FALSE(unversioned->damaged());  // otherwise, a run that it stopped once could never continue
  EXPECT_EQ(resolver.resolve("ev://run/r1#e99?v=" + revision, Depth::whole)->reason, Reason::not_found);
  EXPECT_EQ(resolver.resolve("ev://papers/x#p1?v=h1", Depth::whole)->reason, Reason::not_found);
}

TEST_F(StopRuleTest, ARowThatWasReadAheadIsUsedOnceAndThenLookedUpAgain) {
  Resolver resolver(*reader, *files, Sight{[](std::string_view) { return Result<bool>(true); }});
  const std::string pointer = pointer_to(artifact);
  ASSERT_TRUE(resolver.read_ahead({pointer, "not a pointer", pointer}));
  test::run_sql(uri, "SET session_replication_role = replica; DELETE FROM artifact");
  EXPECT_TRUE(resolver.resolve(pointer, Depth::span)->ok());
  EXPECT_TRUE(resolver.resolve(pointer, Depth::span)->ok());
  EXPECT_EQ(resolver.resolve(pointer, Depth::span)->reason, Reason::not_found);
}

class HaltJournalTest : public StopRuleTest {
 protected:
  std::unique_ptr<HaltJournal> open_journal() {
    auto journal = HaltJournal::open({folder.path() + "/halts", {uri, 1}}, *appender, *runs);
    EXPECT_TRUE(journal) << journal.error().message;
    return journal ? std::move(*journal) : nullptr;
  }
  std::size_t journal_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder.path() + "/halts"), fs::directory_iterator{}));
  }
  static void wait_for(const HaltJournal& journal) {
    for (int i = 0; i < 300 && journal.waiting() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(journal.waiting(), 0u);
  }
};

TEST_F(HaltJournalTest, AHaltThatPostgresCannotTakeStopsTheRunAtOnceAndIsInTheLogAfterTheNextStart) {
  fs::remove(file_of(artifact));
  auto outcome = resolve(pointer_to(artifact), true);
  ASSERT_EQ(outcome->halts.size(), 1u);
  {
    auto journal = open_journal();
    appender->stop();  // from now on it refuses appends
    ASSERT_TRUE(journal->record(outcome->halts.front()));
    EXPECT_EQ(run->view().status, store::RunStatus::halted);
    EXPECT_TRUE(run->fail_stopped());
    EXPECT_TRUE(journal->holds("r1"));
    EXPECT_EQ(journal_files(), 1u);
  }
  close_log();
  open_log();
  const auto journal = open_journal();
  EXPECT_EQ(journal->waiting(), 0u);
  EXPECT_EQ(journal_files(), 0u);
  run = runs->find("r1");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(types_of(run),
            (Types{"run.started", "artifact.stored", "pointer.retried", "pointer.unresolved", "run.halted"}));
  EXPECT_FALSE(run->fail_stopped());
}

TEST_F(HaltJournalTest, ALatchedRunTakesNothingButItsHalt) {
  fs::remove(file_of(artifact));
  auto outcome = resolve(pointer_to(artifact), true);
  run->fail_stop(outcome->halts.front().halt);
  const auto refused = append(a_step());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::run_halted);
  const auto journal = open_journal();
  ASSERT_TRUE(journal->record(outcome->halts.front()));
  wait_for(*journal);
  EXPECT_EQ(types_of(run).back(), "run.halted");
  EXPECT_FALSE(run->fail_stopped());
  EXPECT_GE(run->view().halt->seq, 0);
}

TEST_F(HaltJournalTest, WhatIsInTheLogAlreadyIsNotBroughtInTwice) {
  fs::remove(file_of(artifact));
  auto outcome = resolve(pointer_to(artifact), true);
  const PendingHalt pending = outcome->halts.front();
  for (int i = 0; i < 2; ++i) {  // simulates a crash between the append and the file's removal
    auto journal = open_journal();
    ASSERT_TRUE(journal->record(pending));
    wait_for(*journal);
  }
  EXPECT_EQ(types_of(run).size(), 5u);
  EXPECT_EQ(journal_files(), 0u);
}

TEST_F(HaltJournalTest, AJournalFileThatCannotBeReadStopsTheStart) {
  ASSERT_NE(open_journal(), nullptr);
  std::ofstream(folder.path() + "/halts/x.json") << "{\"run_id\":";
  const auto journal = HaltJournal::open({folder.path() + "/halts", {uri, 1}}, *appender, *runs);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace muniment::evidence
