// Tests of event.append, event.get and event.list on a real log: receipts, repeated requests and pages.
#include <gtest/gtest.h>

#include "events/entry.hpp"
#include "support/method_caller.hpp"

namespace muniment {
namespace {

using test::MethodCaller;
using test::Outcome;

constexpr std::string_view id_1 = "01020304-0506-4708-890a-0b0c0d0e0f01";
constexpr std::string_view id_2 = "01020304-0506-4708-890a-0b0c0d0e0f02";

std::string event(std::string_view id, std::string_view body, std::string_view more = {}) {
  return R"({"type":"x.acme.note","body":)" + std::string(body) + R"(,"event_id":")" + std::string(id) + "\"" +
         std::string(more) + "}";
}

std::string append_one(std::string_view id, std::string_view body, std::string_view more = {}) {
  return R"({"run_id":"r1",)" + event(id, body, more).substr(1);
}

class EventAppend : public testing::Test {
 protected:
  EventAppend() { EXPECT_TRUE(log.call("run.start", R"({"run_id":"r1","agent":{"name":"coder"}})").ok()); }
  MethodCaller log;
};

TEST_F(EventAppend, AReceiptIsEnoughToRecomputeTheHashes) {
  const Outcome receipt = log.call("event.append", append_one(id_1, R"({"n": 1})"));
  ASSERT_TRUE(receipt.ok()) << receipt.text;
  const auto stored = log.reader().event_at(*receipt["seq"].as_int());
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->body, R"({"n": 1})");
  EXPECT_EQ(to_hex(sha256({view(*(*stored)->salt), R"({"n": 1})"})), receipt["body_hash"].as_string());
  const auto before = log.reader().event_of_run((*stored)->run_no, 0);
  ASSERT_TRUE(before && *before);
  const Uuid log_id = log.services().appender.status().log_id;
  const auto hashes = events::hash_entry(log_id, **stored, (*before)->run_hash);
  EXPECT_EQ(to_hex(hashes.run_hash), receipt["run_hash"].as_string());
  EXPECT_EQ(to_hex(hashes.leaf_hash), receipt["leaf_hash"].as_string());
}

TEST_F(EventAppend, TheSameEventTwiceIsAppendedOnceWhateverBecameOfTheRun) {
  const Outcome first = log.call("event.append", append_one(id_1, R"({"n":1})"));
  ASSERT_TRUE(first.ok()) << first.text;
  const auto repeated_is_first = [&] {
    const std::string again_later = append_one(id_1, R"({"n":1})", R"(,"occurred_at":"2026-11-21T14:02:11Z")");
    const Outcome again = log.call("event.append", again_later);
    ASSERT_TRUE(again.ok()) << again.text;
    EXPECT_EQ(again["duplicate"].as_bool(), true);
    for (const char* member :
         {"seq", "run_seq", "recorded_at", "body_hash", "salt", "run_hash", "leaf_hash", "event_id"}) {
      EXPECT_EQ(again[member].source(), first[member].source()) << member;
    }
  };
  repeated_is_first();
  log.restart();
  repeated_is_first();
  ASSERT_TRUE(log.call("run.end", R"({"run_id":"r1","outcome":"success"})").ok());
  repeated_is_first();
  EXPECT_EQ(log.reader().log_size().value(), 3);
}

TEST_F(EventAppend, TheSameIdWithAnotherContentIsAConflict) {
  ASSERT_TRUE(log.call("event.append", append_one(id_1, R"({"n":1})")).ok());
  const Outcome body = log.call("event.append", append_one(id_1, R"({"n":2})"));
  EXPECT_EQ(body.code, "conflict");
  EXPECT_NE(body.text.find("its body is different"), std::string::npos) << body.text;
  const Outcome step = log.call("event.append", append_one(id_1, R"({"n":1})", R"(,"step_id":"s1")"));
  EXPECT_NE(step.text.find("it has no step"), std::string::npos) << step.text;
  std::string other_type = append_one(id_1, R"({"n":1})");
  other_type.replace(other_type.find("x.acme.note"), 11, "x.acme.memo");
  const Outcome type = log.call("event.append", other_type);
  EXPECT_NE(type.text.find("its type is x.acme.note"), std::string::npos) << type.text;
}

TEST_F(EventAppend, ARedactedEventCannotBeCompared) {
  ASSERT_TRUE(log.call("event.append", append_one(id_1, R"({"n":1})")).ok());
  test::run_sql(log.uri(),
                "SET session_replication_role = replica; UPDATE event SET body = NULL, salt = NULL WHERE seq = 1");
  const Outcome again = log.call("event.append", append_one(id_1, R"({"n":1})"));
  EXPECT_EQ(again.code, "conflict");
  EXPECT_NE(again.text.find("redacted"), std::string::npos) << again.text;
}

TEST_F(EventAppend, SeveralAreRepeatedWholeOrNotAtAll) {
  const std::string both =
      R"({"run_id":"r1","events":[)" + event(id_1, R"({"n":1})") + "," + event(id_2, R"({"n":2})") + "]}";
  const Outcome first = log.call("event.append", both);
  ASSERT_TRUE(first.ok()) << first.text;
  const Outcome again = log.call("event.append", both);
  ASSERT_TRUE(again.ok()) << again.text;
  std::string expected = first.text;
  constexpr std::string_view fresh = "\"duplicate\":false";
  for (auto at = expected.find(fresh); at != std::string::npos; at = expected.find(fresh)) {
    expected.replace(at, fresh.size(), "\"duplicate\":true");
  }
  EXPECT_EQ(again.text, expected);
  const Outcome mixed = log.call("event.append", R"({"run_id":"r1","events":[)" + event(id_1, R"({"n":1})") +
                                                     R"(,{"type":"x.acme.note","body":{}}]})");
  EXPECT_EQ(mixed.code, "conflict");
  EXPECT_NE(mixed.text.find("events[1] is not"), std::string::npos) << mixed.text;
  EXPECT_EQ(log.reader().log_size().value(), 3);
}

TEST_F(EventAppend, AnIdempotencyKeyAppendsOnce) {
  const std::string two = R"({"run_id":"r1","events":[{"type":"x.a.b","body":{}},{"type":"x.a.b","body":{}}]})";
  ASSERT_TRUE(log.call("event.append", two, "k").ok());
  ASSERT_TRUE(log.call("event.append", two, "k").ok());
  EXPECT_EQ(log.reader().log_size().value(), 3);
  ASSERT_TRUE(log.call("event.append", two, "other").ok());
  EXPECT_EQ(log.reader().log_size().value(), 5);
}

TEST_F(EventAppend, TheExpectedPositionMustBeTheNext) {
  const std::string at_2 = R"({"run_id":"r1","type":"x.a.b","body":{},"expected_run_seq":2})";
  EXPECT_EQ(log.call("event.append", at_2).text,
            "the next run_seq of r1 is 1, you expected 2. Read from 1, or drop expected_run_seq.");
  ASSERT_TRUE(log.call("event.append", R"({"run_id":"r1","type":"x.a.b","body":{},"expected_run_seq":1})").ok());
  EXPECT_TRUE(log.call("event.append", at_2).ok());
}

TEST_F(EventAppend, APatchOfAStateThatMovedOnIsRefusedWhileNumbering) {
  const Outcome state = log.call("run.rehydrate", R"({"run_id":"r1"})");
  ASSERT_TRUE(state.ok()) << state.text;
  const std::string patch = R"({"run_id":"r1","type":"state.patched","body":{"format":"merge","patch":{"a":1},)"
                            R"("expected_state_hash":)" +
                            std::string(state["state_hash"].source()) + "}}";
  auto admitted = log.ask("event.append", patch);
  ASSERT_TRUE(admitted.ok()) << admitted.error().message;
  ASSERT_TRUE(log.call("event.append", R"({"run_id":"r1","type":"x.a.b","body":{}})").ok());
  const auto late = log.append(std::get<gateway::PendingAppend>(*std::move(admitted)));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().message,
            "the state of r1 changed while the patch was admitted. "
            "Read it again, or drop expected_state_hash.");
  EXPECT_EQ(log.call("event.append", patch).code, "conflict");
}

TEST_F(EventAppend, TheDaemonsOwnRunIsItsOwn) {
  log.caller = {0, "uid:0", true, 1};
  EXPECT_EQ(log.call("event.append", R"({"run_id":"_log","type":"x.a.b","body":{}})").code, "denied");
}

class EventList : public EventAppend {
 protected:
  EventList() {
    for (int i = 0; i < 10; ++i) {
      const std::string type = i % 2 ? "odd" : "even";
      EXPECT_TRUE(log.call("event.append",
                           R"({"run_id":"r1","type":"x.acme.)" + type + R"(","body":{"n":)" + std::to_string(i) + "}}")
                      .ok());
    }
  }

  // Returns the run_seqs of all pages of a list, in order of arrival.
  std::vector<std::int64_t> all_pages(const std::string& params, int* pages = nullptr) {
    std::vector<std::int64_t> seen;
    std::string cursor;
    for (int i = 0; i < 50; ++i) {
      std::string with_cursor = params;
      if (!cursor.empty()) with_cursor.insert(1, R"("cursor":")" + cursor + "\",");
      const Outcome page = log.call("event.list", with_cursor);
      EXPECT_TRUE(page.ok()) << page.text;
      for (json::Value item : page["events"]) seen.push_back(item["run_seq"].as_int().value_or(-1));
      if (pages) ++*pages;
      if (!page["cursor"]) return seen;
      cursor = page["cursor"].string_or("");
    }
    ADD_FAILURE() << "the pages do not end";
    return seen;
  }

  const std::vector<std::int64_t> forwards{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
};

TEST_F(EventList, PagesFollowEachOtherWithoutGapOrRepetition) {
  const std::vector<std::int64_t> backwards(forwards.rbegin(), forwards.rend());
  for (int limit : {1, 3, 11, 100}) {
    const std::string params = R"({"run_id":"r1","limit":)" + std::to_string(limit);
    int pages = 0;
    EXPECT_EQ(all_pages(params + "}", &pages), forwards);
    EXPECT_EQ(pages, (11 + limit - 1) / limit);
    EXPECT_EQ(all_pages(params + R"(,"order":"desc"})"), backwards);
  }
}

TEST_F(EventList, APageEndsAtItsBytesButHoldsOneEventAtLeast) {
  for (int bytes : {1, 700, 3'000, 524'288}) {
    EXPECT_EQ(all_pages(R"({"run_id":"r1","max_bytes":)" + std::to_string(bytes) + "}"), forwards);
  }
  const Outcome page = log.call("event.list", R"({"run_id":"r1","max_bytes":3000})");
  EXPECT_LE(page.text.size(), 3'100u);
  EXPECT_GE(page["events"].size(), 3u);
}

TEST_F(EventList, FiltersAreAllKept) {
  using RunSeqs = std::vector<std::int64_t>;
  EXPECT_EQ(all_pages(R"({"run_id":"r1","types":["x.acme.odd"],"limit":2})"), (RunSeqs{2, 4, 6, 8, 10}));
  EXPECT_EQ(all_pages(R"({"run_id":"r1","types":["x.*"],"from_run_seq":9})"), (RunSeqs{9, 10}));
  EXPECT_EQ(all_pages(R"({"run_id":"r1","from_run_seq":2,"to_run_seq":3,"order":"desc"})"), (RunSeqs{3, 2}));
  EXPECT_EQ(all_pages(R"({"run_id":"r1","actor":"uid:7"})"), RunSeqs{});
  EXPECT_EQ(all_pages(R"({"run_id":"r1","since":"2100-01-01T00:00:00Z"})"), RunSeqs{});
  EXPECT_EQ(all_pages(R"({"run_id":"r1","until":"2100-01-01T00:00:00Z"})"), forwards);
}

TEST_F(EventList, ACursorOfAnotherListIsRefused) {
  const Outcome page = log.call("event.list", R"({"run_id":"r1","limit":2})");
  const std::string cursor = page["cursor"].string_or("");
  EXPECT_TRUE(log.call("event.list", R"({"run_id":"r1","limit":9,"cursor":")" + cursor + "\"}").ok());
  const Outcome other = log.call("event.list", R"({"run_id":"r1","types":["x.*"],"cursor":")" + cursor + "\"}");
  EXPECT_EQ(other.code, "invalid_argument");
}

TEST_F(EventList, OneEventIsFoundByEitherPosition) {
  const Outcome by_seq = log.call("event.get", R"({"seq":4})");
  const Outcome by_run = log.call("event.get", R"({"run_id":"r1","run_seq":4})");
  ASSERT_TRUE(by_seq.ok() && by_run.ok()) << by_seq.text << by_run.text;
  EXPECT_EQ(by_seq.text, by_run.text);
  EXPECT_EQ(by_seq["event"]["body"].source(), R"({"n":3})");
  EXPECT_EQ(log.call("event.get", R"({"seq":4,"fields":["type"]})").text, R"({"event":{"type":"x.acme.odd"}})");
  EXPECT_EQ(log.call("event.get", R"({"seq":99})").code, "not_found");
  EXPECT_EQ(log.call("event.get", R"({"run_seq":4})").code, "invalid_argument");
}

}  // namespace
}  // namespace muniment
