#include "evidence/completion/policy.hpp"

#include <gtest/gtest.h>

#include "completion_fixture.hpp"

namespace muniment::evidence::completion {
namespace {

std::string error_of(std::string_view toml) {
  const auto parsed = Policies::parse(toml);
  return parsed ? std::string() : parsed.error().message;
}

TEST(Policy, TheSeedsPolicyIsTheDefault) {
  const Policy policy = Policies().of_type("anything");
  EXPECT_FALSE(policy.strict);
  EXPECT_EQ(policy.fresh_for, std::chrono::hours(24));
  EXPECT_EQ(policy.at_least.count(), 0);
  EXPECT_FALSE(policy.other_actor);
}

TEST(Policy, AnEmptyFileIsTheSeedsPolicy) { EXPECT_FALSE(Policies::parse("")->of_type("x").strict); }

TEST(Policy, TheFileCanDemandTheStrictPolicy) {
  EXPECT_TRUE(Policies::parse("policy = \"strict\"")->of_type("x").strict);
}

TEST(Policy, ASectionInheritsFromTheDefaultWhereverItIs) {
  const auto policies = Policies::parse(
      "[task.deploy]\nat_least_seconds = 60\nother_actor = true\n[task.default]\nfresh_for_seconds = 3600\nrunners = [\"scripts/test\"]\n");
  ASSERT_TRUE(policies) << policies.error().message;
  const Policy deploy = policies->of_type("deploy");
  EXPECT_EQ(deploy.fresh_for.count(), 3'600);
  EXPECT_EQ(deploy.at_least.count(), 60);
  EXPECT_TRUE(deploy.other_actor);
  EXPECT_EQ(deploy.runners.size(), 1U);
  EXPECT_EQ(policies->of_type("other").at_least.count(), 0);
}

TEST(Policy, ARequestCanOnlyTighten) {
  const auto policies = Policies::parse("policy = \"strict\"");
  EXPECT_TRUE(policies->of_type("x", false).strict);
  EXPECT_TRUE(Policies().of_type("x", true).strict);
}

TEST(Policy, EachRuleAboutEvidenceDemandsEvidence) {
  const auto demands = [](const std::string& rule) {
    return Policies::parse("[task.x]\n" + rule + "\n[validator.v]\ncommand = [\"/bin/true\"]")
        ->of_type("x")
        .demands_evidence();
  };
  for (const char* rule : {"strict = true", "required_type = \"review\"", "other_actor = true", "same_run = true",
                           "validators = [\"v\"]", "fresh_for_seconds = 3600"})
    EXPECT_TRUE(demands(rule)) << rule;
  // A rule about the task applies without evidence; the rules below relax the policy or only name programs.
  for (const char* rule : {"", "at_least_seconds = 60", "fresh_for_seconds = 86400", "runners = [\"scripts/test\"]",
                           "allow = [\"sql\"]", "other_actor = false"})
    EXPECT_FALSE(demands(rule)) << rule;
}

TEST(Policy, ATextIsWorthWhatThePolicyStates) {
  const auto judged_by = [](std::string_view rule, bool strict, std::vector<Piece> pieces) {
    const auto policies = Policies::parse("[task.default]\ntext = \"" + std::string(rule) + "\"\n");
    EXPECT_TRUE(policies);
    return judged(authentication(), std::move(pieces), policies->of_type("", strict));
  };
  const Piece text = good_piece();
  EXPECT_TRUE(judged_by("weak", false, {text}).can_complete);
  EXPECT_EQ(blocked_by(judged_by("weak", true, {text})), "self_reported");
  EXPECT_EQ(blocked_by(judged_by("refuse", false, {text})), "self_reported");
  EXPECT_TRUE(judged_by("accept", true, {text}).can_complete);
  EXPECT_FALSE(judged_by("accept", true, {piece_of("TODO")}).can_complete);
  Piece command = recorded_piece();
  command.evidence_id = "e2";
  EXPECT_TRUE(judged_by("refuse", false, {command}).can_complete);
  EXPECT_TRUE(judged_by("refuse", false, {text, command}).can_complete);
  EXPECT_FALSE(Policies::parse("[task.default]\ntext = \"strong\"\n"));
  EXPECT_TRUE(Policies::parse("[task.a]\ntext = \"refuse\"\n")->of_type("a").demands_evidence());
}

TEST(Policy, AnUnknownKeyIsRefusedWithItsLine) {
  EXPECT_NE(error_of("\n\nfresh = 1").find("line 3: fresh"), std::string::npos) << error_of("\n\nfresh = 1");
  EXPECT_NE(error_of("[task.default]\n\nfresh_for = 1").find("line 3: task.default.fresh_for"), std::string::npos);
  EXPECT_NE(error_of("[validator.x]\ncommand = [\"/bin/x\"]\ntime = 1").find("line 3: validator.x.time"),
            std::string::npos);
}

TEST(Policy, AValueOfAnotherKindIsRefusedWithItsLine) {
  EXPECT_NE(error_of("[task.default]\nstrict = \"yes\"").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("task = 1").find("expected a table"), std::string::npos);
  EXPECT_NE(error_of("policy = \"lax\"").find("\"default\" or \"strict\""), std::string::npos);
  EXPECT_NE(error_of("[task.default]\nrunners = [1]"), "");
  EXPECT_NE(error_of("not toml at all").find("line 1"), std::string::npos);
}

TEST(Policy, NumbersHaveLimits) {
  EXPECT_EQ(error_of("[task.default]\nfresh_for_seconds = 1"), "");
  EXPECT_NE(error_of("[task.default]\nfresh_for_seconds = 0"), "");
  EXPECT_EQ(error_of("[task.default]\nat_least_seconds = 31622400"), "");
  EXPECT_NE(error_of("[task.default]\nat_least_seconds = 31622401"), "");
  EXPECT_NE(error_of("[task.default]\nat_least_seconds = -1"), "");
}

TEST(Policy, OnlyCodesThatExistAndAreNoTamperingCanBeAllowed) {
  EXPECT_EQ(error_of("[task.default]\nallow = [\"sql\", \"mismatch\", \"dependency_stale\"]"), "");
  EXPECT_NE(error_of("[task.default]\nallow = [\"sqll\"]").find("not the code"), std::string::npos);
  for (const char* code :
       {"damaged", "forged_identity", "no_evidence", "self_reported", "dependency_unknown", "dependency_damaged"}) {
    EXPECT_NE(error_of("[task.default]\nallow = [\"" + std::string(code) + "\"]").find("cannot be allowed"),
              std::string::npos)
        << code;
  }
}

TEST(Policy, AValidatorNeedsAnAbsolutePath) {
  const auto policies = Policies::parse(
      "[validator.lint]\ncommand = [\"/usr/bin/lint\", \"-q\"]\nlimit_ms = 100\n[task.default]\nvalidators = [\"lint\"]");
  ASSERT_TRUE(policies) << policies.error().message;
  ASSERT_NE(policies->validator("lint"), nullptr);
  EXPECT_EQ(policies->validator("lint")->limit.count(), 100);
  EXPECT_EQ(policies->validator("other"), nullptr);
  EXPECT_NE(error_of("[validator.lint]\ncommand = [\"lint\"]").find("absolute path"), std::string::npos);
  EXPECT_NE(error_of("[validator.lint]\nlimit_ms = 5").find("absolute path"), std::string::npos);
}

TEST(Policy, ASectionThatNamesAnUnknownValidatorIsRefused) {
  EXPECT_NE(error_of("[task.default]\nvalidators = [\"lint\"]").find("[validator.lint]"), std::string::npos);
}

TEST(Policy, ListsAndFilesHaveLimits) {
  const auto list_of = [](int count) {
    std::string text = "[task.default]\nrunners = [";
    for (int i = 0; i < count; ++i) text += "\"r\",";
    return text + "]";
  };
  EXPECT_EQ(error_of(list_of(64)), "");
  EXPECT_NE(error_of(list_of(65)), "");
  EXPECT_EQ(error_of(std::string(1 << 20, '\n')), "");
  EXPECT_NE(error_of(std::string((1 << 20) + 1, '\n')).find("limit"), std::string::npos);
}

}  // namespace
}  // namespace muniment::evidence::completion
