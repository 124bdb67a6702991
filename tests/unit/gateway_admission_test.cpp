#include "gateway/append/append_admission.hpp"

#include <gtest/gtest.h>

#include "base/limits.hpp"

namespace muniment::gateway {
namespace {

const Caller caller{1000, "uid:1000", false, 1};
constexpr std::string_view first_id = "01020304-0506-4708-890a-0b0c0d0e0f10";
constexpr std::string_view second_id = "01020304-0506-4708-890a-0b0c0d0e0f11";

Result<std::vector<events::NewEvent>> admit(const std::string& params, std::string_view key = {}) {
  const auto document = json::parse(params);
  if (!document) return document.error();
  auto admitted = admit_append(document->root(), caller, key, events::Origin::reported, Time{1'000'000});
  if (!admitted) return std::move(admitted).error();
  return seal_bodies(*std::move(admitted));
}

std::string refusal(const std::string& params) {
  const auto admitted = admit(params);
  return admitted ? "admitted" : admitted.error().message;
}

// Returns a body of exactly `size` bytes.
std::string body_of(std::size_t size) { return R"({"t":")" + std::string(size - 8, 'x') + R"("})"; }

TEST(Admission, ABodyKeepsTheBytesItWasSentWith) {
  const auto events = admit(R"({"run_id":"r1","type":"x.acme.note","body":{ "b":1.50 , "a":"\u00e4" },"step_id":"s1",)"
                            R"("occurred_at":"2026-11-21T14:02:11Z"})");
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events->size(), 1u);
  const events::NewEvent& event = events->front();
  EXPECT_EQ(event.body, R"({ "b":1.50 , "a":"\u00e4" })");
  EXPECT_EQ(event.type, "x.acme.note");
  EXPECT_EQ(event.step_id, "s1");
  EXPECT_EQ(format_time(*event.occurred_at), "2026-11-21T14:02:11.000000Z");
  EXPECT_EQ(event.origin, events::Origin::reported);
  EXPECT_TRUE(event.event_id_is_ours);
  EXPECT_EQ(event.body_hash, sha256({view(event.salt), event.body}));
}

TEST(Admission, ABodyMayHaveSixtyKibibytesAndNotOneByteMore) {
  const auto params = [](std::size_t size) { return R"({"type":"x.acme.note","body":)" + body_of(size) + "}"; };
  EXPECT_EQ(refusal(params(limits::event_body_bytes_max)), "admitted");
  const auto refused = admit(params(limits::event_body_bytes_max + 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_EQ(refused.error().limit, 61'440);
  EXPECT_EQ(
      refused.error().message,
      "body is 61,441 bytes, limit 61,440. Send it with spill: true, or store it with artifact.put and refer to it.");
}

TEST(Admission, AnUnknownTypeNamesTheNearest) {
  EXPECT_EQ(refusal(R"({"type":"tool.call","body":{}})"),
            "unknown event type \"tool.call\". Did you mean \"tool.called\"? Own types start with \"x.\".");
}

TEST(Admission, TheDaemonsTypesAreDenied) {
  const auto refused = admit(R"({"type":"run.ended","body":{"outcome":"success"}})");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::denied);
}

TEST(Admission, ABodyOfACoreTypeIsHeldAgainstItsSchema) {
  EXPECT_NE(refusal(R"({"type":"step.started","body":{"name":"a"}})").find("kind"), std::string::npos);
  EXPECT_EQ(refusal(R"({"type":"step.started","body":{"name":"a","kind":"turn"}})"), "admitted");
}

TEST(Admission, AnErrorAmongSeveralNamesItsPlace) {
  EXPECT_TRUE(refusal(R"({"events":[{"type":"x.acme.note","body":{}},{"type":"step.started","body":{"name":7}}]})")
                  .starts_with("events[1]: "));
  EXPECT_TRUE(refusal(R"({"events":[{"type":"x.acme.note","body":)" + body_of(limits::event_body_bytes_max + 1) + "}]}")
                  .starts_with("events[0]: body is 61,441 bytes"));
}

TEST(Admission, TheSameIdTwiceInOneRequestIsAMistake) {
  const auto request = [](std::string_view second) {
    return R"({"events":[{"type":"x.acme.note","body":{},"event_id":")" + std::string(first_id) +
           R"("},{"type":"x.acme.note","body":{}},{"type":"x.acme.note","body":{},"event_id":")" + std::string(second) +
           R"("}]})";
  };
  EXPECT_EQ(refusal(request(second_id)), "admitted");
  EXPECT_TRUE(refusal(request(first_id)).starts_with("events[2] has the event_id of events[0]"));
}

TEST(Admission, AnIdempotencyKeyDerivesTheIds) {
  const std::string two = R"({"events":[{"type":"x.acme.note","body":{}},{"type":"x.acme.note","body":{}}]})";
  const auto once = admit(two, "k1");
  const auto again = admit(two, "k1");
  const auto other = admit(two, "k2");
  ASSERT_TRUE(once && again && other);
  EXPECT_FALSE((*once)[0].event_id_is_ours);
  EXPECT_EQ((*once)[0].event_id, (*again)[0].event_id);
  EXPECT_EQ((*once)[1].event_id, (*again)[1].event_id);
  EXPECT_NE((*once)[0].event_id, (*once)[1].event_id);
  EXPECT_NE((*once)[0].event_id, (*other)[0].event_id);
}

TEST(Admission, AGivenIdWinsOverTheIdempotencyKey) {
  const auto events = admit(R"({"type":"x.acme.note","body":{},"event_id":")" + std::string(first_id) + "\"}", "k1");
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->front().event_id, *parse_uuid(first_id));
  EXPECT_FALSE(events->front().event_id_is_ours);
}

TEST(Admission, OneEventAndSeveralDoNotMix) {
  EXPECT_TRUE(refusal(R"({"step_id":"s1","events":[{"type":"x.acme.note","body":{}}]})")
                  .starts_with("step_id belongs to one event"));
  EXPECT_TRUE(refusal(R"({"run_id":"r1"})").starts_with("an event needs type and body"));
}

}  // namespace
}  // namespace muniment::gateway
