// Tests of the client against a minimal daemon: replies by id, notifications between them, raw bytes in both
// directions, and connections that are closed too early.
#include "base/text.hpp"
#include "client/connect/client.hpp"
#include "client/hints.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

namespace muniment::cli {
namespace {

// Accepts one connection and hands it to `serve`.
class Listener {
 public:
  explicit Listener(std::function<void(int)> serve) {
    char folder[] = "/tmp/muniment-client-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/s";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    thread_ = std::thread([this, serve] {
      const int connection = ::accept(socket_, nullptr, nullptr);
      serve(connection);
      ::close(connection);
    });
  }
  ~Listener() {
    thread_.join();
    ::close(socket_);
    std::filesystem::remove_all(folder_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
  int socket_ = -1;
  std::thread thread_;
};

std::string read_until(int connection, char end) {
  std::string line;
  char c = 0;
  while (::read(connection, &c, 1) == 1) {
    line.push_back(c);
    if (c == end) break;
  }
  return line;
}

void say(int connection, std::string_view text) {
  EXPECT_EQ(::send(connection, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

TEST(Client, AReplyIsFoundAmongNotifications) {
  Listener daemon([](int connection) {
    EXPECT_EQ(read_until(connection, '\n'),
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"from_seq\":0}}\n");
    say(connection, "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":{\"seq\":0}}}\n");
    say(connection, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"subscription\":\"s1\"}}\n");
    say(connection, "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":{\"seq\":1}}}\n");
  });
  auto client = Client::connect(daemon.path());
  ASSERT_TRUE(client.ok());
  auto reply = client->call("event.subscribe", "{\"from_seq\":0}");
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->result()["subscription"].string_or(""), "s1");
  for (std::int64_t seq : {0, 1}) {
    auto event = client->next_notification(std::chrono::seconds(5));
    ASSERT_TRUE(event.ok());
    EXPECT_EQ(event->params()["event"]["seq"].as_int(), seq);
  }
}

TEST(Client, AnErrorKeepsItsCodeAndWhatBelongsToIt) {
  Listener daemon([](int connection) {
    read_until(connection, '\n');
    say(connection,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32007,\"message\":\"SYSTEM_ERROR since\","
        "\"data\":{\"code\":\"run_halted\",\"run_id\":\"r1\",\"pointer\":\"artifact://r1/a\","
        "\"retry_after_ms\":20}}}\n");
  });
  auto client = Client::connect(daemon.path());
  const auto reply = client->call("event.append", "{}");
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::run_halted);
  EXPECT_EQ(reply.error().run_id, "r1");
  EXPECT_EQ(reply.error().pointer, "artifact://r1/a");
  EXPECT_EQ(reply.error().retry_after_ms, 20);
}

TEST(Client, RawBytesFollowTheirLineInBothDirections) {
  const std::string bytes("\n{raw}\0\n", 8);
  Listener daemon([&bytes](int connection) {
    read_until(connection, '\n');
    std::string got(bytes.size(), '\0');
    EXPECT_EQ(::recv(connection, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, bytes);
    say(connection, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"body_bytes\":8}}\n");
    say(connection, got.substr(0, 3));
    say(connection, got.substr(3));
  });
  auto client = Client::connect(daemon.path());
  const auto reply = client->call("artifact.put", "{\"body_bytes\":8}", bytes);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->raw, bytes);
}

TEST(Client, ARefusalThatEndsAnUploadIsHeard) {
  Listener daemon([](int connection) {
    read_until(connection, '\n');
    say(connection,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32005,\"message\":\"disk\","
        "\"data\":{\"code\":\"over_budget\"}}}\n");
    ::shutdown(connection, SHUT_WR);
    char drop[4096];
    while (::read(connection, drop, sizeof drop) > 0) continue;
  });
  auto client = Client::connect(daemon.path());
  const std::string bytes(4 << 20, 'x');
  const auto reply = client->call("artifact.put", "{\"body_bytes\":4194304}", bytes);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::over_budget);
}

TEST(Client, AConnectionThatEndsIsUnavailableAndNotAnAnswer) {
  Listener daemon([](int connection) {
    read_until(connection, '\n');
    say(connection, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"half\"");
  });
  auto client = Client::connect(daemon.path());
  const auto reply = client->call("run.get", "{}");
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::unavailable);
}

TEST(Client, SilenceIsADeadlineAndNobodyIsUnavailable) {
  Listener daemon([](int connection) {
    read_until(connection, '\n');
    read_until(connection, '\n');
  });
  {
    auto client = Client::connect(daemon.path());
    client->set_patience(std::chrono::milliseconds(20));
    EXPECT_EQ(client->call("run.get", "{}").error().code, Errc::deadline_exceeded);
    EXPECT_EQ(client->daemon_pid(), ::getpid());
  }
  const auto nobody = Client::connect("/tmp/muniment-no-such-socket");
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, Errc::unavailable);
}

TEST(Hints, AMethodThatIsAdvisedIsTheCommandThatDoesTheSame) {
  EXPECT_EQ(with_commands("not_found: no run r. Start it: run.start"),
            "not_found: no run r. See: muniment run list, or start it: muniment run start RUN --agent AGENT");
  EXPECT_EQ(with_commands("run r has ended. Start it again with run.start and reopen: true"),
            "run r has ended. Start it again with muniment run start RUN --agent AGENT --reopen");
  EXPECT_EQ(
      with_commands(
          "it can be read, but not appended to. Start a run of another name with run.start, and name this one in `continues`"),
      "it can be read, but not appended to. Start a run of another name with muniment run start NAME --agent AGENT --continues THIS");
  EXPECT_EQ(with_commands("Shorten it, or store the text with artifact.put and name the artifact."),
            "Shorten it, or store the text with muniment artifact put and name the artifact.");
  EXPECT_EQ(with_commands("cursor: expected a cursor that artifact.list returned."),
            "cursor: expected a cursor that muniment artifact list returned.");
  EXPECT_EQ(with_commands("no document comes from the source s. List the sources: document.list"),
            "no document comes from the source s. List the sources: muniment document list");
  EXPECT_EQ(with_commands("no event 2. See: event.list with a run_id"),
            "no event 2. See: muniment event list --run RUN");
  EXPECT_EQ(with_commands("only root and the daemon's own user may read the whole log. Give a run_id."),
            "only root and the daemon's own user may read the whole log. Name one that is yours: --run RUN.");
}

TEST(Hints, WhatWasSentIsSaidAsItWas) {
  for (const std::string said :
       {"no run event.append", "artifact_id: expected a UUID, got \"run.list\"", "run run.start is open already",
        "run_id run.list is taken. Choose another name.", "no document artifact.put in the corpus run.list",
        "Start it: run.started", "See: event.list.x"}) {
    EXPECT_EQ(with_commands(said), said);
  }
  EXPECT_EQ(with_commands("no run run.start. Start it: run.start"),
            "no run run.start. See: muniment run list, or start it: muniment run start RUN --agent AGENT");
}

TEST(Advice, ACommandIsToldWhichInstanceItIsAbout) {
  const Advice advice("--data /srv/m", "--data /srv/m --database U");
  EXPECT_EQ(advice.with_place("muniment down && muniment up --continue-restored"),
            "muniment --data /srv/m down && muniment --data /srv/m --database U up --continue-restored");
  EXPECT_EQ(advice.with_place("no key (muniment audit key init)"), "no key (muniment --data /srv/m audit key init)");
  for (const std::string said :
       {"the system user muniment is missing", "muniment --data /x up", "muniment down --data /x",
        "/usr/bin/muniment up", "muniment: up", "muniment upon", "muniment"}) {
    EXPECT_EQ(advice.with_place(said), said);
  }
  EXPECT_EQ(advice.with_place("mv /x /y && muniment run list; muniment down --data /x"),
            "mv /x /y && muniment --data /srv/m run list; muniment down --data /x");
  EXPECT_EQ(Advice().with_place("muniment up"), "muniment up");
}

TEST(Advice, AWordIsQuotedAsAShellTakesIt) {
  EXPECT_EQ(shell_word("/srv/m-1.x"), "/srv/m-1.x");
  EXPECT_EQ(shell_word("it's here"), "'it'\\''s here'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace muniment::cli
