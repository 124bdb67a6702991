// Tests of the rows of the corpus run: which events have one, how they are divided into passages, and that a follower
// with a large backlog processes it in parts.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "retrieval/service.hpp"
#include "store/read/event_text.hpp"
#include "support/method_caller.hpp"

namespace muniment {
namespace {

using test::MethodCaller;
using test::Outcome;

class RunsCorpus : public testing::Test {
 protected:
  Outcome call(std::string_view method, const std::string& params) {
    Outcome outcome = log.call(method, params);
    EXPECT_TRUE(outcome.ok()) << outcome.text;
    return outcome;
  }
  void start(std::string_view run_id, std::string_view more) {
    call("run.start", fmt::format(R"({{"run_id":"{}","agent":{{"name":"a"}}{}}})", run_id, more));
  }
  std::int64_t add(std::string_view run_id, std::string_view type, std::string_view body) {
    return *call("event.append", fmt::format(R"({{"run_id":"{}","type":"{}","body":{}}})", run_id, type, body))["seq"]
                .as_int();
  }
  // Adds an output that is stored in an artifact.
  std::int64_t add_output(std::string_view run_id, const std::string& text) {
    json::Writer put;
    put.begin_object().member("run_id", run_id).member("mime_type", "text/plain").member("text", text).end_object();
    const Outcome stored = call("artifact.put", put.text());
    return add(
        run_id, "tool.returned",
        fmt::format(
            R"({{"call_id":"c","status":"ok","content":[{{"artifact_id":{},"hash":{},"size_bytes":{},"mime_type":"text/plain","preview":"a"}}]}})",
            stored["artifact_id"].source(), stored["hash"].source(), stored["size_bytes"].source()));
  }
  void follow() {
    const std::int64_t size = log.services().tail.next_seq();
    ASSERT_TRUE(log.services().retrieval.documents().wait_for(
        size, std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  }
  std::vector<store::DocumentRow> rows() {
    follow();
    auto found = log.reader().documents_added({0, INT64_MAX}, 1'000);
    EXPECT_TRUE(found);
    return found ? *found : std::vector<store::DocumentRow>();
  }
  void expect_rebuild_equal() {
    log.caller.admin = true;
    const Outcome report = call("server.rebuild", R"({"tables":["corpus","document","chunk","feedback"]})");
    EXPECT_EQ(report["equal"].as_bool(), true) << report.text;
    log.caller.admin = false;
  }

  MethodCaller log;
};

TEST_F(RunsCorpus, AnEventThatSaysSomethingIsARowOfItsOwner) {
  start("r1", R"(,"indexed":true)");
  const std::int64_t said =
      add("r1", "message.added",
          R"({"message_id":"m","role":"user","content":[{"type":"text","content":"Hello there."}]})");
  add("r1", "message.added", R"({"message_id":"n","role":"user","content":[]})");
  add("r1", "step.started", R"({"name":"s","kind":"turn"})");
  add("r1", "x.acme.note", R"({"content":[{"type":"text","content":"no"}]})");
  const auto found = rows();
  ASSERT_EQ(found.size(), 1U);
  const store::DocumentRow& row = found.front();
  EXPECT_EQ(row.seq, said);
  EXPECT_EQ(row.document, "r1#e1");
  EXPECT_EQ(row.run_id(), "r1");
  EXPECT_EQ(row.format, "message.added");
  EXPECT_EQ(row.owner, log.caller.actor);
  EXPECT_EQ(row.origin, events::Origin::reported);
  EXPECT_EQ(row.source, "run://r1");
  const auto event = log.reader().event_at(said);
  ASSERT_TRUE(event && *event);
  EXPECT_EQ(row.hash, (*event)->body_hash);
  const auto chunks = log.reader().chunks_of(row);
  ASSERT_TRUE(chunks && chunks->size() == 1);
  EXPECT_EQ(chunks->front().hash, sha256("Hello there."));
  expect_rebuild_equal();
}

TEST_F(RunsCorpus, ARunThatIsNotIndexedHasNoRows) {
  start("r1", "");
  start("r2", R"(,"indexed":false)");
  for (const char* run_id : {"r1", "r2"}) add(run_id, "error.raised", R"({"error_type":"E","message":"boom"})");
  EXPECT_TRUE(rows().empty());
  log.services().index_runs = true;
  start("r3", "");
  start("r4", R"(,"indexed":false)");
  for (const char* run_id : {"r1", "r3", "r4"}) add(run_id, "error.raised", R"({"error_type":"E","message":"boom"})");
  ASSERT_EQ(rows().size(), 1U);
  EXPECT_EQ(rows().front().document, "r3#e1");
  expect_rebuild_equal();
}

TEST_F(RunsCorpus, AFollowerThatBeginsAnewKnowsWhichRunsAreIndexed) {
  start("r1", R"(,"indexed":true)");
  start("r2", "");
  follow();
  log.restart();
  for (const char* run_id : {"r1", "r2"}) add(run_id, "error.raised", R"({"error_type":"E","message":"boom"})");
  ASSERT_EQ(rows().size(), 1U);
  EXPECT_EQ(rows().front().document, "r1#e1");
}

TEST_F(RunsCorpus, OfAVeryLongOutputTheBeginningIsIndexedInWholeCharacters) {
  start("r1", R"(,"indexed":true)");
  std::string text;
  while (text.size() < std::size_t{store::event_text_bytes_max} + 1'000)
    text += "\u00e9\u00e8 dix mots de plus, et encore quelques-uns. \u20ac\n";
  add_output("r1", text);
  const auto found = rows();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_LE(found.front().size_bytes, store::event_text_bytes_max);
  EXPECT_GT(found.front().size_bytes, store::event_text_bytes_max - 4);
  const auto chunks = log.reader().chunks_of(found.front());
  ASSERT_TRUE(chunks && !chunks->empty());
  const store::ChunkRow& last = chunks->back();
  EXPECT_EQ(last.hash,
            sha256(std::string_view(text).substr(static_cast<std::size_t>(last.start_byte),
                                                 static_cast<std::size_t>(last.end_byte - last.start_byte))));
  expect_rebuild_equal();
}

// The passages exceed one transaction.
TEST_F(RunsCorpus, MuchAtOnceIsTakenInParts) {
  start("r1", R"(,"indexed":true)");
  constexpr int outputs = 14;
  std::int64_t written = 0;
  {
    const store::Follower::Pause pause(log.services().retrieval.documents());
    for (int i = 0; i < outputs; ++i) add_output("r1", std::string(2'000'000, static_cast<char>('a' + i)) + "\n");
  }
  for (const store::DocumentRow& row : rows()) {
    written += row.chunks;
    EXPECT_EQ(row.first_chunk, written - row.chunks + 1);
  }
  EXPECT_EQ(rows().size(), std::size_t{outputs});
  EXPECT_GT(written, 16'384);
  expect_rebuild_equal();
}

}  // namespace
}  // namespace muniment
