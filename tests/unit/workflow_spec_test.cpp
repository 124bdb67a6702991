#include "evidence/workflow/spec.hpp"

#include <gtest/gtest.h>

namespace muniment::evidence::workflow {
namespace {

const std::string smallest = R"(task = "Greet"
[spec_writer]
command = ["./write.sh"]
[coder]
command = ["./code.sh"]
[tester]
command = ["./test.sh"]
[compare]
"greeting.txt" = "stdout"
)";

std::string error_of(std::string text) {
  const auto spec = parse_spec(text);
  return spec ? std::string() : spec.error().message;
}

std::string with(const std::string& before, const std::string& after) {
  std::string text = smallest;
  return text.replace(text.find(before), before.size(), after);
}

TEST(WorkflowSpec, TheSmallestOneHasTheDefaults) {
  const auto spec = parse_spec(smallest);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->task, "Greet");
  EXPECT_EQ(spec->coder.command, std::vector<std::string>{"./code.sh"});
  EXPECT_FALSE(spec->network);
  EXPECT_EQ(spec->isolation, "full");
  EXPECT_EQ(spec->coder.limits.seconds, 600);
  ASSERT_EQ(spec->compare.size(), 1U);
  EXPECT_EQ(spec->compare[0].golden, "greeting.txt");
  EXPECT_EQ(spec->compare[0].output, standard_output);
}

TEST(WorkflowSpec, EveryMemberIsRead) {
  const auto spec = parse_spec(with("[coder]\n",
                                    "[coder]\nreads = [\"lib\"]\nnetwork = true\nseconds = 1\noutput_bytes = 2\n"
                                    "disk_bytes = 3\nmemory_bytes = 4\nstart = \"src\"\n"));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_TRUE(spec->network);
  EXPECT_EQ(spec->start, "src");
  EXPECT_EQ(spec->coder.reads, std::vector<std::string>{"lib"});
  EXPECT_EQ(spec->coder.limits.seconds + spec->coder.limits.output_bytes, 3);
  EXPECT_EQ(spec->coder.limits.disk_bytes + spec->coder.limits.memory_bytes, 7);
}

TEST(WorkflowSpec, AGivenTaskReplacesThatOfTheFile) {
  EXPECT_EQ(parse_spec(smallest, "Other")->task, "Other");
  EXPECT_EQ(parse_spec(with("task = \"Greet\"\n", ""), "Other")->task, "Other");
}

TEST(WorkflowSpec, AnUnknownMemberIsNamedWithItsLineAndTheNearestName) {
  EXPECT_NE(error_of(with("[coder]\n", "[coder]\nsecnods = 1\n"))
                .find("line 5: coder.secnods: unknown member. Did you mean \"seconds\"?"),
            std::string::npos);
  EXPECT_NE(error_of("tsk = \"x\"\n" + smallest).find("line 1: tsk: unknown member. Did you mean \"task\"?"),
            std::string::npos);
}

TEST(WorkflowSpec, OnlyTheCoderMayUseTheNetwork) {
  EXPECT_NE(error_of(with("[tester]\n", "[tester]\nnetwork = true\n")).find("tester.network: unknown member"),
            std::string::npos);
}

TEST(WorkflowSpec, MistypedMembersAreRefused) {
  for (const char* line : {"seconds = 0", "seconds = \"1\"", "seconds = 86401", "disk_bytes = -1", "network = 1",
                           "reads = \"lib\"", "reads = [1]", "start = \"\""})
    EXPECT_NE(error_of(with("[coder]\n", std::string("[coder]\n") + line + "\n")).find("line 5: coder."),
              std::string::npos)
        << line;
  EXPECT_NE(error_of("isolation = \"total\"\n" + smallest).find("\"none\", \"partial\", \"full\""), std::string::npos);
}

TEST(WorkflowSpec, PathsCannotLeaveTheirFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/../b", ".", ""}) {
    EXPECT_NE(error_of(with("greeting.txt", name)).find("compare"), std::string::npos) << name;
    EXPECT_NE(error_of(with("stdout", name)).find("compare"), std::string::npos) << name;
  }
}

TEST(WorkflowSpec, MissingPartsAreNamed) {
  EXPECT_NE(error_of(with("task = \"Greet\"\n", "")).find("task is missing"), std::string::npos);
  EXPECT_NE(error_of(with("[compare]\n\"greeting.txt\" = \"stdout\"\n", "")).find("[compare] is missing"),
            std::string::npos);
  EXPECT_NE(error_of(with("[tester]\ncommand = [\"./test.sh\"]\n", "")).find("[tester] is missing"), std::string::npos);
  EXPECT_NE(error_of(with("command = [\"./code.sh\"]\n", "")).find("coder.command"), std::string::npos);
}

TEST(WorkflowSpec, TheLargestNumberOfPairsIsAccepted) {
  std::string text = smallest;
  for (std::size_t i = 1; i < pairs_max; ++i) text += "\"f" + std::to_string(i) + "\" = \"stdout\"\n";
  EXPECT_EQ(error_of(text), "");
  EXPECT_NE(error_of(text + "last = \"stdout\"\n").find("1 to 64 pairs"), std::string::npos);
}

TEST(WorkflowSpec, GoldenVariablesAreNeverPassedOn) {
  for (const char* name : {"GOLDEN", "GOLDEN_DIR", "MUNIMENT_DATA", "LD_PRELOAD"}) {
    EXPECT_TRUE(is_withheld(name));
    EXPECT_NE(error_of("environment = [\"" + std::string(name) + "\"]\n" + smallest).find("never passed on"),
              std::string::npos);
  }
  EXPECT_EQ(error_of("environment = [\"ANTHROPIC_API_KEY\"]\n" + smallest), "");
}

TEST(WorkflowSpec, DamagedTextIsRefusedWithItsLine) {
  EXPECT_NE(error_of(smallest + "= 1").find("line 10"), std::string::npos);
}

}  // namespace
}  // namespace muniment::evidence::workflow
