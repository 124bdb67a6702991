// Tests of hooks: their input, the validation of their answers, and all kinds of misbehaving programs.
#include <gtest/gtest.h>

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "retrieval/hooks/hook_messages.hpp"
#include "retrieval/hooks/hook_process.hpp"
#include "retrieval/hooks/hooks.hpp"
#include "support/canned_server.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::retrieval {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;
using Scores = std::vector<std::optional<double>>;

const Deadline no_deadline = Deadline::max();

HookCommand shell(const std::string& script, std::chrono::milliseconds limit = 20s) {
  return {"test hook", {"/bin/sh", "-c", script}, limit};
}

std::string answer_of(const HookCommand& command, std::string_view input = "{}") {
  const auto answer = run_hook(command, input, no_deadline);
  return answer ? *answer : "failed: " + answer.error().message;
}

std::chrono::milliseconds time_of(const HookCommand& command, std::string* answer) {
  const auto begin = std::chrono::steady_clock::now();
  *answer = answer_of(command);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

TEST(HookProcess, ItsAnswerIsWhatItWrites) {
  EXPECT_EQ(answer_of(shell("cat"), R"({"query":"ports"})"), R"({"query":"ports"})");
  const std::string large(limits::hook_answer_bytes_max, 'x');
  EXPECT_EQ(answer_of(shell("cat"), large), large);
  EXPECT_EQ(answer_of(shell("echo unread"), large), "unread\n");
}

TEST(HookProcess, ItInheritsNothing) {
  ::setenv("MUNIMENT_SECRET_OF_A_TEST", "x", 1);
  const Fd open(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  const std::string seen = answer_of(shell(
      "env -u PWD -u OLDPWD -u SHLVL -u _ | cut -d= -f1 | sort | tr '\\n' ' '; pwd; ls /proc/self/fd | tr '\\n' ' '; ulimit -c"));
  EXPECT_EQ(seen, "HOME LANG PATH /\n0 1 2 3 0\n");  // 3 is the folder that ls reads
}

TEST(HookProcess, ArgumentsAreNoShellsWords) {
  EXPECT_EQ(answer_of({"echo", {"/bin/echo", "a b", "$HOME", "; false", "*"}, 10s}), "a b $HOME ; false *\n");
}

TEST(HookProcess, OneThatFailsSaysHow) {
  EXPECT_EQ(answer_of(shell("echo '{}'; exit 3")), "failed: exit status 3");
  EXPECT_EQ(answer_of(shell("kill -SEGV $$")), "failed: it was ended by signal 11");
  EXPECT_EQ(answer_of({"gone", {"/nowhere/at/all"}, 1s}),
            "failed: starting /nowhere/at/all: No such file or directory");
  EXPECT_EQ(answer_of({"no program", {"/etc/passwd"}, 1s}), "failed: starting /etc/passwd: Permission denied");
}

TEST(HookProcess, OneThatHangsIsOverAtItsTimeLimit) {
  std::string answer;
  EXPECT_LT(time_of(shell("echo '{}'; sleep 60", 200ms), &answer), 10s);
  EXPECT_EQ(answer, "failed: no answer within 200 ms");
  EXPECT_LT(time_of(shell("trap '' TERM INT HUP; exec >&- 2>&-; while :; do sleep 1; done", 200ms), &answer), 10s);
  EXPECT_EQ(answer, "failed: no answer within 200 ms");
  // The caller's deadline applies if it is earlier.
  const auto late = run_hook(shell("sleep 60", 60s), "{}", std::chrono::steady_clock::now() + 100ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::unavailable);
}

TEST(HookProcess, OneThatSaysTooMuchIsKilled) {
  std::string answer;
  EXPECT_LT(time_of(shell("yes | head -c 100000000; sleep 60", 50s), &answer), 20s);
  EXPECT_EQ(answer, "failed: an answer of more than 1,048,576 bytes");
  // Standard error is neither waited for nor kept.
  EXPECT_EQ(answer_of(shell("yes | head -c 100000000 >&2; echo fine")), "fine\n");
}

TEST(HookProcess, WhatItLeavesRunningIsKilled) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/pid";
  std::string answer;
  // The grandchild keeps the pipes open, so that they never reach their end.
  EXPECT_LT(time_of(shell("sleep 300 & echo $! > " + file + "; echo fine"), &answer), 15s);
  EXPECT_EQ(answer, "fine\n");
  pid_t left = 0;
  std::ifstream(file) >> left;
  ASSERT_GT(left, 0);
  const auto end = std::chrono::steady_clock::now() + 10s;
  const auto running = [left] {
    std::string state;
    std::ifstream status("/proc/" + std::to_string(left) + "/stat");
    status >> state >> state >> state;
    return !state.empty() && state != "Z";
  };
  while (running() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(running());
}

ExpansionRequest request_of(std::string_view query) {
  ExpansionRequest request;
  request.query = query;
  request.max_expansions = 2;
  return request;
}

std::string problem_of(std::string_view json) {
  const auto answer = expansion_answer_of(json, request_of("ports"));
  return answer ? "none" : answer.error().message;
}

TEST(ExpansionMessages, TheRequestIsThatOfTheProtocol) {
  ExpansionRequest request = request_of("which \"port\"");
  EXPECT_EQ(expansion_request_json(request),
            R"({"query":"which \"port\"","max_expansions":2,"scope":null,"temporal":null})");
  request.scope = "ev://notes/";
  request.before = "2026-01-01T00:00:00.000000Z";
  request.as_of = 17;
  EXPECT_EQ(
      expansion_request_json(request),
      R"({"query":"which \"port\"","max_expansions":2,"scope":"ev://notes/","temporal":{"before":"2026-01-01T00:00:00.000000Z","asof":17}})");
}

TEST(ExpansionMessages, WhatSaysNothingNewIsLeftOut) {
  const auto good = expansion_answer_of(R"({"lex":[" proxy ","proxy"],"vec":["ports","  "],"warnings":["slow"],"x":1})",
                                        request_of("ports"));
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->lexical, Strings{"proxy"});
  EXPECT_EQ(good->vector, Strings{});
  EXPECT_EQ(good->warnings, Strings{"slow"});
  ASSERT_TRUE(expansion_answer_of("{}", request_of("ports")));
  ASSERT_TRUE(expansion_answer_of(R"({"lex":null})", request_of("ports")));
}

TEST(ExpansionMessages, WhatIsWrongIsRefusedAsAWhole) {
  EXPECT_NE(problem_of(""), "none");
  EXPECT_NE(problem_of("Traceback (most recent call last):"), "none");
  EXPECT_NE(problem_of("{\"lex\":[\"\xff\xfe\"]}"), "none");
  EXPECT_NE(problem_of(std::string(100, '[') + std::string(100, ']')), "none");
  EXPECT_NE(problem_of(R"({"lex":[],"lex":[]})"), "none");
  EXPECT_EQ(problem_of("[]"), "its answer: it is not a JSON object");
  EXPECT_EQ(problem_of(R"({"lex":"proxy"})"), "its answer: lex is not an array");
  EXPECT_EQ(problem_of(R"({"vec":[["proxy"]]})"), "its answer: vec contains an item that is not a string");
  EXPECT_EQ(problem_of(R"({"lex":["a","b","c"]})"), "its answer: lex has 3 texts, limit 2");
  EXPECT_EQ(problem_of("{\"lex\":[\"" + std::string(limits::hook_expansion_bytes_max, 'x') + "\"]}"), "none");
  EXPECT_EQ(problem_of("{\"lex\":[\"" + std::string(limits::hook_expansion_bytes_max + 1, 'x') + "\"]}"),
            "its answer: a text of lex has 2001 bytes, limit 2000");
}

TEST(ExpansionMessages, WarningsAreFewAndShort) {
  std::string many = R"({"warnings":[)";
  for (int i = 0; i < 50; ++i) many += (i > 0 ? "," : "") + ("\"" + std::string(1'000, 'w') + "\"");
  const auto answer = expansion_answer_of(many + "]}", request_of("ports"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->warnings.size(), limits::hook_warnings_max);
  for (const std::string& warning : answer->warnings) EXPECT_LE(warning.size(), limits::hook_warning_bytes_max);
}

const std::vector<RerankCandidate>& candidates() {
  static const std::vector<RerankCandidate> all = {{"7", "ev://n/a#p0?v=1", "one"}, {"9", "ev://n/b#p0?v=1", "two"}};
  return all;
}

std::string rerank_problem(std::string_view json) {
  const auto answer = rerank_answer_of(json, candidates());
  return answer ? "none" : answer.error().message;
}

TEST(RerankMessages, TheRequestIsThatOfTheProtocol) {
  EXPECT_EQ(
      rerank_request_json("q", candidates()),
      R"({"query":"q","candidates":[{"key":"7","uri":"ev://n/a#p0?v=1","snippet":"one"},{"key":"9","uri":"ev://n/b#p0?v=1","snippet":"two"}]})");
}

TEST(RerankMessages, ScoresAndSnippetsAreOfCandidates) {
  const auto answer = rerank_answer_of(R"({"scores":{"9":0.42},"snippets":{"7":"on"},"warnings":[]})", candidates());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->scores, (Scores{std::nullopt, .42}));
  EXPECT_EQ(answer->snippets.at(0), "on");
}

TEST(RerankMessages, WhatIsWrongIsRefusedAsAWhole) {
  EXPECT_EQ(rerank_problem("{}"), "its answer: scores is not an object");
  EXPECT_EQ(rerank_problem(R"({"scores":{}})"), "its answer: it scores no candidate");
  EXPECT_EQ(rerank_problem(R"({"scores":{"7":1,"8":0}})"), "its answer: there is no candidate \"8\"");
  EXPECT_EQ(rerank_problem(R"({"scores":{"7":"1"}})"), "its answer: the score of \"7\" is not a number");
  EXPECT_EQ(rerank_problem(R"({"scores":{"7":null}})"), "its answer: the score of \"7\" is not a number");
  EXPECT_EQ(rerank_problem(R"({"scores":{"7":1},"snippets":{"8":""}})"), "its answer: there is no candidate \"8\"");
  EXPECT_EQ(rerank_problem(R"({"scores":{"7":1},"snippets":{"7":3}})"),
            "its answer: the snippet of \"7\" is not a string");
  for (const char* number : {"NaN", "Infinity", "1e999", "0x1"})
    EXPECT_NE(rerank_problem(std::string(R"({"scores":{"7":)") + number + "}}"), "none") << number;
}

TEST(RerankMessages, ScoresComeIntoTheUnitRangeInTheirOrder) {
  Scores inside = {.2, std::nullopt, 1, 0};
  into_unit_range(inside);
  EXPECT_EQ(inside, (Scores{.2, std::nullopt, 1, 0}));
  Scores logits = {-3, 8, std::nullopt, .5, -1e300, 1e300};
  into_unit_range(logits);
  EXPECT_NEAR(*logits[3], 1 / (1 + std::exp(-.5)), 1e-12);
  EXPECT_FALSE(logits[2]);
  EXPECT_LE(0, *logits[4]);
  EXPECT_LT(*logits[4], *logits[0]);
  EXPECT_LT(*logits[0], *logits[3]);
  EXPECT_LT(*logits[3], *logits[1]);
  EXPECT_LE(*logits[1], *logits[5]);
  EXPECT_LE(*logits[5], 1);
}

HookOptions with_hooks(const std::string& expansion, const std::string& rerank) {
  HookOptions options;
  options.expansion = {"/bin/sh", "-c", expansion};
  options.rerank = {"/bin/sh", "-c", rerank};
  options.hook_ms = 20'000;
  options.rerank_ms = 2'000;
  return options;
}

TEST(Hooks, WhatFailsNamesTheHook) {
  const Hooks hooks(with_hooks("exit 1", "echo nonsense"));
  const auto expanded = hooks.expand(request_of("ports"), no_deadline);
  ASSERT_FALSE(expanded);
  EXPECT_EQ(expanded.error().message, "expansion hook: exit status 1");
  const auto reranked = hooks.rerank("ports", candidates(), no_deadline);
  ASSERT_FALSE(reranked);
  EXPECT_EQ(reranked.error().message.substr(0, 25), "rerank hook: its answer: ");
}

TEST(Hooks, OnlySoManyRunAtOnce) {
  const test::TemporaryFolder folder;
  const Hooks hooks(with_hooks(
      "touch " + folder.path() + "/$$; until [ -e " + folder.path() + "/go ]; do sleep 0.02; done; echo '{}'", ""));
  std::vector<std::thread> asking;
  std::atomic<int> good = 0;
  for (std::size_t i = 0; i < limits::hooks_at_once_max; ++i) {
    asking.emplace_back([&] { good += hooks.expand(request_of("ports"), no_deadline) ? 1 : 0; });
  }
  const auto running = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  while (running() < static_cast<std::ptrdiff_t>(limits::hooks_at_once_max)) std::this_thread::sleep_for(5ms);
  const auto refused = hooks.expand(request_of("ports"), no_deadline);
  std::ofstream(folder.path() + "/go").put('x');
  for (std::thread& thread : asking) thread.join();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "expansion hook: 4 are already running");
  EXPECT_EQ(good, 4);
  EXPECT_TRUE(hooks.expand(request_of("ports"), no_deadline));
}

TEST(Hooks, AServerScoresLikewise) {
  const test::CannedServer server([](const test::SeenRequest&, int socket) {
    test::CannedServer::send_all(socket, test::http_answer(R"([{"index":1,"score":3.5},{"index":0,"score":-2}])"));
  });
  HookOptions options;
  options.rerank_url = server.url();
  options.rerank_ms = 2'000;
  const auto answer = Hooks(options).ask_server("ports", candidates());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_NEAR(*answer->scores[0], 1 / (1 + std::exp(2.0)), 1e-12);
  EXPECT_NEAR(*answer->scores[1], 1 / (1 + std::exp(-3.5)), 1e-12);
  options.rerank_key_file = "/nowhere/key";
  const auto keyless = Hooks(options).ask_server("ports", candidates());
  ASSERT_FALSE(keyless);
  EXPECT_EQ(keyless.error().message.substr(0, 15), "rerank server: ");
}

}  // namespace
}  // namespace muniment::retrieval
