// A log with the followers "run" and "report", and helpers that append calls and erase them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "evidence/rebuild.hpp"
#include "store/logs/erasure.hpp"
#include "store/tables/report_follower.hpp"
#include "store/tables/run_follower.hpp"
#include "support/log_fixture.hpp"

namespace muniment::store {

class Report : public test::LogFixture {
 protected:
  void follow() {
    const Follower::Options options{{uri, 1}, std::chrono::milliseconds(1)};
    runs_follower = std::make_unique<RunFollower>(options, *tail);
    follower = std::make_unique<ReportFollower>(options, *tail);
    runs_follower->start();
    follower->start();
  }
  void catch_up() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    ASSERT_TRUE(follower->wait_for(tail->next_seq(), end)) << follower->problem();
    ASSERT_TRUE(runs_follower->wait_for(tail->next_seq(), end)) << runs_follower->problem();
  }
  void stop_all() {
    close_log();
    follower.reset();
    runs_follower.reset();
  }
  void TearDown() override { stop_all(); }

  std::string ask(const std::string& sql) { return test::ask_sql(uri, sql); }
  void call_tool(const std::shared_ptr<store::Run>& run, const std::string& id, const std::string& more = "") {
    append(run, "tool.called", R"({"call_id":")" + id + R"(","name":"grep","kind":"function")" + more + "}");
  }
  void return_tool(const std::shared_ptr<store::Run>& run, const std::string& id, const std::string& status = "ok") {
    append(run, "tool.returned",
           R"({"call_id":")" + id + R"(","status":")" + status + R"(","content":[],"duration_us":1500})");
  }
  std::int64_t answer_model(const std::shared_ptr<store::Run>& run, const std::string& id, const std::string& usage) {
    append(run, "model.called",
           R"({"call_id":")" + id + R"(","operation":"chat","provider":"p","model":"m-1","parameters":{}})");
    return append(run, "model.answered",
                  R"({"call_id":")" + id +
                      R"(","status":"ok","model":"m-1-0613","finish_reasons":["stop"],"content":[],"usage":)" + usage +
                      "}")
        .seq;
  }
  // Appends a claim, evidence and a task.
  void append_ledger(const std::shared_ptr<store::Run>& run, const std::string& id) {
    ClaimRow claim;
    claim.claim_id = make_uuid_v7(clock.now());
    claim.run_id = id;
    claim.text = "t";
    claim.pointers = "[]";
    append(run, "claim.recorded", R"({"claim_id":")" + claim.claim_id.text() + R"(","text":"t","pointers":[]})",
           {claim});
    EvidenceRow evidence;
    evidence.evidence_id = make_uuid_v7(clock.now());
    evidence.run_id = id;
    evidence.type = "review";
    evidence.content = "{}";
    append(run, "evidence.recorded",
           R"({"evidence_id":")" + evidence.evidence_id.text() + R"(","type":"review","content":{}})", {evidence});
    append(run, "task.opened", R"({"task_id":"t","content":"t"})", {TaskChangeRow{id, "t", "opened"}});
  }
  // Appends a context pack of one passage with its manifest.
  void recall(const std::shared_ptr<store::Run>& run, const std::string& id) {
    ManifestRow row;
    row.manifest_id = *parse_uuid(id);
    row.run_id = run->run_id;
    row.salt = Salt{};
    row.manifest =
        R"({"queries":[{"query":"where"}],"profile":"p","passages":[{"pointer":"ev://memory/home#p0?v=1"}],"left_out_count":2})";
    row.size_bytes = static_cast<std::int64_t>(row.manifest->size());
    append(run, "manifest.recorded",
           R"({"manifest_id":")" + id + R"(","hash":")" + std::string(64, '0') + R"(","size_bytes":9})", {row});
    append(run, "context.built", R"({"manifest_id":")" + id + R"(","budget":10,"used":9})");
  }
  // Appends events of the types that the views show.
  void append_some_of_each(const std::shared_ptr<store::Run>& run, const std::string& id) {
    call_tool(run, "c1");
    answer_model(run, "m1", R"({"input_tokens":1,"output_tokens":1})");
    append(run, "step.started", R"({"name":"s","kind":"turn"})");
    append(run, "command.started", R"({"call_id":"x1","argv":["false"],"cwd":"/","env":{}})");
    append(run, "command.ended", R"({"call_id":"x1","exit_code":1})");
    append(run, "file.changed", R"({"path":"/a","change":"created"})");
    append(run, "approval.requested", R"({"approval_id":"a1","question":"?","options":["yes"]})");
    append(run, "feedback.recorded", R"({"target":"t","name":"n","value":0.5,"by":"human"})");
    append(run, "retrieval.answered",
           R"({"queries":[{"query":"q"}],"corpora":["c"],"profile":"p","plan_hash":")" + std::string(64, '0') +
               R"(","watermark":1,"cards":[{"id":"x","rank":1,"score":0.5}],"cache":"miss"})");
    append(
        run, "task.validated",
        R"({"task_id":"t","can_complete":false,"completing":true,"codes":["stale"],"verdict":"fail","reason":"old","evidence_ids":[]})");
    recall(run, "0190aaaa-bbbb-7ccc-8ddd-00000000000" + id.substr(1));
    append(run, "pointer.validated",
           R"({"count":2,"bad":{"VERSION_MISMATCH":1},"pointers":[{"pointer":"p"}],"branch":"b"})");
    append(run, "artifact.read", R"({"pointer":"artifact://r1/a","size_bytes":1,"offset":0,"length":1})");
    append(
        run, "cloud.asked",
        R"({"id":"01a22b50-65aa-7dae-8673-dcc69e32e84)" + id.substr(1) +
            R"(","question_id":"01a22b50-65aa-7dae-8673-dcc69e32e84b","provider":"p","by":"daemon","template":"t","prompt_hash":"h","prompt_bytes":3})");
    append(run, "cloud.answered",
           R"({"id":"01a22b50-65aa-7dae-8673-dcc69e32e84)" + id.substr(1) +
               R"(","provider":"p","by":"daemon","response_hash":"r","response_bytes":4})");
    append(
        run, "cloud.refused",
        R"({"id":"01a22b50-65aa-7dae-8673-dcc69e32e84c","question_id":"01a22b50-65aa-7dae-8673-dcc69e32e84b","provider":"p","by":"daemon","reason":"secret","rules":["x"]})");
    append_ledger(run, id);
    put(run, "bytes");
  }
  // Erases as the redactor: announces the erasure in the log, then removes the body from every table.
  void erase(const std::shared_ptr<store::Run>& run, std::int64_t seq) {
    append(run, "event.redacted", R"({"seq":)" + std::to_string(seq) + R"(,"reason":"r","by":"uid:0"})");
    Connection redactor(uri, DatabaseRole::redactor);
    const Status erased = erase_copies(redactor, 1, run->view().run_no, {seq}, {}, std::nullopt);
    ASSERT_TRUE(erased) << erased.error().message;
  }
  std::vector<RebuiltTable> rebuilt() {
    const auto report = evidence::rebuild({uri, 1}, tail->next_seq(), {"report_run", "report_span", "report_place"},
                                          [](const events::Event&) { return std::optional<CorpusChange>(); });
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->tables : std::vector<RebuiltTable>();
  }
  void expect_as_the_log_says() {
    for (const RebuiltTable& table : rebuilt())
      EXPECT_TRUE(table.equal()) << table.name << " missing " << table.missing << " unexpected " << table.unexpected;
  }

  std::unique_ptr<RunFollower> runs_follower;
  std::unique_ptr<ReportFollower> follower;
};

}  // namespace muniment::store
