#include "store/tables/run_row.hpp"

#include <gtest/gtest.h>

namespace muniment::store {
namespace {

events::Event event_of(std::string_view type, std::string_view body, std::int64_t seq = 5) {
  events::Event event;
  event.seq = seq;
  event.run_no = 2;
  event.run_id = "r1";
  event.type = type;
  event.actor = "uid:1000";
  event.body = body;
  event.recorded_at = Time{seq * 1'000'000};
  return event;
}

RunRow started() {
  RunRow row;
  apply_to_row(row,
               event_of("run.started", R"({"run_id":"r1","agent":{"name":"coder"},"goal":"fix it",)"
                                       R"("labels":{"team":"a","tries":1},"parent":{"run_id":"r0","run_seq":3}})"));
  return row;
}

TEST(RunRow, AStartFillsIt) {
  const RunRow row = started();
  EXPECT_EQ(row.run_no, 2);
  EXPECT_EQ(row.run_id, "r1");
  EXPECT_EQ(row.first_seq, 5);
  EXPECT_EQ(row.status, "open");
  EXPECT_EQ(row.owner, "uid:1000");
  EXPECT_EQ(row.agent, "coder");
  EXPECT_EQ(row.goal, "fix it");
  EXPECT_EQ(row.parent, "r0");
  EXPECT_EQ(row.external_id, std::nullopt);
  EXPECT_EQ(row.labels, R"({"team":"a","tries":1})");
  EXPECT_EQ(row.started_at, Time{5'000'000});
}

TEST(RunRow, AnEndAndAHaltAreTakenBackByAResumption) {
  RunRow row = started();
  apply_to_row(row, event_of("run.halted", R"({"code":"SYSTEM_ERROR","reason":"gone"})", 6));
  EXPECT_EQ(row.status, "halted");
  EXPECT_EQ(
      row.halt,
      R"({"code":"SYSTEM_ERROR","reason":"gone","pointer":null,"expected":null,"actual":null,"attempts":0,"seq":6,"recorded_at":"1970-01-01T00:00:06.000000Z"})");
  apply_to_row(row, event_of("run.ended", R"({"outcome":"failure"})", 7));
  EXPECT_EQ(row.status, "ended");
  EXPECT_EQ(row.outcome, "failure");
  EXPECT_EQ(row.ended_at, Time{7'000'000});
  apply_to_row(row, event_of("run.resumed", R"({"kind":"reopened","why":"again"})", 8));
  EXPECT_EQ(row.status, "open");
  EXPECT_FALSE(row.halt || row.outcome || row.ended_at);
}

TEST(RunRow, LabelsAreMerged) {
  RunRow row = started();
  apply_to_row(row, event_of("run.annotated", R"({"labels":{"tries":2,"team":null,"new":"x"}})"));
  EXPECT_EQ(row.labels, R"({"tries":2,"new":"x"})");
  apply_to_row(row, event_of("run.annotated", R"({"note":"only a note"})"));
  EXPECT_EQ(row.labels, R"({"tries":2,"new":"x"})");
}

TEST(RunRow, OtherEventsLeaveItAsItIs) {
  RunRow row = started();
  apply_to_row(row, event_of("message.added", R"({"outcome":"success","labels":{}})"));
  EXPECT_EQ(row.status, "open");
  EXPECT_EQ(row.labels, started().labels);
  EXPECT_FALSE(changes_run_row("message.added"));
}

TEST(RunRow, ARedactedStartStillHasItsPlace) {
  events::Event event = event_of("run.started", "");
  event.body.reset();
  RunRow row;
  apply_to_row(row, event);
  EXPECT_EQ(row.run_id, "r1");
  EXPECT_EQ(row.status, "open");
  EXPECT_EQ(row.agent, "");
  EXPECT_EQ(row.labels, "{}");
}

}  // namespace
}  // namespace muniment::store
