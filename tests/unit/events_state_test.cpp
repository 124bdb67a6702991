// Tests of the fold, rule by rule (docs/format.md, State). The effect of a rule is looked up in the document, as in
// snapshots and verifiers.
#include "events/state.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/json/json.hpp"
#include "base/json/json_tree.hpp"
#include "base/limits.hpp"

namespace muniment::events {
namespace {

constexpr std::int64_t base_micros = 1'760'000'000'000'000;

// A run that is built event by event.
class Story {
 public:
  Story& add(std::string_view type, std::optional<std::string> body, std::string_view step_id = {},
             std::string_view spilled = {}) {
    Event event;
    event.seq = 10 * (next_ + 1);
    event.run_no = 1;
    event.run_id = "r1";
    event.run_seq = next_++;
    event.recorded_at = Time{base_micros + event.run_seq};
    event.origin = Origin::reported;
    event.type = type;
    if (!step_id.empty()) event.step_id = std::string(step_id);
    event.actor = "uid:1000";
    event.run_hash = sha256("hash of " + std::to_string(event.run_seq));
    event.body = std::move(body);
    if (event.body) event.salt = Salt{};
    state.apply(event, spilled);
    return *this;
  }
  // Returns the canonical text at a JSON pointer of the document.
  std::string at(std::string_view pointer) const {
    const std::string text = state.document();
    const auto document = json::parse(text);
    const json::Tree tree(document->root());
    const json::Tree* found = json::find(tree, pointer);
    return found ? found->canonical() : "(absent)";
  }
  State state;

 private:
  std::int64_t next_ = 0;
};

std::string numbered(std::string_view format_before, int number, std::string_view after) {
  return std::string(format_before) + std::to_string(number) + std::string(after);
}

TEST(State, BeforeTheFirstEventHasEveryMember) {
  EXPECT_EQ(
      State().document(),
      R"({"artifacts":{"bytes":0,"count":0},"at":{"run_hash":"0000000000000000000000000000000000000000000000000000000000000000","run_seq":-1,"seq":-1},)"
      R"("budgets":{"exceeded":0,"last":null},"claims":{"count":0,"dropped":0,"open":[]},)"
      R"("context":{"compacted_at":null,"manifest_id":null,"messages":{"count":0,"first_run_seq":null,"last_run_seq":null}},)"
      R"("counts":{},"halt":null,"pending":{"approvals":[],"calls":[],"children":[],"dropped":0},"plan":[],)"
      R"("refused":{"labels":0,"working":0},)"
      R"("run":{"agent":null,"goal":null,"labels":{},"last_event_at":null,"origin":null,"outcome":null,"parent":null,"run_id":null,"started_at":null,"status":null},)"
      R"("schema":1,"steps":{"done":0,"dropped":0,"open":[]},"tasks":{"completed":0,"dropped":0,"open":[],"opened":0},)"
      R"("usage":{"cost":{},"input_tokens":0,"output_tokens":0,"uncounted":0},"working":{}})");
}

TEST(State, TellsWhoRunsAndWhereItStands) {
  Story story;
  story.add(
      "run.started",
      R"({"run_id":"r1","agent":{"name":"a\u0062c","id":7,"version":"1"},"goal":"win","labels":{"b":1.50,"a":"x","c":true,"d":null,"e":[1]},"parent":{"run_id":"r0","run_seq":4}})");
  EXPECT_EQ(
      story.at("/run"),
      R"({"agent":{"id":null,"name":"abc","version":"1"},"goal":"win","labels":{"a":"x","b":1.50,"c":true},"last_event_at":"2025-10-09T08:53:20.000000Z",)"
      R"("origin":"reported","outcome":null,"parent":{"run_id":"r0","run_seq":4},"run_id":"r1","started_at":"2025-10-09T08:53:20.000000Z","status":"open"})");
  EXPECT_EQ(story.at("/at"), R"({"run_hash":")" + to_hex(sha256("hash of 0")) + R"(","run_seq":0,"seq":10})");
  EXPECT_EQ(story.at("/counts"), R"({"run.started":1})");
}

TEST(State, AnEventIsNotAppliedTwice) {
  Event event;
  event.seq = 5;
  event.run_id = "r1";
  event.type = "x.a.b";
  event.body = "{}";
  State state;
  state.apply(event);
  const std::string once = state.document();
  state.apply(event);
  event.seq = 4;
  state.apply(event);
  EXPECT_EQ(state.document(), once);
  EXPECT_EQ(state.seq(), 5);
}

TEST(State, ASnapshotDoesNotChangeIt) {
  Story story;
  story.add("run.started", R"({"run_id":"r1","agent":{"name":"a"}})").add("x.a.b", "{}");
  const std::string before = story.state.document();
  story.add("artifact.stored", R"({"mime_type":"application/vnd.muniment.state+json","size_bytes":70000})");
  story.add("snapshot.taken", R"({"seq":20})");
  EXPECT_EQ(story.state.document(), before);
  story.add("artifact.stored", R"({"mime_type":"text/plain","size_bytes":70})");
  EXPECT_EQ(story.at("/artifacts"), R"({"bytes":70,"count":1})");
}

TEST(State, OwnTypesAreCountedTogether) {
  Story story;
  story.add("x.a.b", "{}").add("x.c.d", "{}").add("made.up", "{}");
  EXPECT_EQ(story.at("/counts"), R"({"made.up":1,"x":2})");
}

TEST(State, EndsAndIsReopened) {
  Story story;
  story.add("run.started", R"({"run_id":"r1","agent":{"name":"a"}})").add("run.ended", R"({"outcome":"failure"})");
  EXPECT_EQ(story.at("/run/status") + story.at("/run/outcome"), R"("ended""failure")");
  story.add("run.resumed", R"({"kind":"reopened","why":"w"})");
  EXPECT_EQ(story.at("/run/status") + story.at("/run/outcome"), R"("open"null)");
}

TEST(State, TheFirstReasonOfAHaltWins) {
  Story story;
  story.add(
      "run.halted",
      R"({"code":"SYSTEM_ERROR","reason":"gone","pointer":"artifact://r1/a","expected":"e","actual":null,"attempts":2})");
  story.add("run.halted", R"({"code":"OTHER","reason":"late"})");
  EXPECT_EQ(
      story.at("/halt"),
      R"({"actual":null,"attempts":2,"code":"SYSTEM_ERROR","expected":"e","pointer":"artifact://r1/a","reason":"gone","recorded_at":"2025-10-09T08:53:20.000000Z","seq":10})");
  EXPECT_EQ(story.at("/run/status"), R"("halted")");
  story.add("run.resumed", R"({"kind":"recovered","why":"w"})");
  EXPECT_EQ(story.at("/halt"), "null");
}

TEST(State, LabelsAreSetRemovedAndBounded) {
  Story story;
  story.add("run.started", R"({"labels":{"a":1,"b":2}})")
      .add("run.annotated", R"({"labels":{"a":null,"c":"x","d":{"e":1}}})");
  EXPECT_EQ(story.at("/run/labels"), R"({"b":2,"c":"x"})");
  // {"b":2,"c":"x","k":"…"} is 22 bytes and the value.
  story.add("run.annotated", R"({"labels":{"k":")" + std::string(61'441 - 22, 'v') + R"("}})");
  EXPECT_EQ(story.at("/run/labels") + story.at("/refused/labels"), R"({"b":2,"c":"x"}1)");
  story.add("run.annotated", R"({"labels":{"k":")" + std::string(61'440 - 22, 'v') + R"("}})");
  EXPECT_EQ(story.at("/run/labels").size(), 61'440u);
  EXPECT_EQ(story.at("/refused/labels"), "1");
}

TEST(State, PendingCallsAreThoseWithoutAResult) {
  Story story;
  story.add("model.called", R"({"call_id":"c1","model":"m","manifest_id":"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"})");
  story.add("tool.called", R"({"call_id":"c1","name":"grep","kind":"function"})");
  story.add("command.started", R"({"call_id":"c2","argv":["make","all"]})");
  EXPECT_EQ(
      story.at("/pending/calls"),
      R"([{"call_id":"c1","kind":"model","name":"m","run_seq":0},{"call_id":"c1","kind":"tool","name":"grep","run_seq":1},{"call_id":"c2","kind":"command","name":"make","run_seq":2}])");
  EXPECT_EQ(story.at("/context/manifest_id"), R"("0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001")");
  story.add("tool.returned", R"({"call_id":"c1","status":"ok","content":[]})")
      .add("command.ended", R"({"call_id":"c2"})");
  EXPECT_EQ(story.at("/pending/calls"), R"([{"call_id":"c1","kind":"model","name":"m","run_seq":0}])");
  // A second attempt replaces the first.
  story.add("tool.called", R"({"call_id":"t","name":"n"})").add("model.called", R"({"call_id":"c1","attempt":2})");
  EXPECT_EQ(
      story.at("/pending/calls"),
      R"([{"call_id":"t","kind":"tool","name":"n","run_seq":5},{"call_id":"c1","kind":"model","name":null,"run_seq":6}])");
  EXPECT_EQ(story.at("/context/manifest_id"), R"("0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001")");
}

TEST(State, AListKeepsItsNewestHundred) {
  Story story;
  for (int i = 0; i < 103; ++i) story.add("tool.called", numbered(R"({"call_id":"c)", i, R"("})"));
  EXPECT_EQ(
      story.at("/pending/calls/0/call_id") + story.at("/pending/calls/99/call_id") + story.at("/pending/calls/100"),
      R"("c3""c102"(absent))");
  EXPECT_EQ(story.at("/pending/dropped"), "3");
  story.add("tool.returned", R"({"call_id":"c0"})").add("tool.returned", R"({"call_id":"c50"})");
  EXPECT_EQ(story.at("/pending/calls/98/call_id") + story.at("/pending/calls/99"), R"("c102"(absent))");
}

TEST(State, StepsAreNamedByTheEvent) {
  Story story;
  story.add("step.started", R"({"name":"n","kind":"turn","parent_step_id":"p"})", "s1")
      .add("step.started", R"({"name":"m"})");
  EXPECT_EQ(
      story.at("/steps"),
      R"({"done":0,"dropped":0,"open":[{"kind":"turn","name":"n","parent_step_id":"p","run_seq":0,"step_id":"s1"},{"kind":null,"name":"m","parent_step_id":null,"run_seq":1,"step_id":"main"}]})");
  story.add("step.ended", "{}", "s1").add("step.ended", "{}", "unknown").add("step.ended", "{}");
  EXPECT_EQ(story.at("/steps"), R"({"done":3,"dropped":0,"open":[]})");
}

TEST(State, ApprovalsAndChildrenArePendingToo) {
  Story story;
  story.add("approval.requested", R"({"approval_id":"a","call_id":"c","question":"q","options":[]})");
  story.add("approval.requested", R"({"approval_id":"b"})")
      .add("approval.decided", R"({"approval_id":"b","decision":"no"})");
  EXPECT_EQ(story.at("/pending/approvals"), R"([{"approval_id":"a","call_id":"c","run_seq":0}])");
  story.add("child.started", R"({"run_id":"k","kind":"subagent"})")
      .add("child.started", R"({"run_id":"l","kind":"tool"})");
  story.add("child.halted", R"({"run_id":"k","reason":"r"})").add("child.ended", R"({"run_id":"l"})");
  EXPECT_EQ(story.at("/pending/children"), R"([{"halted":true,"kind":"subagent","run_id":"k","run_seq":3}])");
}

TEST(State, TheTranscriptIsWhatCameSinceTheLastCompaction) {
  Story story;
  story.add("x.a.b", "{}")
      .add("message.added", "{}")
      .add("thought.recorded", "{}")
      .add("tool.called", "{}")
      .add("model.answered", "{}");
  story.add("tool.returned", "{}").add("file.read", "{}");
  EXPECT_EQ(story.at("/context/messages"), R"({"count":5,"first_run_seq":1,"last_run_seq":5})");
  story.add("context.compacted", R"({"manifest_id":"m1"})");
  EXPECT_EQ(story.at("/context"),
            R"({"compacted_at":7,"manifest_id":"m1","messages":{"count":0,"first_run_seq":null,"last_run_seq":null}})");
  story.add("message.added", "{}").add("context.built", R"({"manifest_id":"m2"})");
  EXPECT_EQ(story.at("/context"),
            R"({"compacted_at":7,"manifest_id":"m2","messages":{"count":1,"first_run_seq":8,"last_run_seq":8}})");
}

TEST(State, PlansClaimsTasksAndBudgets) {
  Story story;
  story.add("plan.updated", R"({"items":[{"id":"1","text":"t","status":"done","x_more":1},"no",{"id":2}]})");
  EXPECT_EQ(story.at("/plan"), R"([{"id":"1","status":"done","text":"t"},{"id":null,"status":null,"text":null}])");
  story.add("plan.updated", R"({})");
  EXPECT_EQ(story.at("/plan"), "[]");
  story.add("claim.recorded", R"({"claim_id":"c1"})")
      .add("claim.recorded", R"({"claim_id":"c2"})")
      .add("claim.decided", R"({"claim_id":"c1"})");
  EXPECT_EQ(story.at("/claims"), R"({"count":2,"dropped":0,"open":[{"claim_id":"c2","run_seq":3}]})");
  story.add("task.opened", R"({"task_id":"t1"})").add("task.opened", "{}").add("task.completed", R"({"task_id":"t1"})");
  EXPECT_EQ(story.at("/tasks"), R"({"completed":1,"dropped":0,"open":[],"opened":2})");
  story.add("task.opened", R"({"task_id":"t2"})");
  EXPECT_NE(story.state.document().find(R"("open":[{"run_seq":8,"task_id":"t2"}])"), std::string::npos)
      << "members are sorted";
  story.add("budget.exceeded", R"({"budget":"tokens","limit":1.50,"used":"2"})");
  EXPECT_EQ(story.at("/budgets"), R"({"exceeded":1,"last":{"budget":"tokens","limit":1.50,"run_seq":9,"used":"2"}})");
}

TEST(State, UsageIsSummedExactly) {
  Story story;
  for (int i = 0; i < 10; ++i) {
    story.add("model.answered",
              R"({"usage":{"input_tokens":100,"output_tokens":7,"cost":{"amount":0.1,"currency":"USD"}}})");
  }
  story.add("model.answered",
            R"({"usage":{"input_tokens":-5,"output_tokens":1.0,"cost":{"amount":"2.5e-7","currency":"USD"}}})");
  story.add("model.answered", R"({"usage":{"cost":null}})")
      .add("model.answered", R"({"usage":{"cost":{"amount":-1,"currency":"USD"}}})");
  story.add("model.answered", R"({"usage":{"cost":{"amount":1}}})")
      .add("model.answered", R"({"usage":{"cost":"1 USD"}})");
  EXPECT_EQ(story.at("/usage"),
            R"({"cost":{"USD":"1.00000025"},"input_tokens":1000,"output_tokens":70,"uncounted":3})");
}

TEST(State, SumsStopAtTheLargestInteger) {
  Story story;
  for (int i = 0; i < 3; ++i) story.add("model.answered", R"({"usage":{"input_tokens":9223372036854775800}})");
  EXPECT_EQ(story.at("/usage/input_tokens"), "9223372036854775807");
}

TEST(State, PatchesOfBothKindsApply) {
  Story story;
  story.add("state.patched", R"({"format":"merge","patch":{"a":{"b":1.0},"z":[1,null]}})");
  story.add("state.patched", R"({"format":"merge","patch":{"a":{"b":null,"c":"\u00e9"}}})");
  EXPECT_EQ(story.at("/working"), "{\"a\":{\"c\":\"\xc3\xa9\"},\"z\":[1,null]}");
  story.add(
      "state.patched",
      R"({"format":"json_patch","patch":[{"op":"add","path":"/z/-","value":{"n":null}},{"op":"copy","from":"/a","path":"/b"}]})");
  EXPECT_EQ(story.at("/working"),
            "{\"a\":{\"c\":\"\xc3\xa9\"},\"b\":{\"c\":\"\xc3\xa9\"},\"z\":[1,null,{\"n\":null}]}");
  EXPECT_EQ(story.at("/refused/working"), "0");
}

TEST(State, APatchThatDoesNotApplyChangesNothingAndIsCounted) {
  Story story;
  story.add("state.patched", R"({"format":"merge","patch":{"a":1}})");
  int refused = 0;
  for (
      std::string_view body : {
          R"({"format":"merge","patch":[1]})",
          R"({"format":"merge","patch":null})",
          R"({"format":"merge"})",
          R"({"format":"yaml","patch":{}})",
          R"({"patch":{}})",
          R"({"format":"json_patch","patch":{}})",
          R"({"format":"json_patch","patch":[{"op":"add","path":"/b","value":1},{"op":"test","path":"/a","value":1.0}]})",
          R"({"format":"json_patch","patch":[{"op":"replace","path":"","value":7}]})",
          R"({"format":"merge","ref":{"artifact_id":"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"}})",
      }) {
    story.add("state.patched", std::string(body));
    EXPECT_EQ(story.at("/working"), R"({"a":1})") << body;
    EXPECT_EQ(story.at("/refused/working"), std::to_string(++refused)) << body;
  }
}

TEST(State, ASpilledPatchComesFromItsArtifact) {
  const std::string body = R"({"format":"merge","ref":{"artifact_id":"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"}})";
  Story story;
  story.add("state.patched", body, {}, R"({"a": {"b": 2}})").add("state.patched", body, {}, "not JSON");
  EXPECT_EQ(story.at("/working") + story.at("/refused/working"), R"({"a":{"b":2}}1)");
  Event event;
  event.type = "state.patched";
  event.body = body;
  EXPECT_EQ(spilled_patch_of(event), "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001");
  event.body = R"({"format":"merge","\u0072ef":{"artifact_id":"a1"}})";
  EXPECT_EQ(spilled_patch_of(event), "a1");
  event.body = R"({"format":"merge","patch":{"ref":{"artifact_id":"a1"}}})";
  EXPECT_EQ(spilled_patch_of(event), "");
}

TEST(State, WorkingStateHasAnEdge) {
  const auto filled = [](std::size_t bytes) { return R"({"a":")" + std::string(bytes - 8, 'v') + R"("})"; };
  const std::string body = R"({"format":"merge","ref":{"artifact_id":"a"}})";
  Story story;
  story.add("state.patched", body, {}, filled(limits::working_state_bytes_max));
  EXPECT_EQ(story.at("/refused/working"), "0");
  EXPECT_EQ(story.state.working().bytes(), limits::working_state_bytes_max);
  story.add("state.patched", R"({"format":"merge","patch":{"b":1}})");
  EXPECT_EQ(story.at("/refused/working"), "1");
  const Status checked = story.state.check_patch(R"({"format":"merge","patch":{"b":1}})");
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, Errc::too_large);
  EXPECT_TRUE(story.state.check_patch(R"({"format":"merge","patch":{"a":1}})").ok());
}

TEST(State, WorkingStateIsAtMostSixtyLevelsDeep) {
  const auto nested = [](int levels) {
    std::string text = "1";
    for (int i = 0; i < levels; ++i) text = R"({"a":)" + text + "}";
    return R"({"format":"merge","patch":)" + text + "}";
  };
  Story story;
  story.add("state.patched", nested(60));
  EXPECT_EQ(story.at("/refused/working"), "0");
  story.add("state.patched", nested(61));
  EXPECT_EQ(story.at("/refused/working"), "1");
  EXPECT_TRUE(State::parse(story.state.document()).ok());
}

TEST(State, AConditionalPatchNeedsThePresentHash) {
  Story story;
  story.add("state.patched", R"({"format":"merge","patch":{"a":1}})");
  const auto conditional = [](const std::string& hash) {
    return R"({"format":"merge","patch":{"a":2},"expected_state_hash":")" + hash + R"("})";
  };
  EXPECT_TRUE(story.state.check_patch(conditional(to_hex(story.state.state_hash()))).ok());
  const Status checked = story.state.check_patch(conditional(std::string(64, '0')));
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, Errc::conflict);
  EXPECT_EQ(story.at("/working"), R"({"a":1})") << "a check changes nothing";
}

TEST(State, ARedactedEventFoldsAsEmpty) {
  Story redacted;
  redacted.add("tool.called", std::nullopt).add("artifact.stored", std::nullopt).add("state.patched", std::nullopt);
  Story empty;
  empty.add("tool.called", "{}").add("artifact.stored", "{}").add("state.patched", "{}");
  EXPECT_EQ(redacted.state.document(), empty.state.document());
}

TEST(State, ADocumentThatIsNotCanonicalIsRefused) {
  const std::string document = State().document();
  EXPECT_TRUE(State::parse(document).ok());
  EXPECT_FALSE(State::parse(document + " ").ok());
  EXPECT_FALSE(State::parse("{}").ok());
  EXPECT_FALSE(State::parse("").ok());
  std::string other = document;
  other.replace(other.find("\"schema\":1"), 10, "\"schema\":2");
  ASSERT_FALSE(State::parse(other).ok());
  EXPECT_EQ(State::parse(other).error().code, Errc::corrupt);
}

}  // namespace
}  // namespace muniment::events
