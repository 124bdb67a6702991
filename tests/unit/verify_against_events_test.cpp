// Tests that the daemon's fold and the verifier's, which share only base/, give the same bytes for the same random
// events with any bodies.
#include <gtest/gtest.h>

#include <random>

#include "events/state.hpp"
#include "verify/state/fold.hpp"

namespace muniment {
namespace {

class RandomEvents {
 public:
  explicit RandomEvents(unsigned seed) : random_(seed) {}

  events::Event next(std::int64_t seq) {
    static const std::vector<std::string> types{
        "run.started",     "run.ended",       "run.halted",     "run.resumed",        "run.annotated",
        "step.started",    "step.ended",      "model.called",   "model.answered",     "tool.called",
        "tool.returned",   "command.started", "command.ended",  "approval.requested", "approval.decided",
        "child.started",   "child.ended",     "child.halted",   "context.built",      "context.compacted",
        "plan.updated",    "claim.recorded",  "claim.decided",  "task.opened",        "task.completed",
        "budget.exceeded", "artifact.stored", "snapshot.taken", "message.added",      "thought.recorded",
        "x.a.b",           "state.patched",   "state.patched",  "state.patched",      "state.patched",
        "error.raised"};
    events::Event event;
    event.seq = seq;
    event.run_no = 1;
    event.run_id = "r\"1";
    event.run_seq = seq;
    event.recorded_at = {1'795'000'000'000'000 + seq * 1'237};
    event.origin = static_cast<events::Origin>(1 + below(3));
    event.type = types[below(types.size())];
    if (below(2) == 0) event.step_id = pick({"s1", "s2"});
    event.actor = "uid:1";
    event.run_hash.fill(static_cast<std::uint8_t>(seq));
    if (below(20) != 0) {
      event.body = body();
      event.salt.emplace();
    }
    return event;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  std::string pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  std::string scalar() {
    return pick({"null", "true", "false", "0", "-1", "-0", "7", "1.50", "1e2", "9223372036854775807",
                 "18446744073709551615", "\"\"", "\"id1\"", "\"é\\n\\u0001\\u007f\"", "\"\\\"\\\\/\"",
                 "\"\\ud83d\\ude42\"", "\"ok\""});
  }

  std::string value(int levels) {
    if (levels == 0 || below(2) == 0) return scalar();
    std::string text;
    if (below(3) == 0) {
      for (std::size_t i = below(4); i > 0; --i) text += (text.empty() ? "" : " , ") + value(levels - 1);
      return "[" + text + "]";
    }
    return object({"a", "b", "Z", "é", "a/b", "~", "", "ab"}, levels);
  }

  std::string object(const std::vector<std::string>& names, int levels) {
    std::string text;
    for (const std::string& name : names) {
      if (below(2) == 0) continue;
      text += (text.empty() ? "\"" : ", \"") + name + "\" : " + value(levels - 1);
    }
    return "{" + text + "}";
  }

  std::string pointer() {
    std::string text;
    for (std::size_t i = below(4); i > 0; --i)
      text += "/" + pick({"a", "b", "Z", "é", "a~1b", "~0", "0", "1", "2", "-", "01", "", "~2"});
    return "\"" + text + "\"";
  }

  std::string patch() {
    if (below(2) == 0) return "\"format\":\"merge\",\"patch\":" + object({"a", "b", "Z", "é", "a/b", "~", ""}, 4);
    std::string operations;
    for (std::size_t i = 1 + below(3); i > 0; --i) {
      operations += std::string(operations.empty() ? "" : ",") + "{\"op\":\"" +
                    pick({"add", "add", "add", "remove", "replace", "move", "copy", "test", "none"}) +
                    "\",\"path\":" + pointer() + ",\"from\":" + pointer() + ",\"value\":" + value(2) + "}";
    }
    return "\"format\":\"json_patch\",\"patch\":[" + operations + "]";
  }

  std::string usage() {
    const std::string amount =
        pick({"0.1", "12", "\"3.25\"", "\"1e-13\"", "1e14", "1E2", "\"007\"", "-1", "\"1.5e+3\"", "true",
              "999999999999999.9999999999999", "\"1e15\"", "\"0.0000000000019\"", "1e-308"});
    return "{\"input_tokens\":" + scalar() + ",\"output_tokens\":5,\"cost\":{\"amount\":" + amount +
           ",\"currency\":" + pick({"\"USD\"", "\"EUR\"", "3"}) + "}}";
  }

  // Returns a body with every member that any rule reads, each present or absent, and of the right kind or another.
  std::string body() {
    std::string text = patch();
    const std::string id = pick({"\"i1\"", "\"i2\"", "\"i3\"", "\"i4\""});
    for (const char* name :
         {"call_id", "approval_id", "run_id", "manifest_id", "claim_id", "task_id", "name", "kind", "model",
          "parent_step_id", "goal", "outcome", "code", "reason", "pointer", "budget", "mime_type"}) {
      if (below(8) != 0) text += std::string(",\"") + name + "\":" + (below(8) == 0 ? scalar() : id);
    }
    for (const char* name : {"limit", "used", "attempts", "size_bytes"})
      text += std::string(",\"") + name + "\":" + scalar();
    text += ",\"usage\":" + usage() + ",\"argv\":" + pick({"[\"ls\",\"-l\"]", "[]", "[3]", "\"ls\""});
    text += ",\"items\":" + pick({"[{\"id\":\"1\",\"text\":\"t\",\"status\":3},4,{}]", "[]", "{}", "null"});
    text += ",\"agent\":" + pick({"{\"name\":\"a\",\"id\":1}", "null", "[]", "{}"}) +
            ",\"parent\":" + pick({"{\"run_id\":\"p\",\"run_seq\":3}", "{\"run_seq\":1.0}", "\"p\""});
    return "{" + text + ",\"labels\":" + object({"a", "b", "k", "é"}, 2) + "}";
  }

  std::mt19937 random_;
};

verify::FoldEvent as_read(const events::Event& event) {
  verify::FoldEvent read;
  read.seq = event.seq;
  read.run_seq = event.run_seq;
  read.recorded_at = event.recorded_at;
  read.origin = static_cast<std::int64_t>(event.origin);
  read.type = event.type;
  read.step_id = event.step_id;
  read.run_hash = to_hex(event.run_hash);
  read.body = event.body;
  return read;
}

TEST(Folds, TheDaemonsAndTheVerifiersGiveTheSameBytes) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    RandomEvents random(seed);
    events::State state;
    verify::Fold fold("r\"1");
    ASSERT_EQ(fold.document(), state.document());
    for (std::int64_t seq = 0; seq < 250; ++seq) {
      const events::Event event = random.next(seq);
      state.apply(event);
      fold.apply(as_read(event), {});
      ASSERT_EQ(fold.document(), state.document())
          << "seed " << seed << ", " << event.type << " " << event.body.value_or("redacted");
    }
  }
}

TEST(Folds, AFoldThatGoesOnFromASnapshotGivesTheSameBytes) {
  RandomEvents random(99);
  events::State state;
  verify::Fold fold("r\"1");
  for (std::int64_t seq = 0; seq < 400; ++seq) {
    const events::Event event = random.next(seq);
    state.apply(event);
    fold.apply(as_read(event), {});
    if (seq % 50 != 0) continue;
    auto parsed = events::State::parse(state.document());
    ASSERT_TRUE(parsed) << parsed.error().message;
    state = std::move(parsed).value();
    ASSERT_EQ(fold.document(), state.document());
  }
}

}  // namespace
}  // namespace muniment
