// Tests of tasks in the database: rows that are stored with their events, races, the reader, erasure, rebuild.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "events/catalogue.hpp"
#include "evidence/rebuild.hpp"
#include "store/logs/erasure.hpp"
#include "support/log_fixture.hpp"

namespace muniment::store {
namespace {

using test::ask_sql;
using test::run_sql;
using Place = std::pair<std::string, std::optional<std::int64_t>>;

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

class TaskTest : public test::LogFixture {
 protected:
  void SetUp() override {
    LogFixture::SetUp();
    run_ = start_run("r1");
  }

  static AppendRequest request_of(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body) {
    AppendRequest request;
    request.actor = "uid:1000";
    events::NewEvent event;
    event.type = type;
    event.body = std::move(body);
    event.event_id = make_uuid_v7(Clock().now());
    event.event_id_is_ours = true;
    events::seal_own(event);
    request.events.push_back({run, std::move(event)});
    return request;
  }
  AppendRequest opening(const std::shared_ptr<store::Run>& run, const std::string& task_id) {
    AppendRequest request =
        request_of(run, "task.opened", R"({"task_id":)" + quoted(task_id) + R"(,"content":"Write the parser"})");
    request.rows.push_back({0, TaskChangeRow{run->run_id, task_id, "opened"}});
    return request;
  }
  AppendRequest completing(const std::shared_ptr<store::Run>& run, const std::string& task_id,
                           const std::vector<EvidenceRow>& evidence) {
    json::Writer body;
    body.begin_object().member("task_id", task_id).member("verdict", "pass").key("evidence_ids").begin_array();
    for (const EvidenceRow& row : evidence) body.string(row.evidence_id.text());
    body.end_array().key("evidence_seqs").begin_array();
    for (const EvidenceRow& row : evidence) body.number(row.seq);
    AppendRequest request = request_of(run, "task.completed", body.end_array().end_object().text());
    request.rows.push_back({0, TaskChangeRow{run->run_id, task_id, "completed"}});
    for (const EvidenceRow& row : evidence)
      request.rows.push_back({0, TaskEvidenceRow{run->run_id, task_id, row.evidence_id, row.seq}});
    return request;
  }
  std::int64_t open(const std::shared_ptr<store::Run>& run, const std::string& task_id) {
    return seq_of(append(opening(run, task_id)));
  }
  std::int64_t complete(const std::shared_ptr<store::Run>& run, const std::string& task_id,
                        const std::vector<EvidenceRow>& evidence) {
    return seq_of(append(completing(run, task_id, evidence)));
  }
  EvidenceRow record(const std::shared_ptr<store::Run>& run, const std::string& text, const std::string& suite = {},
                     const std::string& task_id = {}, const std::string& validator_id = {}) {
    EvidenceRow row;
    row.evidence_id = make_uuid_v7(clock.now());
    row.run_id = run->run_id;
    row.type = suite.empty() ? "review" : "test_output";
    row.content =
        R"({"text":)" + quoted(text) + (suite.empty() ? "" : R"(,"command":{"suite":)" + quoted(suite) + "}") + "}";
    row.hash = sha256(text);
    row.actor = "uid:1000";
    json::Writer body;
    body.begin_object().member("evidence_id", row.evidence_id.text()).member("type", row.type);
    body.raw_member("content", *row.content).member("hash", to_hex(row.hash));
    if (!validator_id.empty()) body.member("validator_id", *(row.validator_id = validator_id));
    if (!task_id.empty()) body.member("task_id", *(row.task_id = task_id));
    if (!suite.empty()) body.member("command_id", (row.command_id = make_uuid_v8(text))->text());
    row.seq = seq_of(append([&] {
      AppendRequest request = request_of(run, "evidence.recorded", body.end_object().text());
      request.rows.push_back({0, row});
      return request;
    }()));
    return row;
  }
  static std::int64_t seq_of(const Result<std::vector<events::Receipt>>& receipts) {
    EXPECT_TRUE(receipts) << receipts.error().message;
    return receipts ? receipts->front().seq : -1;
  }
  using LogFixture::append;

  std::vector<Place> tasks(std::optional<bool> completed = {}, std::int64_t after_seq = -1, std::size_t limit = 10) {
    const auto found = reader->tasks("r1", completed, after_seq, limit);
    EXPECT_TRUE(found) << found.error().message;
    std::vector<Place> places;
    if (found) {
      for (const TaskPlace& place : *found) places.emplace_back(place.task_id, place.completed_seq);
    }
    return places;
  }
  void erase(std::int64_t seq) {
    append(run_, "event.redacted", R"({"seq":)" + std::to_string(seq) + R"(,"reason":"r","by":"uid:0"})");
    Connection redactor(uri, DatabaseRole::redactor);
    const Status erased = erase_copies(redactor, 1, run_->view().run_no, {seq}, {}, std::nullopt);
    ASSERT_TRUE(erased) << erased.error().message;
  }
  evidence::RebuildReport rebuild_tables() {
    auto report = evidence::rebuild({uri, 1}, tail->next_seq(), {"evidence", "task_change", "task_evidence"},
                                    [](const events::Event&) { return std::optional<CorpusChange>(); });
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : evidence::RebuildReport();
  }

  std::shared_ptr<store::Run> run_;
};

TEST_F(TaskTest, ATaskIsFoundWhereItWasOpenedAndCompleted) {
  const std::int64_t opened = open(run_, "t1");
  auto task = reader->task("r1", "t1");
  ASSERT_TRUE(task && *task);
  EXPECT_EQ((*task)->opened_seq, opened);
  EXPECT_FALSE((*task)->completed_seq);
  const std::int64_t completed = complete(run_, "t1", {record(run_, "42 tests passed")});
  task = reader->task("r1", "t1");
  ASSERT_TRUE(task && *task);
  EXPECT_EQ((*task)->completed_seq, completed);
  EXPECT_FALSE(*reader->task("r1", "t2"));
  EXPECT_FALSE(*reader->task("r2", "t1"));
}

TEST_F(TaskTest, TasksAreListedByStatusInTheOrderOfTheLog) {
  const std::int64_t first = open(run_, "b");
  open(run_, "a");
  open(run_, "c");
  open(start_run("r2"), "a");
  const std::int64_t completed = complete(run_, "a", {});
  EXPECT_EQ(tasks(), (std::vector<Place>{{"b", {}}, {"a", completed}, {"c", {}}}));
  EXPECT_EQ(tasks(false), (std::vector<Place>{{"b", {}}, {"c", {}}}));
  EXPECT_EQ(tasks(true), (std::vector<Place>{{"a", completed}}));
  EXPECT_EQ(tasks({}, first, 1), (std::vector<Place>{{"a", completed}}));
}

TEST_F(TaskTest, OfNamedTasksTheOpenOnesAreFound) {
  for (const char* id : {"b", "a", "c", "d"}) open(run_, id);
  open(start_run("r2"), "e");
  complete(run_, "c", {});
  const auto found = reader->open_tasks("r1", {"a", "b", "c", "e", "none", "a"});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->at(0).task_id, "b");
  EXPECT_EQ(found->at(1).task_id, "a");
  EXPECT_TRUE(reader->open_tasks("r1", {})->empty());
}

TEST_F(TaskTest, ATaskIsOpenedAndCompletedOnce) {
  open(run_, "t1");
  const auto again = append(opening(run_, "t1"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().conflict, AppendConflict::maybe_duplicate);
  complete(run_, "t1", {});
  const auto completed = append(completing(run_, "t1", {}));
  ASSERT_FALSE(completed);
  EXPECT_EQ(completed.error().conflict, AppendConflict::maybe_duplicate);
  EXPECT_EQ(ask_sql(uri, "SELECT count(*) FROM event WHERE type LIKE 'task.%'"), "2");
}

TEST_F(TaskTest, APieceOfEvidenceCompletesOneTask) {
  open(run_, "t1");
  open(run_, "t2");
  const EvidenceRow spent = record(run_, "one"), other = record(run_, "two");
  const std::int64_t completed = complete(run_, "t1", {spent});
  const auto again = append(completing(run_, "t2", {other, spent}));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().conflict, AppendConflict::maybe_duplicate);
  EXPECT_EQ(tasks(false), (std::vector<Place>{{"t2", {}}})) << "nothing of the batch is stored";
  const auto found = reader->evidence_spent({other.seq, spent.seq});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().task_id, "t1");
  EXPECT_EQ(found->front().evidence_seq, spent.seq);
  EXPECT_EQ(found->front().evidence_id, spent.evidence_id);
  EXPECT_EQ(found->front().seq, completed);
}

TEST_F(TaskTest, ATaskIdHasAtMost256Bytes) {
  EXPECT_TRUE(append(opening(run_, std::string(256, 'a'))));
  run_sql(uri, "INSERT INTO task_change VALUES (1, 900, 'r1', repeat('a', 256), 'completed')");
  EXPECT_ANY_THROW(run_sql(uri, "INSERT INTO task_change VALUES (1, 901, 'r1', repeat('a', 257), 'opened')"));
  EXPECT_ANY_THROW(run_sql(uri, "INSERT INTO task_change VALUES (1, 901, 'r1', 'a', 'closed')"));
}

TEST_F(TaskTest, UsesOfTheSameContentAreListedInOrder) {
  const auto other_run = start_run("r2");
  const EvidenceRow first = record(run_, "the same"), second = record(other_run, "the same");
  record(run_, "another");
  const EvidenceRow third = record(run_, "the same");
  auto uses = reader->evidence_with_hash(sha256("the same"), third.seq, 10);
  ASSERT_TRUE(uses) << uses.error().message;
  ASSERT_EQ(uses->size(), 2u);
  EXPECT_EQ(uses->front().seq, first.seq);
  EXPECT_EQ(uses->front().evidence_id, first.evidence_id);
  EXPECT_EQ(uses->back().run_id, "r2");
  EXPECT_EQ(uses->back().actor, "uid:1000");
  EXPECT_EQ(reader->evidence_with_hash(sha256("the same"), INT64_MAX, 1)->size(), 1u);
  EXPECT_FALSE(*reader->spent_on_another(third, true, "r1", "t9"));
  open(other_run, "t1");
  complete(other_run, "t1", {second});
  const auto spent = reader->spent_on_another(third, true, "r1", "t9");
  ASSERT_TRUE(spent && *spent);
  EXPECT_EQ((*spent)->run_id, "r2");
  EXPECT_EQ((*spent)->evidence_seq, second.seq);
  EXPECT_FALSE(*reader->spent_on_another(third, false, "r1", "t9"));  // different evidence; its content is not compared
  EXPECT_TRUE(*reader->spent_on_another(second, false, "r1", "t9"));
  EXPECT_FALSE(*reader->spent_on_another(second, true, "r2", "t1"));  // the task itself
  EvidenceRow stranger = third;
  stranger.actor = "uid:2000";
  EXPECT_FALSE(*reader->spent_on_another(stranger, true, "r1", "t9"));
}

TEST_F(TaskTest, EvidenceIsListedByTaskAndByValidator) {
  const EvidenceRow mine = record(run_, "one", {}, "t1"), other = record(run_, "two", {}, "t2", "reviewer");
  EvidenceFilter filter;
  filter.task_id = "t1";
  auto found = reader->evidence(filter, 10);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().evidence_id, mine.evidence_id);
  EXPECT_EQ(found->front().task_id, "t1");
  filter = {};
  filter.validator = "reviewer";
  found = reader->evidence(filter, 10);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().evidence_id, other.evidence_id);
  filter.validator = "uid:1000";
  EXPECT_EQ(reader->evidence(filter, 10)->size(), 2u);
  filter.validator = "uid:1001";
  EXPECT_TRUE(reader->evidence(filter, 10)->empty());
}

TEST_F(TaskTest, TheNewestAcceptedRunOfASuiteIsTheOneOfARecordedCommand) {
  const std::string suite(60'000, 's');  // longer than an index entry can be
  const auto latest = [&] {
    const auto found = reader->accepted_of_suite(suite, std::nullopt);
    EXPECT_TRUE(found) << found.error().message;
    return found && *found ? (*found)->seq : -1;
  };
  open(run_, "t1");
  open(run_, "t2");
  const EvidenceRow first = record(run_, "first", suite);
  EXPECT_EQ(latest(), -1) << "it completed nothing";
  complete(run_, "t1", {first});
  EXPECT_EQ(latest(), first.seq);
  const EvidenceRow second = record(run_, "second", suite);
  EXPECT_EQ(latest(), first.seq);
  // The event's content is the client's and is not trusted.
  run_sql(uri, "UPDATE evidence SET command_id = NULL WHERE seq = " + std::to_string(first.seq));
  EXPECT_EQ(latest(), -1);
  complete(run_, "t2", {second});
  EXPECT_EQ(latest(), second.seq);
  EXPECT_FALSE(*reader->accepted_of_suite("another", std::nullopt));
  run_sql(
      uri,
      "INSERT INTO run SELECT 1, 1, 'r1', 1, 'open', NULL, 2, 'uid:7', 'b', 'g', '{}', NULL, NULL, now(), NULL, NULL");
  EXPECT_FALSE(*reader->accepted_of_suite(suite, "uid:8")) << "the run is another owner's";
  EXPECT_TRUE(*reader->accepted_of_suite(suite, "uid:7"));
}

TEST_F(TaskTest, AnErasedCompletionLeavesNoRow) {
  open(run_, "t1");
  const EvidenceRow piece = record(run_, "one", "suite", "t1");
  const std::int64_t completed = complete(run_, "t1", {piece});
  erase(completed);
  EXPECT_EQ(tasks(), (std::vector<Place>{{"t1", {}}}));
  EXPECT_TRUE(reader->evidence_spent({piece.seq})->empty());
  erase(piece.seq);
  EXPECT_EQ(
      ask_sql(uri, "SELECT num_nulls(task_id, command_id) FROM evidence WHERE seq = " + std::to_string(piece.seq)),
      "2");
  EXPECT_TRUE(rebuild_tables().equal());
}

TEST_F(TaskTest, AnErasedOpeningLeavesWhatItsCompletionSays) {
  const std::int64_t opened = open(run_, "t1");
  complete(run_, "t1", {});
  erase(opened);
  const auto task = reader->task("r1", "t1");
  ASSERT_TRUE(task && *task);
  EXPECT_EQ((*task)->opened_seq, -1);
  EXPECT_TRUE((*task)->completed_seq);
  EXPECT_TRUE(tasks().empty());
}

TEST_F(TaskTest, ChangedRowsAreFoundAndPutRight) {
  open(run_, "t1");
  open(run_, "t2");
  const EvidenceRow piece = record(run_, "one", "suite", "t1"), erased = record(run_, "two");
  complete(run_, "t1", {piece, erased});
  erase(erased.seq);
  auto report = rebuild_tables();
  ASSERT_EQ(report.tables.size(), 3u);
  EXPECT_TRUE(report.equal());
  EXPECT_EQ(report.tables[1].rows, 3);
  EXPECT_EQ(report.tables[2].rows, 2);
  for (const std::string change :
       {"UPDATE task_change SET task_id = 't3' WHERE task_id = 't2'", "DELETE FROM task_change",
        "UPDATE task_change SET change = 'opened', task_id = 't4' WHERE change = 'completed'",
        "UPDATE task_evidence SET evidence_seq = evidence_seq + 100", "DELETE FROM task_evidence",
        "UPDATE task_evidence SET evidence_id = gen_random_uuid()",
        "UPDATE evidence SET task_id = 't2' WHERE task_id = 't1'", "UPDATE evidence SET command_id = gen_random_uuid()",
        "INSERT INTO task_evidence SELECT log_no, seq, run_id, task_id, evidence_id, 1 FROM task_evidence LIMIT 1"}) {
    run_sql(uri, change);
    report = rebuild_tables();
    EXPECT_FALSE(report.equal()) << change;
    EXPECT_TRUE(rebuild_tables().equal()) << change;
  }
  EXPECT_EQ(tasks(true).size(), 1u);
}

TEST_F(TaskTest, RowsThatCameBackAfterAnErasureAreRemoved) {
  open(run_, "t1");
  const std::int64_t completed = complete(run_, "t1", {record(run_, "one")});
  run_sql(uri,
          "CREATE TABLE kept AS SELECT * FROM task_evidence; CREATE TABLE kept_change AS SELECT * FROM task_change");
  erase(completed);
  run_sql(uri,
          "INSERT INTO task_evidence SELECT * FROM kept;"
          "INSERT INTO task_change SELECT * FROM kept_change WHERE change = 'completed'");
  const auto report = rebuild_tables();
  EXPECT_EQ(report.tables[1].unexpected, 1);
  EXPECT_EQ(report.tables[2].unexpected, 1);
  EXPECT_TRUE(rebuild_tables().equal());
}

}  // namespace
}  // namespace muniment::store
