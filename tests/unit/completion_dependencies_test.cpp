// Expiry and dependencies of evidence: a piece counts only as long as it and everything that it depends on counts.
#include <gtest/gtest.h>

#include <chrono>
#include <tuple>

#include "completion_fixture.hpp"
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {
namespace {

Piece dependency(std::string id) {
  Piece piece = good_piece();
  piece.evidence_id = std::move(id);
  return piece;
}

Piece depending_on(std::vector<Piece> dependencies) {
  Piece piece = good_piece();
  for (const Piece& one : dependencies) piece.depends_on.push_back(one.evidence_id);
  piece.dependencies = std::move(dependencies);
  return piece;
}

TEST(Expiry, EvidenceIsStaleFromItsExpiryOn) {
  Piece piece = good_piece();
  piece.expires_at = Time{noon.micros + 1};
  EXPECT_TRUE(judged(piece).can_complete);
  piece.expires_at = noon;
  EXPECT_EQ(blocked_by(judged(piece)), "stale");
  EXPECT_EQ(judged(piece).verdict, Verdict::fail);
  EXPECT_NE(judged(piece).reason.find("it expired at 2026-11-26T12:00:00"), std::string::npos) << judged(piece).reason;
}

TEST(Expiry, ALaterExpiryDoesNotExtendThePolicysLimit) {
  Piece piece = good_piece();
  piece.recorded_at = Time{noon.micros - 2 * day};
  piece.expires_at = Time{noon.micros + day};
  EXPECT_EQ(blocked_by(judged(piece)), "stale");
}

TEST(Dependencies, IntactAndFreshOnesDoNotBlock) {
  EXPECT_TRUE(judged(depending_on({dependency("d1"), dependency("d2")})).can_complete);
}

TEST(Dependencies, EachFaultHasItsCodeAndVerdictAndNamesTheDependency) {
  Piece unknown = dependency("d1"), erased = dependency("d1"), damaged = dependency("d1"), old = dependency("d1"),
        expired = dependency("d1"), future = dependency("d1"), late = dependency("d1");
  unknown.found = false;
  erased.erased = true;
  damaged.damage = "the ledger differs from event 7";
  old.recorded_at = Time{noon.micros - day};
  expired.expires_at = noon;
  future.recorded_at = Time{noon.micros + 1};
  late.stated_at = Time{noon.micros - 2 * day};
  const std::tuple<Piece, std::string_view, Verdict> cases[] = {
      {unknown, "dependency_unknown", Verdict::fail},     {erased, "dependency_erased", Verdict::inconclusive},
      {damaged, "dependency_damaged", Verdict::tampered}, {old, "dependency_stale", Verdict::fail},
      {expired, "dependency_stale", Verdict::fail},       {future, "dependency_stale", Verdict::fail},
      {late, "dependency_stale", Verdict::fail},
  };
  for (const auto& [piece, code, verdict] : cases) {
    const Judgement judgement = judged(depending_on({dependency("d0"), piece}));
    EXPECT_EQ(blocked_by(judgement), code);
    EXPECT_EQ(judgement.verdict, verdict) << code;
    EXPECT_NE(judgement.reason.find("evidence d1"), std::string::npos) << judgement.reason;
    EXPECT_EQ(judgement.evidence_status.front().code, code);
  }
}

TEST(Dependencies, OneMicrosecondBeforeTheLimitIsFresh) {
  Piece old = dependency("d1");
  old.recorded_at = Time{noon.micros - day + 1};
  EXPECT_TRUE(judged(depending_on({old})).can_complete);
}

TEST(Dependencies, TheGravestFaultIsReported) {
  Piece old = dependency("d1"), damaged = dependency("d2");
  old.recorded_at = Time{noon.micros - day};
  damaged.damage = "changed";
  const auto broken = broken_dependency(depending_on({old, damaged}), std::chrono::hours(24), noon);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->code, "dependency_damaged");
  EXPECT_EQ(broken->evidence_id, "d2");
}

TEST(Dependencies, TooManyBlockUnlessAGraverFaultIsKnown) {
  Piece piece = depending_on({dependency("d1")});
  piece.dependencies_cut = true;
  EXPECT_EQ(blocked_by(judged(piece)), "dependencies_cut");
  EXPECT_EQ(judged(piece).verdict, Verdict::inconclusive);
  piece.dependencies.front().damage = "changed";
  EXPECT_EQ(blocked_by(judged(piece)), "dependency_damaged");
}

TEST(Dependencies, APolicyCanAllowOnlyStaleOnes) {
  Piece old = dependency("d1");
  old.recorded_at = Time{noon.micros - 2 * day};
  Policy policy;
  policy.allowed = {"dependency_stale"};
  EXPECT_TRUE(judged(authentication(), {depending_on({old})}, policy).can_complete);
}

}  // namespace
}  // namespace muniment::evidence::completion
