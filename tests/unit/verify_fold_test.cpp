// Tests of the verifier's fold: patches, costs and bounded lists, at the limits of docs/format.md.
#include <gtest/gtest.h>

#include "verify/state/cost.hpp"
#include "verify/state/fold.hpp"
#include "verify/state/patch.hpp"
#include "verify/state/value.hpp"

namespace muniment::verify {
namespace {

// Applies the patches in order. Returns `working`, or "refused" at the first refused patch.
std::string patched(const std::vector<std::string>& patches) {
  Working working;
  for (const std::string& text : patches) {
    const auto patch = json::parse(text);
    const bool is_list = patch->root().is(json::Kind::array);
    if (!(is_list ? working.apply_json_patch(patch->root()) : working.apply_merge(patch->root()))) return "refused";
  }
  return working.value().canonical();
}

TEST(VerifyPatch, AMergeReplacesRemovesAndKeepsNumberTokens) {
  EXPECT_EQ(patched({R"({"b":1.50,"a":{"x":1,"y":2}})", R"({"a":{"x":null,"z":[null]}})"}),
            R"({"a":{"y":2,"z":[null]},"b":1.50})");
  EXPECT_EQ(patched({R"({"a":[1]})", R"({"a":{"b":{"c":null}}})"}), R"({"a":{"b":{}}})");
}

TEST(VerifyPatch, EachOperationOfAJsonPatch) {
  const std::string start = R"({"l":[1,2],"o":{"a":1}})";
  EXPECT_EQ(patched({start, R"([{"op":"add","path":"/l/1","value":9},{"op":"add","path":"/l/-","value":3}])"}),
            R"({"l":[1,9,2,3],"o":{"a":1}})");
  EXPECT_EQ(patched({start, R"([{"op":"remove","path":"/l/0"},{"op":"remove","path":"/o/a"}])"}),
            R"({"l":[2],"o":{}})");
  EXPECT_EQ(patched({start, R"([{"op":"replace","path":"/l/0","value":null}])"}), R"({"l":[null,2],"o":{"a":1}})");
  EXPECT_EQ(patched({start, R"([{"op":"move","from":"/l/0","path":"/l/1"}])"}), R"({"l":[2,1],"o":{"a":1}})");
  EXPECT_EQ(patched({start, R"([{"op":"copy","from":"/o","path":"/o/a"}])"}), R"({"l":[1,2],"o":{"a":{"a":1}}})");
  EXPECT_EQ(patched({start, R"([{"op":"add","path":"/a~1b~0c","value":1,"extra":2}])"}),
            R"({"a/b~c":1,"l":[1,2],"o":{"a":1}})");
  EXPECT_EQ(patched({start, R"([{"op":"add","path":"","value":{}}])"}), "{}");
}

TEST(VerifyPatch, WhatDoesNotApplyIsRefusedWhole) {
  const std::string start = R"({"l":[1,2],"o":{"a":1}})";
  for (const char* patch :
       {R"([{"op":"add","path":"/l/3","value":1}])", R"([{"op":"add","path":"/l/01","value":1}])",
        R"([{"op":"remove","path":"/l/-"}])", R"([{"op":"remove","path":""}])", R"([{"op":"remove","path":"/none"}])",
        R"([{"op":"replace","path":"/none","value":1}])", R"([{"op":"test","path":"/l/0","value":1.0}])",
        R"([{"op":"move","from":"/o","path":"/o/a"}])", R"([{"op":"add","path":"l","value":1}])",
        R"([{"op":"add","path":"/a~2","value":1}])", R"([{"op":"add","path":"/a"}])",
        R"([{"op":"upsert","path":"/a","value":1}])", R"([{"op":"add","path":"","value":[]}])", R"([1])"}) {
    EXPECT_EQ(patched({start, patch}), "refused") << patch;
  }
}

TEST(VerifyPatch, WorkingIsAtMostFourMebibytesAndSixtyLevels) {
  const std::string most = R"({"a":")" + std::string(4'194'304 - 8, 'x') + "\"}";
  EXPECT_EQ(patched({most}).size(), 4'194'304U);
  EXPECT_EQ(patched({most, R"({"b":1})"}), "refused");
  EXPECT_EQ(patched({most, R"({"a":1})", R"({"b":2})"}), R"({"a":1,"b":2})");
  const auto nested = [](int levels) {
    return "{\"a\":" + std::string(static_cast<std::size_t>(levels - 1), '[') +
           std::string(static_cast<std::size_t>(levels - 1), ']') + "}";
  };
  EXPECT_NE(patched({nested(60)}), "refused");
  EXPECT_EQ(patched({nested(61)}), "refused");
}

TEST(VerifyPatch, CopiesCannotGrowWithoutLimit) {
  std::string patch = R"([{"op":"add","path":"/a","value":[")" + std::string(50'000, 'x') + R"("]})";
  for (int i = 0; i < 12; ++i) patch += R"(,{"op":"copy","from":"/a","path":"/a/-"})";
  EXPECT_EQ(patched({patch + "]"}), "refused");
}

std::string sum_of(const std::vector<std::string>& amounts) {
  Costs costs;
  std::string out;
  for (const std::string& amount : amounts) {
    const std::string text = R"({"currency":"USD","amount":)" + amount + "}";
    const auto cost = json::parse(text);
    if (!costs.add(cost->root())) out += "uncounted ";
  }
  costs.write(out);
  return out;
}

TEST(VerifyCost, SumsAreExactDecimals) {
  EXPECT_EQ(sum_of({"0.1", "0.2"}), R"({"USD":"0.3"})");
  EXPECT_EQ(sum_of({"\"0.00250\"", "1e1"}), R"({"USD":"10.0025"})");
  EXPECT_EQ(sum_of({"0"}), R"({"USD":"0"})");
  EXPECT_EQ(sum_of({"1e-12", "9e-13"}), R"({"USD":"0.000000000001"})");
  EXPECT_EQ(sum_of({"999999999999999.999999999999", "999999999999999.999999999999"}),
            R"({"USD":"1999999999999999.999999999998"})");
}

TEST(VerifyCost, WhatIsNoAmountIsNotCounted) {
  for (const char* amount :
       {"-1", "1e15", "\"01\"", "\".5\"", "\"1.\"", "\"1e\"", "\"1e999\"", "\"\"", "\"1 \"", "true", "null"}) {
    EXPECT_EQ(sum_of({amount}), "uncounted {}") << amount;
  }
}

FoldEvent event_of(std::int64_t seq, std::string_view type, std::string body) {
  FoldEvent event;
  event.seq = event.run_seq = seq;
  event.origin = 2;
  event.type = type;
  event.run_hash = std::string(64, 'a');
  event.body = std::move(body);
  return event;
}

TEST(VerifyFold, AListHoldsAHundredAndCountsWhatItDropped) {
  Fold fold("r");
  for (int i = 0; i < 103; ++i)
    fold.apply(event_of(i, "claim.recorded", "{\"claim_id\":\"c" + std::to_string(i) + "\"}"), {});
  fold.apply(event_of(103, "claim.decided", R"({"claim_id":"c50"})"), {});
  const std::string state = fold.document();
  EXPECT_NE(state.find(R"("claims":{"count":103,"dropped":3,"open":[{"claim_id":"c3","run_seq":3})"), std::string::npos)
      << state;
  EXPECT_EQ(state.find(R"("claim_id":"c50")"), std::string::npos);
}

TEST(VerifyFold, TakingASnapshotDoesNotChangeTheState) {
  Fold fold("r");
  fold.apply(event_of(1, "run.started", R"({"agent":{"name":"a"}})"), {});
  const std::string before = fold.document();
  fold.apply(event_of(2, "artifact.stored", R"({"mime_type":"application/vnd.muniment.state+json","size_bytes":9})"),
             {});
  fold.apply(event_of(3, "snapshot.taken", "{}"), {});
  fold.apply(event_of(1, "run.ended", "{}"), {});
  EXPECT_EQ(fold.document(), before);
}

TEST(VerifyValue, NumbersOfAJsonbAreEqualByTheirValue) {
  for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{
           {"1.50", "15e-1"}, {"0", "-0.0e5"}, {"100", "1E+2"}, {"0.001", "1e-3"}}) {
    EXPECT_TRUE(same_number(a, b)) << a << " " << b;
  }
  EXPECT_FALSE(same_number("1.5", "1.51"));
  EXPECT_FALSE(same_number("1", "-1"));
  EXPECT_FALSE(same_number("1", "10"));
}

}  // namespace
}  // namespace muniment::verify
