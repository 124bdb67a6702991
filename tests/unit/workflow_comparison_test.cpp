#include "evidence/workflow/comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muniment::evidence::workflow {
namespace {

ReadBytes reader(std::string text) {
  return [text = std::move(text)](std::int64_t offset, std::int64_t length) -> Result<std::string> {
    const auto at = std::min(static_cast<std::size_t>(offset), text.size());
    return text.substr(at, static_cast<std::size_t>(length));
  };
}

Stored stored(const std::string& text) { return {"id", sha256(text), static_cast<std::int64_t>(text.size())}; }

TEST(WorkflowComparison, TheFirstDifferingByteIsFound) {
  EXPECT_EQ(*first_difference(reader("abc"), reader("abd")), 2);
  EXPECT_EQ(*first_difference(reader("abc"), reader("ab")), 2);
  EXPECT_EQ(*first_difference(reader(""), reader("x")), 0);
  EXPECT_EQ(*first_difference(reader("same"), reader("same")), std::nullopt);
}

TEST(WorkflowComparison, TheSearchCrossesPieces) {
  std::string one(3 << 20, 'a');
  std::string other = one;
  other[(2 << 20) + 5] = 'b';
  EXPECT_EQ(*first_difference(reader(one), reader(other)), (2 << 20) + 5);
}

TEST(WorkflowComparison, TheSearchEndsAtItsLimit) {
  const ReadBytes endless = [](std::int64_t, std::int64_t length) -> Result<std::string> {
    return std::string(static_cast<std::size_t>(length), 'x');
  };
  EXPECT_EQ(*first_difference(endless, endless), std::nullopt);
}

TEST(WorkflowComparison, AnErrorOfAReaderIsReturned) {
  const ReadBytes broken = [](std::int64_t, std::int64_t) -> Result<std::string> {
    return Error(Errc::corrupt, "damaged");
  };
  EXPECT_FALSE(first_difference(broken, reader("x")));
}

TEST(WorkflowComparison, EqualMeansEqualHashesAndSizes) {
  Compared pair{"out.txt", stored("abc"), stored("abc"), std::nullopt};
  EXPECT_TRUE(pair.equal());
  pair.output = stored("abd");
  EXPECT_FALSE(pair.equal());
  pair.output = std::nullopt;
  EXPECT_FALSE(pair.equal());
}

TEST(WorkflowComparison, TheTextContainsNoByteOfTheFiles) {
  const Compared pair{"out.txt", stored("secret golden"), stored("secret other!"), 7};
  EXPECT_EQ(describe(pair), "out.txt: differs at byte 7 (13 bytes expected, 13 bytes found)");
  const Compared missing{"b.txt", stored("x"), std::nullopt, std::nullopt};
  const Compared equal{"c.txt", stored("x"), stored("x"), std::nullopt};
  const std::string text = describe(std::vector{pair, missing, equal});
  EXPECT_EQ(text.substr(0, text.find('\n')), "1 of 3 outputs equal their golden files");
  EXPECT_NE(text.find("b.txt: the tester wrote no output"), std::string::npos);
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace muniment::evidence::workflow
