// Tests of the calls of cloud services without a server: the limits, the key, the sandbox of the child, and replies.
#include "bridge/cloud/provider.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "base/limits.hpp"
#include "bridge/cloud/call_gate.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::bridge {
namespace {

using namespace std::chrono_literals;

const Monotonic start = Monotonic() + 1000h;

TEST(CallGate, AdmitsAsManyCallsAsADayHas) {
  CallGate gate({.calls_day = 2, .bytes_day = 1'000'000, .calls_minute = 100});
  EXPECT_EQ(gate.admit("a", 10, start), "");
  EXPECT_EQ(gate.admit("a", 10, start + 1h), "");
  EXPECT_EQ(gate.admit("a", 10, start + 2h), "budget_calls");
  EXPECT_EQ(gate.admit("b", 10, start + 2h), "");  // each provider has its own budget
  EXPECT_EQ(gate.admit("a", 10, start + 24h - 1s), "budget_calls");
  EXPECT_EQ(gate.admit("a", 10, start + 24h), "");
}

TEST(CallGate, CountsTheBytesOfBothDirections) {
  CallGate gate({.calls_day = 100, .bytes_day = 100, .calls_minute = 100});
  EXPECT_EQ(gate.admit("a", 101, start), "budget_bytes");
  EXPECT_EQ(gate.admit("a", 50, start), "");
  gate.ended("a", true, 40, start);
  EXPECT_EQ(gate.admit("a", 11, start + 1h), "budget_bytes");
  EXPECT_EQ(gate.admit("a", 10, start + 1h), "");
}

TEST(CallGate, CountsTheCallsOfAnEarlierProcess) {
  CallGate gate({.calls_day = 2, .bytes_day = 100, .calls_minute = 100});
  gate.count("a", 60, start - 1h);
  gate.count("a", 30, start - 2h);
  EXPECT_EQ(gate.admit("a", 1, start), "budget_calls");
  EXPECT_EQ(gate.admit("a", 40, start + 22h), "");
}

TEST(CallGate, LimitsTheRate) {
  CallGate gate({.calls_day = 100, .bytes_day = 100, .calls_minute = 2});
  EXPECT_EQ(gate.admit("a", 1, start), "");
  EXPECT_EQ(gate.admit("a", 1, start), "");
  EXPECT_EQ(gate.admit("a", 1, start + 59s), "rate");
  EXPECT_EQ(gate.admit("a", 1, start + 60s), "");
}

TEST(CallGate, TheBreakerOpensAfterFailuresInARowAndTriesOneCall) {
  CallGate gate({.calls_day = 100, .bytes_day = 100, .calls_minute = 100});
  const auto pause = std::chrono::seconds(limits::cloud_breaker_seconds);
  for (int i = 0; i < limits::cloud_failures_max; ++i) {
    ASSERT_EQ(gate.admit("a", 1, start), "") << i;
    gate.ended("a", false, 0, start);
  }
  EXPECT_EQ(gate.admit("a", 1, start + pause - 1s), "breaker");
  EXPECT_EQ(gate.admit("b", 1, start), "");
  EXPECT_EQ(gate.admit("a", 1, start + pause), "");
  EXPECT_EQ(gate.admit("a", 1, start + pause), "breaker");  // while that call is in progress
  gate.ended("a", true, 0, start + pause);
  EXPECT_EQ(gate.admit("a", 1, start + pause), "");
}

class Key : public ::testing::Test {
 protected:
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(folder_.path() + "/.env") << text;
    ASSERT_EQ(::chmod((folder_.path() + "/.env").c_str(), mode), 0);
  }
  Result<ApiKey> read(const char* variable = nullptr) { return read_key(folder_.path(), variable); }
  test::TemporaryFolder folder_;
};

TEST_F(Key, TheEnvironmentPrecedesTheFile) {
  EXPECT_EQ(read().error().code, Errc::not_found);
  write("# keys\nOTHER=1\nexport OPENAI_API_KEY=\"sk-of-the-file\"\r\n");
  EXPECT_EQ(read()->text(), "sk-of-the-file");
  EXPECT_EQ(read("sk-of-the-environment")->text(), "sk-of-the-environment");
}

TEST_F(Key, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640U, 0604U, 0660U}) {
    write("OPENAI_API_KEY=sk-fake", mode);
    EXPECT_EQ(read().error().code, Errc::denied) << mode;
  }
}

TEST_F(Key, AKeyIsOneWordOfALimitedLength) {
  EXPECT_EQ(read("two words").error().code, Errc::invalid_argument);
  EXPECT_EQ(read("line\r\nX-Header: 1").error().code, Errc::invalid_argument);
  EXPECT_TRUE(read(std::string(limits::cloud_key_bytes_max, 'k').c_str()).ok());
  EXPECT_EQ(read(std::string(limits::cloud_key_bytes_max + 1, 'k').c_str()).error().code, Errc::invalid_argument);
  write("OPENAI_API_KEY=\n");
  EXPECT_EQ(read().error().code, Errc::not_found);
}

bool refused(long answer) { return answer < 0 && errno == EPERM; }

// Returns 0, or the number of the first operation that the sandbox permits.
int try_everything(int unconnected, int listening) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(9);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  if (!refused(::socket(AF_INET, SOCK_STREAM, 0))) return 1;
  if (!refused(::socket(AF_UNIX, SOCK_STREAM, 0))) return 2;
  if (!refused(::socket(AF_INET6, SOCK_DGRAM, 0))) return 3;
  int pair[2];
  if (!refused(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair))) return 4;
  if (::connect(unconnected, to, sizeof address) == 0 || errno != EINPROGRESS) return 5;
  if (::send(unconnected, "x", 1, MSG_NOSIGNAL) >= 0 || errno == EAGAIN) return 13;  // it was not connected
  if (!refused(::bind(unconnected, to, sizeof address))) return 6;
  if (!refused(::accept(listening, nullptr, nullptr))) return 7;
  if (!refused(::open("/etc/passwd", O_RDONLY))) return 8;
  if (!refused(::open("/tmp/muniment-cloud-child", O_WRONLY | O_CREAT, 0600))) return 9;
  if (!refused(::execl("/bin/true", "true", nullptr))) return 10;
  if (!refused(::fork())) return 11;
  if (!refused(::unlink("/tmp/none"))) return 12;
  return 0;
}

TEST(CloudChild, OpensNoSocketNoConnectionNoFileAndNoProcess) {
  const int unconnected = ::socket(AF_INET, SOCK_STREAM, 0);
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::listen(listening, 1), 0);
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(enter_sandbox(cloud_policy()) ? try_everything(unconnected, listening) : 100);
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(unconnected);
  ::close(listening);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "seccomp is not available here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CloudRequest, HasTheModelAndTheQuestionAlone) {
  EXPECT_EQ(request_body("m", "What is \"x\"?"),
            R"({"model":"m","messages":[{"role":"user","content":"What is \"x\"?"}],"stream":false,"max_tokens":512})");
  EXPECT_EQ(api_url("https://a.example"), "https://a.example/v1/chat/completions");
  EXPECT_EQ(api_url("https://a.example/"), "https://a.example/v1/chat/completions");
  EXPECT_EQ(api_url("https://a.example:8443/x"), "https://a.example:8443/x");
}

std::string reply_of(const std::string& text) {
  return R"({"choices":[{"message":{"role":"assistant","content":")" + text + R"("}}]})";
}

TEST(CloudReply, HasATextOfALimitedLength) {
  EXPECT_EQ(*text_of_reply(reply_of("An answer.")), "An answer.");
  EXPECT_TRUE(text_of_reply(reply_of(std::string(limits::cloud_text_bytes_max, 'x'))).ok());
  EXPECT_EQ(text_of_reply(reply_of(std::string(limits::cloud_text_bytes_max + 1, 'x'))).error().code, Errc::too_large);
  for (const char* const body : {"", "[", "{}", R"({"choices":[]})", R"({"choices":[{"message":{"content":7}}]})"})
    EXPECT_EQ(text_of_reply(body).error().code, Errc::corrupt) << body;
  EXPECT_EQ(text_of_reply(reply_of(" \\n\\t")).error().code, Errc::corrupt);
}

TEST(CloudReply, IsStoredWithoutPointersMarkersAndControlCharacters) {
  Sanitiser sanitiser(Scope::outbound);
  const SafeReply safe = safe_reply(
      "See ev://notes/a#p1?v=0123, EV://x and artifact://r/s/1. It is certain [1][cloud 2] [note] \x1b[31mred\x1b[0m "
      "https://example.org/page",
      sanitiser);
  EXPECT_EQ(safe.text,
            "See [pointer removed] [pointer removed] and [pointer removed] It is certain (1)(cloud 2) [note] "
            "\\x1b[31mred\\x1b[0m https://example.org/page");
  EXPECT_EQ(safe.redactions, 3);
}

TEST(CloudReply, HasNoMarksOfAnAnswer) {
  Sanitiser sanitiser(Scope::outbound);
  EXPECT_EQ(
      safe_reply("a [1, 2] b [ 3 ] c [cloud  4] d [unsupported] e [older than 1] f [a1] [] [,] [[5]]", sanitiser).text,
      "a (1, 2) b ( 3 ) c (cloud  4) d (unsupported) e (older than 1) f [a1] [] [,] [(5)]");
}

TEST(CloudReply, HasNoSecrets) {
  Sanitiser sanitiser(Scope::outbound);
  const SafeReply safe = safe_reply("Write to ada.lovelace@harbour-office.example.com for it.", sanitiser);
  EXPECT_EQ(safe.text.find("ada.lovelace"), std::string::npos) << safe.text;
  EXPECT_EQ(safe.redactions, 1);
}

}  // namespace
}  // namespace muniment::bridge
