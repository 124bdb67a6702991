// Tests of reading events: all filters, whole pages, and positions of times.
#include "support/reader_fixture.hpp"

namespace muniment::store::reader_test {
namespace {

TEST_F(ReaderTest, AnEventComesBackAsItWasWritten) {
  add(0, 0, "log.started");
  start_run(1);
  run("INSERT INTO event (log_no, seq, run_no, run_seq, recorded_at, occurred_at, origin, type, "
      "schema_version, step_id, actor, event_id, body_hash, salt, body, run_hash) VALUES (1, 2, 1, 1, "
      "'2026-11-21T14:02:11.000123Z', '1969-12-31T23:59:59.999999Z', 3, 'x.test', 7, 'a:b', 'uid:1', "
      "'0193fa7b-0000-7abc-8def-0123456789ab', decode(repeat('00ff', 16), 'hex'), "
      "decode(repeat('5c27', 16), 'hex'), E'{ \"b\": 1e2,\\t\"a\": \"\\\\u00e9\" }', sha256('x'))");
  auto event = reader_.event_at(2);
  ASSERT_TRUE(event) << event.error().message;
  ASSERT_TRUE(*event);
  EXPECT_EQ((*event)->run_id, "r1");
  EXPECT_EQ((*event)->run_seq, 1);
  EXPECT_EQ(format_time((*event)->recorded_at), "2026-11-21T14:02:11.000123Z");
  EXPECT_EQ((*event)->occurred_at, Time{-1});
  EXPECT_EQ((*event)->origin, events::Origin::imported);
  EXPECT_EQ((*event)->schema_version, 7);
  EXPECT_EQ((*event)->step_id, "a:b");
  EXPECT_EQ((*event)->event_id.text(), "0193fa7b-0000-7abc-8def-0123456789ab");
  EXPECT_EQ((*event)->body, "{ \"b\": 1e2,\t\"a\": \"\\u00e9\" }") << "byte for byte";
  EXPECT_EQ((*event)->body_hash[0], 0x00);
  EXPECT_EQ((*event)->body_hash[1], 0xff);
  EXPECT_EQ((*event)->salt->at(0), 0x5c);
  EXPECT_EQ((*event)->run_hash, sha256("x"));
}

TEST_F(ReaderTest, ARedactedEventHasNeitherBodyNorSalt) {
  add(0, 0, "log.started");
  run("ALTER TABLE event_1_0 DISABLE TRIGGER append_only; UPDATE event SET body = NULL, salt = NULL");
  auto event = reader_.event_at(0);
  ASSERT_TRUE(event && *event);
  EXPECT_FALSE((*event)->body);
  EXPECT_FALSE((*event)->salt);
}

TEST_F(TwoRuns, ARunIsReadInItsOwnOrderAndByItsOwnPositions) {
  EventFilter filter;
  filter.run_no = 1;
  EXPECT_EQ(seqs(filter), (Seqs{1, 3, 5, 7, 9}));
  filter.from_run_seq = 2;
  filter.to_run_seq = 3;
  EXPECT_EQ(seqs(filter), (Seqs{5, 7}));
  filter.newest_first = true;
  EXPECT_EQ(seqs(filter), (Seqs{7, 5}));
  EXPECT_EQ(seqs(filter, 1), (Seqs{7}));
}

TEST_F(TwoRuns, ASpanOfSeqWithinARunIsInclusiveAtBothEnds) {
  EventFilter filter;
  filter.run_no = 1;
  filter.from_seq = 4;  // belongs to r2: the next event of r1 is 5
  filter.to_seq = 7;
  EXPECT_EQ(seqs(filter), (Seqs{5, 7}));
  filter.from_seq = 5;
  EXPECT_EQ(seqs(filter), (Seqs{5, 7}));
  filter.from_seq = 8;
  EXPECT_EQ(seqs(filter), Seqs{});
  filter.run_no = 99;
  EXPECT_EQ(seqs(filter), Seqs{});
}

TEST_F(TwoRuns, TypesAreExactOrAPrefixAndAnUnderscoreIsNoWildcard) {
  EventFilter filter;
  filter.types = {"tool.*"};
  EXPECT_EQ(seqs(filter), (Seqs{3, 5, 7, 9}));
  filter.types = {"tool.called", "log.*"};
  EXPECT_EQ(seqs(filter), (Seqs{0, 5, 9}));
  filter.types = {"tool_*"};
  EXPECT_EQ(seqs(filter), Seqs{});
  filter.types = {"%"};
  EXPECT_EQ(seqs(filter), Seqs{});
  filter.types = {"a\"b", "c,d", "{}", "\\"};
  EXPECT_EQ(seqs(filter), Seqs{});
}

TEST_F(TwoRuns, StepActorOriginAndTimeNarrow) {
  EventFilter filter;
  filter.step_id = "s1";
  EXPECT_EQ(seqs(filter), (Seqs{4, 6, 8}));
  filter.since = at(5);
  EXPECT_EQ(seqs(filter), (Seqs{6, 8}));
  filter.until = at(8);
  EXPECT_EQ(seqs(filter), (Seqs{6}));
  filter = {};
  filter.actor = "uid:1002";
  filter.run_no = 2;
  filter.since = at(4);
  filter.until = at(7);
  EXPECT_EQ(seqs(filter), (Seqs{4, 6}));
  filter = {};
  filter.origin = events::Origin::observed;
  EXPECT_EQ(seqs(filter), Seqs{});
}

TEST_F(TwoRuns, ALimitOfBytesCutsThePageButLeavesOneEvent) {
  EventFilter filter;
  auto all = reader_.events(filter, 100, 1'000'000);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 11u);
  auto one = reader_.events(filter, 100, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->size(), 1u);
  filter.from_seq = 3;
  auto some = reader_.events(filter, 100, 10);  // bodies: {"n": 1} and {}
  ASSERT_TRUE(some);
  EXPECT_EQ(some->size(), 2u);
}

TEST_F(TwoRuns, OneEventIsFoundByEachOfItsNames) {
  auto by_run = reader_.event_of_run(2, 3);
  ASSERT_TRUE(by_run && *by_run);
  EXPECT_EQ((*by_run)->seq, 8);
  auto by_id = reader_.event_by_id(2, (*by_run)->event_id);
  ASSERT_TRUE(by_id && *by_id);
  EXPECT_EQ((*by_id)->seq, 8);
  auto elsewhere = reader_.event_by_id(1, (*by_run)->event_id);
  ASSERT_TRUE(elsewhere);
  EXPECT_FALSE(*elsewhere) << "an event_id is unique within its run";
  auto beyond = reader_.event_at(11);
  ASSERT_TRUE(beyond);
  EXPECT_FALSE(*beyond);
  EXPECT_EQ(*reader_.log_size(), 11);
}

TEST_F(ReaderTest, AnEmptyLogHasSizeZeroAndNoPosition) {
  EXPECT_EQ(*reader_.log_size(), 0);
  EXPECT_EQ(*reader_.seq_as_of(at(0)), -1);
  EventFilter filter;
  filter.since = at(0);
  filter.until = at(9);
  EXPECT_EQ(seqs(filter), Seqs{});
}

TEST_F(ReaderTest, AnEventOfARunThatNeverStartedIsCorrupt) {
  add(5, 1, "tool.called");
  auto event = reader_.event_at(0);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, Errc::corrupt);
  EXPECT_NE(event.error().message.find("run 5, which has no run.started"), std::string::npos);
}

TEST_F(ReaderTest, APageOfManyEventsComesInOrderAndWhole) {
  add(0, 0, "log.started");
  start_run(1);
  run("INSERT INTO event SELECT 1, n, 1, n - 1, to_timestamp(1700000000 + n), NULL, 2, 'x.many', 1, NULL, 'a', "
      "gen_random_uuid(), sha256('h'), sha256('s'), '{}', sha256('r') FROM generate_series(2, 4999) n");
  auto events = reader_.events({}, 10'000);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_EQ(events->size(), 5'000u);
  for (std::size_t i = 0; i < events->size(); ++i) {
    ASSERT_EQ((*events)[i].seq, static_cast<std::int64_t>(i));
  }
  EventFilter newest;
  newest.run_no = 1;
  newest.newest_first = true;
  auto back = reader_.events(newest, 3'000, 1'000'000);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 3'000u);
  EXPECT_EQ(back->front().seq, 4'999);
  EXPECT_EQ(back->back().seq, 2'000);
}

// Compares every answer of seq_as_of with a scan of the whole log.
TEST_F(ReaderTest, APositionAsOfATimeIsExactWhenTheClockStepped) {
  const std::vector<std::int64_t> clock = {10, 20, 20, 30, 25, 26, 40, 50, 15, 16, 60, 35, 70};
  for (std::size_t i = 0; i < clock.size(); ++i) {
    add(0, static_cast<std::int64_t>(i), "log.ticked", "{}", clock[i]);
  }
  for (std::int64_t moment = 5; moment <= 75; ++moment) {
    std::int64_t expected = -1;
    std::int64_t first_since = static_cast<std::int64_t>(clock.size());
    for (std::size_t i = 0; i < clock.size(); ++i) {
      if (clock[i] <= moment) expected = static_cast<std::int64_t>(i);
    }
    for (std::size_t i = clock.size(); i-- > 0;) {
      if (clock[i] >= moment) first_since = static_cast<std::int64_t>(i);
    }
    auto seq = reader_.seq_as_of(at(moment));
    ASSERT_TRUE(seq) << seq.error().message;
    EXPECT_EQ(*seq, expected) << "as of second " << moment;
    EventFilter filter;
    filter.since = at(moment);
    const Seqs found = seqs(filter);
    EXPECT_EQ(found.empty() ? static_cast<std::int64_t>(clock.size()) : found.front(), first_since);
  }
  EXPECT_EQ(*reader_.seq_as_of(Time{start_micros + 70 * second - 1}), 11) << "to the microsecond";
}

TEST_F(ReaderTest, APositionAsOfATimeInALargeLogReadsLittle) {
  run("INSERT INTO event SELECT 1, n, 0, n, to_timestamp(1700000000 + n), NULL, 2, 'log.ticked', 1, NULL, 'a', "
      "gen_random_uuid(), sha256('h'), sha256('s'), '{}', sha256('r') FROM generate_series(0, 49999) n");
  run("VACUUM ANALYZE event_1_0");
  EXPECT_EQ(*reader_.seq_as_of(at(20'000)), 20'000);
  const std::string pages =
      test::ask_sql(uri_,
                    "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; "
                    "EXPLAIN (FORMAT json) SELECT max(seq) FROM event WHERE log_no = 1 AND seq > 20000 AND "
                    "recorded_at < to_timestamp(1700020001)");
  EXPECT_NE(pages.find("event_1_0_time"), std::string::npos) << "the BRIN index is not used: " << pages;
}

}  // namespace
}  // namespace muniment::store::reader_test
