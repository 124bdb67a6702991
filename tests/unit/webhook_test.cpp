// Tests of the messages of webhooks: signatures, secrets, types and pauses.
#include "webhook/message.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/limits.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::webhook {
namespace {

// Example of Standard Webhooks' reference libraries.
constexpr std::string_view example_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

TEST(Webhook, TheSignatureIsThatOfTheReferenceLibraries) {
  for (const std::string_view text : {example_secret, example_secret.substr(6)}) {
    const auto secret = parse_secret(text);
    ASSERT_TRUE(secret.ok());
    EXPECT_EQ(signature(*secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
              "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  }
}

TEST(Webhook, ASecretHas24To64BytesInBase64) {
  EXPECT_FALSE(parse_secret("").ok());
  EXPECT_FALSE(parse_secret("whsec_").ok());
  EXPECT_FALSE(parse_secret("not base64!").ok());
  EXPECT_FALSE(parse_secret(std::string(28, 'A')).ok());  // 21 bytes
  EXPECT_TRUE(parse_secret(std::string(32, 'A')).ok());   // 24 bytes
  EXPECT_TRUE(parse_secret(std::string(84, 'A') + "AA==").ok());
  EXPECT_FALSE(parse_secret(std::string(88, 'A')).ok());  // 66 bytes
}

TEST(Webhook, TheMessageHasNoBodyOfTheEvent) {
  events::Event event;
  event.seq = 41;
  event.run_id = "r1";
  event.run_seq = 7;
  event.type = "evidence.recorded";
  event.actor = "uid:0";
  event.recorded_at = Time{1'000'000};
  event.step_id = "build";
  event.body = R"({"summary":"private"})";
  const std::string body = message_body(event, Uuid{});
  EXPECT_EQ(
      body,
      R"({"type":"evidence.recorded","timestamp":"1970-01-01T00:00:01.000000Z","data":{)"
      R"("log_id":"00000000-0000-0000-0000-000000000000","seq":41,"run_id":"r1","run_seq":7,)"
      R"("event_id":"00000000-0000-0000-0000-000000000000","step_id":"build","actor":"uid:0","origin":"reported",)"
      R"("body_hash":")" +
          std::string(64, '0') + R"("}})");
  EXPECT_EQ(message_id("ci", event), "ci_00000000-0000-0000-0000-000000000000");
}

TEST(Webhook, ATypeMatchesExactlyOrByItsPrefix) {
  EXPECT_TRUE(matches({"task.*"}, "task.completed"));
  EXPECT_TRUE(matches({"run.ended", "*"}, "x.me.noted"));
  EXPECT_FALSE(matches({"task.completed"}, "task.completed2"));
  EXPECT_FALSE(matches({"task.*"}, "tasks"));
}

TEST(Webhook, ThePauseDoublesUpToItsLimit) {
  EXPECT_EQ(retry_pause(1, 0).count(), limits::webhook_retry_ms_min);
  EXPECT_EQ(retry_pause(2, 0).count(), 2 * limits::webhook_retry_ms_min);
  EXPECT_EQ(retry_pause(1'000'000, 0).count(), limits::webhook_retry_ms_max);
  for (std::uint32_t random : {1U, 12'345U, 0xFFFFFFFFU}) {
    EXPECT_GE(retry_pause(3, random).count(), 2 * limits::webhook_retry_ms_min);
    EXPECT_LE(retry_pause(3, random).count(), 4 * limits::webhook_retry_ms_min);
  }
}

class WebhookSettings : public testing::Test {
 protected:
  std::string write(std::string_view text, mode_t mode = 0600) {
    const std::string path = folder_.path() + "/secret";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static std::string said(const Result<std::vector<Webhook>>& read) { return read ? "" : read.error().message; }

  test::TemporaryFolder folder_;
};

TEST_F(WebhookSettings, TheSecretIsReadFromAFileThatOnlyItsOwnerReads) {
  const std::string path = write(std::string(example_secret) + "\n");
  const std::string setting = R"({"ci":{"url":"http://127.0.0.1:1/x","secret_file":")" + path + R"("}})";
  const auto read = read_webhooks(setting);
  ASSERT_TRUE(read.ok()) << said(read);
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().secret.size(), 24U);
  EXPECT_TRUE(matches(read->front().setting.types, "evidence.recorded"));
  EXPECT_FALSE(matches(read->front().setting.types, "message.added"));
  for (const mode_t mode : {0640U, 0604U, 0620U}) {
    write(example_secret, mode);
    EXPECT_NE(said(read_webhooks(setting)).find("chmod 600 " + path), std::string::npos)
        << said(read_webhooks(setting));
  }
  write("whsec_short", 0600);
  EXPECT_NE(said(read_webhooks(setting)).find("openssl rand"), std::string::npos) << said(read_webhooks(setting));
  EXPECT_EQ(said(read_webhooks(setting)).find("whsec_short"), std::string::npos);
}

TEST_F(WebhookSettings, AnUnknownTypeIsRefused) {
  const std::string path = write(example_secret);
  const auto with = [&](const std::string& type) {
    return said(
        read_webhooks(R"({"ci":{"url":"http://h","secret_file":")" + path + R"(","types":[")" + type + R"("]}})"));
  };
  for (const char* type : {"*", "task.*", "task.completed", "x.*", "x.me.noted", "run"}) {
    const bool known = std::string_view(type) != "run";
    EXPECT_EQ(with(type).empty(), known) << with(type);
  }
  EXPECT_NE(with("task.complete").find("Did you mean \"task.completed\"?"), std::string::npos) << with("task.complete");
  EXPECT_NE(with("tasks.*").find("no event has the type"), std::string::npos);
}

}  // namespace
}  // namespace muniment::webhook
