// Properties of the fold over any history: it can be interrupted anywhere and resumed from the document, its document
// can be read back, and it fits schema/state.json.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <random>

#include "base/json/json.hpp"
#include "base/json/schema.hpp"
#include "events/catalogue.hpp"
#include "events/state.hpp"

namespace muniment::events {
namespace {

// Most of these histories could not be written by a client: the fold accepts any sequence of events.
class HistoryMaker {
 public:
  explicit HistoryMaker(std::uint32_t seed) : random_(seed) {}

  std::vector<Event> history(std::size_t length) {
    std::vector<Event> events;
    std::int64_t seq = 0;
    for (std::size_t i = 0; i < length; ++i) {
      seq += 1 + below(3);
      Event event;
      event.seq = seq;
      event.run_no = 1;
      event.run_id = "r1";
      event.run_seq = static_cast<std::int64_t>(i);
      event.recorded_at = Time{1'700'000'000'000'000 + seq};
      event.origin = static_cast<Origin>(1 + below(3));
      event.type = type();
      if (below(3) == 0) event.step_id = "s" + std::to_string(below(4));
      event.run_hash = sha256(std::to_string(random_()));
      if (below(20) != 0) {
        event.body = body();
        event.salt = Salt{};
      }
      events.push_back(std::move(event));
    }
    return events;
  }

 private:
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }

  template <std::size_t n>
  std::string_view any_of(const std::string_view (&choices)[n]) {
    return choices[static_cast<std::size_t>(below(n))];
  }

  std::string type() {
    if (below(10) == 0) return std::string(any_of({"x.a.b", "x.c.d", "not.known", "x."}));
    if (below(6) == 0) return "state.patched";
    if (below(3) == 0) {
      return std::string(any_of(
          {"task.opened", "claim.recorded", "step.started", "tool.called", "approval.requested", "child.started"}));
    }
    return std::string(
        catalogue()[static_cast<std::size_t>(below(static_cast<std::int64_t>(catalogue().size())))].name);
  }

  std::string value(int depth) {
    switch (below(depth > 2 ? 6 : 8)) {
      case 0: return "null";
      case 1: return below(2) ? "true" : "false";
      case 2:
        return std::string(
            any_of({"0", "-0", "7", "-3", "1.50", "1e2", "9223372036854775807", "18446744073709551615", "0.1"}));
      case 3:
        return std::string(any_of({R"("a")", R"("b")", R"("a\u0062")", R"("\u00e9\u0001\/")", R"("")", R"("1.25")"}));
      case 4: return R"("c)" + std::to_string(below(130)) + "\"";
      case 5: return std::to_string(below(1'000));
      case 6: {
        std::string text = "[";
        for (std::int64_t i = below(4); i > 0; --i) text += value(depth + 1) + (i > 1 ? "," : "");
        return text + "]";
      }
      default: return object(depth + 1);
    }
  }

  std::string object(int depth) {
    static constexpr std::string_view names[] = {
        "call_id",      "name",          "kind",   "model", "usage",      "cost",        "amount",   "currency",
        "input_tokens", "output_tokens", "labels", "agent", "parent",     "run_id",      "run_seq",  "goal",
        "outcome",      "items",         "id",     "text",  "status",     "manifest_id", "claim_id", "task_id",
        "approval_id",  "budget",        "limit",  "used",  "size_bytes", "mime_type",   "argv",     "code",
        "reason",       "attempts",      "a",      "b",     "\\u00e9"};
    std::string text = "{";
    std::vector<std::string_view> used;
    for (std::int64_t i = below(8); i > 0; --i) {
      const std::string_view name = any_of(names);
      if (std::find(used.begin(), used.end(), name) != used.end()) continue;
      used.push_back(name);
      if (text.size() > 1) text += ',';
      const bool key = name.ends_with("_id") && below(3) != 0;  // otherwise, most rules would have no effect
      text += "\"" + std::string(name) + "\":" + (key ? "\"k" + std::to_string(below(130)) + "\"" : value(depth));
    }
    return text + "}";
  }

  std::string body() {
    if (below(3) == 0) return R"({"format":"merge","patch":)" + value(0) + "}";
    if (below(6) == 0) {
      return R"({"format":"json_patch","patch":[{"op":")" +
             std::string(any_of({"add", "replace", "remove", "test", "odd"})) + R"(","path":")" +
             std::string(any_of({"/a", "/b", "/a/0", "", "/a/-", "a"})) + R"(","value":)" + value(0) + "}]}";
    }
    std::string text = object(0);
    if (text.find("_id\"") == std::string::npos && text.size() > 2 && below(2) == 0) {
      const std::string id = "\":\"k" + std::to_string(below(130)) + "\",";
      text.insert(1, "\"" + std::string(any_of({"task_id", "claim_id", "call_id", "approval_id"})) + id);
    }
    return text;
  }

  std::mt19937 random_;
};

State fold_all(const std::vector<Event>& events) {
  State state;
  for (const Event& event : events) state.apply(event);
  return state;
}

TEST(StateProperty, AFoldThatIsTakenUpFromItsDocumentEndsTheSame) {
  EXPECT_TRUE(rc::check([](std::uint32_t seed) {
    const auto length = *rc::gen::inRange<std::size_t>(0, 250);
    const std::vector<Event> events = HistoryMaker(seed).history(length);
    const auto cut = *rc::gen::inRange<std::size_t>(0, length + 1);
    State state = fold_all({events.begin(), events.begin() + static_cast<std::ptrdiff_t>(cut)});
    auto again = State::parse(state.document());
    RC_ASSERT(again.ok());
    RC_ASSERT(again->document() == state.document());
    RC_ASSERT(again->seq() == state.seq());
    for (std::size_t i = cut; i < length; ++i) again->apply(events[i]);
    RC_ASSERT(again->document() == fold_all(events).document());
  }));
}

TEST(StateProperty, ADocumentIsCanonicalAndFitsItsSchema) {
  auto set = SchemaSet::embedded();
  ASSERT_TRUE(set) << set.error().message;
  const auto schema = set->find("state");
  ASSERT_TRUE(schema.has_value());
  EXPECT_TRUE(rc::check([&](std::uint32_t seed) {
    const auto length = *rc::gen::inRange<std::size_t>(0, 200);
    const std::string text = fold_all(HistoryMaker(seed).history(length)).document();
    const auto document = json::parse(text);
    RC_ASSERT(document.ok());
    RC_ASSERT(json::canonical(document->root()) == text);
    const Status fits = schema->validate(document->root());
    if (!fits) RC_FAIL(fits.error().message);
  }));
}

TEST(StateProperty, ApplyingAHistoryTwiceIsApplyingItOnce) {
  EXPECT_TRUE(rc::check([](std::uint32_t seed) {
    const std::vector<Event> events = HistoryMaker(seed).history(60);
    State state = fold_all(events);
    const std::string once = state.document();
    for (const Event& event : events) state.apply(event);
    RC_ASSERT(state.document() == once);
  }));
}

}  // namespace
}  // namespace muniment::events
