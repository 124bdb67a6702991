// Tests of JUnit and GoogleTest XML, and of the XML reader below them.
#include <gtest/gtest.h>

#include "evidence/reports/xml/xml.hpp"
#include "unit/reports_golden.hpp"

namespace muniment::evidence::reports {
namespace {

std::string suite(std::string_view attributes, std::string_view content) {
  return "<testsuite " + std::string(attributes) + ">" + std::string(content) + "</testsuite>";
}

std::string nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += "<testsuite>";
  for (std::size_t i = 0; i < depth; ++i) text += "</testsuite>";
  return text;
}

TEST(JUnit, ATestOfANestedSuiteCountsOnce) {
  const Report report = read_golden("junit_nested.xml");
  EXPECT_EQ(report.counts, counts_of(2, 1, 0));
  EXPECT_EQ(report.summary, counts_of(2, 1, 0));
  EXPECT_EQ(report.problem, "");
}

TEST(JUnit, ASuiteThatLeavesItsInnerSuitesOutIsAddedToThem) {
  const Report report =
      read_text(suite("tests='1' failures='0'",
                      "<testcase name='a'/>" + suite("tests='2' failures='1'",
                                                     "<testcase name='b'/><testcase name='c'><failure/></testcase>")));
  EXPECT_EQ(report.summary, counts_of(2, 1, 0));
  EXPECT_EQ(report.problem, "");
}

TEST(JUnit, ASuiteWithoutCountsIsItsList) {
  const Report report = read_text(suite("name='s'", "<testcase name='a'/><testcase name='b'><skipped/></testcase>"));
  EXPECT_EQ(report.counts, counts_of(1, 0, 1));
  EXPECT_FALSE(report.summary);
  EXPECT_TRUE(report.complete);
}

TEST(JUnit, AnEmptySuiteHasZeroTests) {
  const Report report = read_text("<testsuites tests='0'/>");
  EXPECT_EQ(report.counts, Counts{});
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.problem, "");
}

TEST(JUnit, AFailureRemovedFromTheListContradictsTheSummary) {
  EXPECT_EQ(read_golden("junit_failures_removed.xml").problem, "its totals state 5 failed tests, and it lists 3");
}

TEST(JUnit, TotalsThatCountSubtestsAreANote) {
  const Report report = read_text(suite("tests='5' failures='0'", "<testcase name='a'/><testcase name='b'/>"));
  EXPECT_EQ(report.counts, counts_of(2, 0, 0));
  EXPECT_EQ(report.problem, "");
  EXPECT_NE(report.note.find("5 tests"), std::string::npos) << report.note;
}

TEST(JUnit, ATestThatPassedAtALaterAttemptIsFlaky) {
  const Report report = read_text(suite("tests='3' failures='1'",
                                        "<testcase name='a'><flakyFailure/></testcase>"
                                        "<testcase name='b'/>"));
  EXPECT_EQ(report.counts, counts_of(2, 0, 0));
  EXPECT_EQ(report.flaky, 1);
  EXPECT_EQ(report.problem, "");
}

TEST(JUnit, ATestThatFailedAtEveryAttemptFailed) {
  const Report report = read_text(suite("tests='3' failures='3'",
                                        "<testcase name='a'><failure/><failure/>"
                                        "<rerunFailure/></testcase>"));
  EXPECT_EQ(report.counts, counts_of(0, 1, 0));
  EXPECT_EQ(report.flaky, 0);
  EXPECT_EQ(report.problem, "");
}

TEST(JUnit, ATestIsFailedWhateverElseItHolds) {
  const std::string both =
      "<testcase name='a'><skipped/><error/></testcase><testcase name='b'><failure/><skipped/></testcase>";
  EXPECT_EQ(read_text(suite("tests='2'", both)).counts, counts_of(0, 2, 0));
}

TEST(JUnit, AnElementBelowTheOutputOfATestIsNoFailure) {
  EXPECT_EQ(read_text(suite("tests='1'", "<testcase name='a'><system-out><failure/></system-out></testcase>")).counts,
            counts_of(1, 0, 0));
}

TEST(JUnit, ATestWithinATestIsNoTest) {
  EXPECT_EQ(read_text(suite("tests='1'", "<testcase name='a'><testcase name='b'/></testcase>")).counts.total, 1);
}

TEST(JUnit, AFailureHasTheNameOfItsClassAndTest) {
  const Report report = read_text(suite("tests='1'", "<testcase classname='C' name='t'><failure/></testcase>"));
  EXPECT_EQ(report.failures, std::vector<std::string>{"C.t"});
}

TEST(JUnit, AReportWithoutItsClosingTagIsTruncated) {
  const Report report = read_golden("junit_truncated.xml");
  EXPECT_FALSE(report.complete);
  EXPECT_FALSE(report.unreadable);
  EXPECT_NE(report.problem.find("line 6"), std::string::npos) << report.problem;
}

TEST(JUnit, AnAttributeThatIsNoCountIsAProblem) {
  EXPECT_EQ(read_text(suite("tests='many'", "")).problem, "the attribute tests of a suite is not a number");
}

TEST(JUnit, ACountThatOverflowsIsAbsurd) {
  EXPECT_EQ(read_text(suite("tests='99999999999999999999'", "")).problem, "a count is negative or above 1,000,000,000");
}

TEST(JUnit, NegativeErrorsThatHideFailuresAreAbsurd) {
  const std::string failing = "<testcase name='a'><failure/></testcase><testcase name='b'/>";
  EXPECT_EQ(read_text(suite("tests='2' failures='2' errors='-1'", failing)).problem,
            "a count is negative or above 1,000,000,000");
}

TEST(JUnit, AByteOrderMarkAndCommentsMayPrecedeIt) {
  EXPECT_EQ(read_text("\xef\xbb\xbf<?xml version='1.0'?>\n<!-- > -->\n" + suite("tests='1'", "<testcase name='a'/>"))
                .counts.total,
            1);
}

TEST(Xml, CharactersThatXmlDoesNotAllowAreReplaced) {
  for (const std::string& name : {std::string("&#x1B;[32m"), std::string("&#0;"), std::string("\xff\x80"),
                                  std::string("a\0b", 3), std::string("\x01"), std::string("&#xFFFE;")}) {
    const Report report = read_text(suite("tests='1'", "<testcase name='" + name + "'><failure/></testcase>"));
    EXPECT_EQ(report.counts, counts_of(0, 1, 0)) << name;
    EXPECT_EQ(report.problem, "") << name;
  }
}

TEST(Xml, ADeclaredEncodingIsRead) {
  for (const std::string_view encoding :
       {"windows-1252", "ISO-8859-1", "iso-8859-15", "us-ascii", "UTF-16", "cp1252"}) {
    const Report report = read_text("\n<?xml version='1.0' encoding='" + std::string(encoding) + "'?>" +
                                    suite("tests='1'", "<testcase name='caf\xe9'><failure/></testcase>"));
    EXPECT_EQ(report.problem, "") << encoding;
    EXPECT_EQ(report.counts, counts_of(0, 1, 0)) << encoding;
    if (encoding == "windows-1252") {
      EXPECT_EQ(report.failures.at(0), "caf\u00e9");
    }
  }
}

TEST(Xml, Utf16IsReadWithAndWithoutAMark) {
  const std::string text = "<?xml version='1.0' encoding='UTF-16'?>" + suite("tests='1'", "<testcase name='a'/>");
  std::string little, big;
  for (const char c : text) {
    little += {c, '\0'};
    big += {'\0', c};
  }
  for (const std::string& bytes : {little, big, "\xff\xfe" + little, "\xfe\xff" + big}) {
    EXPECT_EQ(read_text(bytes).counts, counts_of(1, 0, 0));
    EXPECT_EQ(read_text(bytes).problem, "");
  }
}

TEST(JUnit, AnotherElementWithAPrefixOfTheNameIsNoReport) {
  EXPECT_FALSE(read_report("<testsuitesettings tests='1'/>"));
}

TEST(Xml, ADocumentTypeIsRefused) {
  const Report report = read_golden("junit_entities.xml");
  EXPECT_EQ(report.counts, Counts{});
  EXPECT_TRUE(report.unreadable);
  EXPECT_NE(report.problem.find("document type declarations are not accepted"), std::string::npos) << report.problem;
}

TEST(Xml, AnExternalEntityIsRefused) {
  const Report report = read_text("<!DOCTYPE testsuites SYSTEM 'file:///etc/passwd'><testsuites tests='0'/>");
  EXPECT_NE(report.problem.find("document type declarations"), std::string::npos) << report.problem;
}

TEST(Xml, ElementsAtTheDepthLimitAreRead) { EXPECT_EQ(read_text(nested(xml_depth_max)).problem, ""); }

TEST(Xml, ElementsBeyondTheDepthLimitAreRefused) {
  EXPECT_NE(read_text(nested(xml_depth_max + 1)).problem.find("nested deeper than 64 levels"), std::string::npos);
}

TEST(Xml, AttributesAtTheLimitAreRead) {
  std::string attributes;
  for (std::size_t i = 0; i < xml_attributes_max; ++i) attributes += "a" + std::to_string(i) + "='' ";
  EXPECT_EQ(read_text(suite(attributes, "")).problem, "");
  EXPECT_NE(read_text(suite(attributes + "b=''", "")).problem.find("more than 256 attributes"), std::string::npos);
}

TEST(Xml, TextBehindTheRootIsDamage) { EXPECT_NE(read_text(suite("tests='0'", "") + "<more/>").problem, ""); }

TEST(GTestXml, ADisabledTestAndOneThatSkipsItselfAreSkipped) {
  const Report report = read_golden("gtest.xml");
  EXPECT_EQ(report.format, "gtest_xml");
  EXPECT_EQ(report.counts, counts_of(2, 1, 2));
  EXPECT_EQ(report.summary, report.counts);
}

TEST(GTestXml, TwoFailuresInOneTestAreOneFailedTest) { EXPECT_EQ(read_golden("gtest.xml").counts.failed, 1); }

}  // namespace
}  // namespace muniment::evidence::reports
