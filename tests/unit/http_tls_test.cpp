// Tests of TLS: a handshake with a generated certificate, and errors for unusable files. The clients are processes of
// the openssl command.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "http/server.hpp"
#include "support/http_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::http {
namespace {

using ExchangePtr = std::shared_ptr<Exchange>;

class HttpTls : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  void make_certificate(const std::string& name) const {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout " +
        file(name + ".key") + " -out " + file(name + ".crt") + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  // Returns the bytes that a client receives after it has sent `request`, until the server closes the connection.
  std::string ask(std::uint16_t port, const std::string& request, const std::string& arguments) {
    std::string answer;
    std::atomic<bool> done = false;
    std::thread client([&] {
      const std::string command = "printf '" + request + "' | openssl s_client -quiet -verify_return_error -CAfile " +
                                  file("a.crt") + " -servername localhost -verify_hostname localhost " + arguments +
                                  " -connect 127.0.0.1:" + std::to_string(port) + " 2>/dev/null";
      FILE* const pipe = ::popen(command.c_str(), "r");
      char buffer[4'096];
      while (pipe != nullptr) {
        const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe);
        if (got == 0) break;
        answer.append(buffer, got);
      }
      if (pipe != nullptr) ::pclose(pipe);
      done = true;
    });
    loop_.until([&] { return done.load(); });
    client.join();
    return answer;
  }

  test::TemporaryFolder folder_;
  test::HttpLoop loop_;
};

TEST_F(HttpTls, ServesRepliesAndEvents) {
  make_certificate("a");
  Options options;
  options.certificate_file = file("a.crt");
  options.key_file = file("a.key");
  auto server = Server::listen(loop_.get(), options, [](const ExchangePtr& exchange) {
    if (exchange->request().path == "/reply") return exchange->reply(200, {}, std::string(1 << 20, 'x'));
    exchange->begin_events(200, {});
    exchange->send_event("one");
    exchange->send_event("two");
  });
  ASSERT_TRUE(server.ok()) << server.error().message;
  const std::string rest = " HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n";
  for (const std::string version : {"-tls1_2", "-tls1_3"}) {
    const std::string reply = ask((*server)->port(), "GET /reply" + rest, version);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << version << reply.substr(0, 200);
    EXPECT_TRUE(reply.ends_with(std::string(1 << 20, 'x')));
    const std::string events = ask((*server)->port(), "GET /events" + rest, version);
    EXPECT_NE(events.find("data: one\n\ndata: two\n\n"), std::string::npos) << events;
  }
  EXPECT_EQ(ask((*server)->port(), "GET /reply" + rest, "-tls1_1 -cipher ALL:@SECLEVEL=0"), "");
}

TEST_F(HttpTls, AClientThatDoesNotSpeakTlsIsClosed) {
  make_certificate("a");
  Options options;
  options.certificate_file = file("a.crt");
  options.key_file = file("a.key");
  auto server = Server::listen(loop_.get(), options, [](const ExchangePtr&) {});
  ASSERT_TRUE(server.ok()) << server.error().message;
  test::HttpClient client(loop_, (*server)->port());
  client.send(test::http_get("/"));
  client.read_to_end();
  loop_.until([&] { return (*server)->connections() == 0; });
}

TEST_F(HttpTls, SaysWhatIsWrongWithTheFiles) {
  make_certificate("a");
  make_certificate("b");
  std::ofstream(file("text")) << "no certificate\n";
  const auto error_of = [this](const std::string& certificate, const std::string& key) {
    Options options;
    options.certificate_file = certificate;
    options.key_file = key;
    auto started = Server::listen(loop_.get(), options, [](const ExchangePtr&) {});
    return started.ok() ? Error(Errc::system_error, "it listens") : started.error();
  };
  EXPECT_EQ(error_of(file("a.crt"), "").code, Errc::invalid_argument);
  EXPECT_EQ(error_of("", file("a.key")).code, Errc::invalid_argument);
  EXPECT_NE(error_of(file("none"), file("a.key")).message.find("none"), std::string::npos);
  EXPECT_NE(error_of(file("a.crt"), file("none")).message.find("none"), std::string::npos);
  for (const auto& [certificate, key] :
       {std::pair{"a.crt", "b.key"}, {"text", "a.key"}, {"a.crt", "text"}, {"a.key", "a.crt"}}) {
    const Error error = error_of(file(certificate), file(key));
    EXPECT_EQ(error.code, Errc::invalid_argument) << certificate << " " << key;
    EXPECT_NE(error.message.find(certificate), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("PEM"), std::string::npos) << error.message;
  }
}

}  // namespace
}  // namespace muniment::http
