// Tests of the answer to one HTTP request of MCP on a real connection: its form, and its end by either side.
#include "daemon/mcp/http_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "http/server.hpp"
#include "support/http_fixture.hpp"

namespace muniment::daemon {
namespace {

using test::HttpClient;

class HttpStreams : public testing::Test {
 protected:
  // Begins a request that a stream answers.
  HttpClient begin(std::size_t unread_bytes_max = 1'000) {
    http::Options options;
    options.unread_bytes_max = unread_bytes_max;
    auto started = http::Server::listen(loop_.get(), options, [this](std::shared_ptr<http::Exchange> exchange) {
      exchange_ = exchange;
      stream_ = std::make_unique<HttpStream>(std::move(exchange), std::vector<http::Header>{{"X-Session", "1"}}, false);
      stream_->on_closed = [this] { ++closed_; };
    });
    server_ = *std::move(started);
    HttpClient client(loop_, server_->port(), 4'096);
    client.send(test::http_get("/"));
    loop_.until([this] { return stream_ != nullptr; });
    return client;
  }

  test::HttpLoop loop_;
  std::unique_ptr<http::Server> server_;
  std::shared_ptr<http::Exchange> exchange_;
  std::unique_ptr<HttpStream> stream_;
  int closed_ = 0;
};

TEST_F(HttpStreams, TheFirstMessageIsAPlainAnswerIfItIsTheLast) {
  HttpClient client = begin();
  stream_->send({.text = "{}", .last = true});
  const auto [head, body] = client.read_reply();
  EXPECT_NE(head.find("Content-Type: application/json\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("X-Session: 1\r\n"), std::string::npos) << head;
  EXPECT_EQ(body, "{}");
  EXPECT_TRUE(stream_->closed());
}

TEST_F(HttpStreams, AnAnswerOfMebibytesFollowsAnEventThatIsUnread) {
  HttpClient client = begin();
  stream_->send({.text = "progress"});
  stream_->send({.text = std::string(3 << 20, 'x'), .last = true});
  client.read_to("\r\n\r\n");
  const std::string events = client.read_to("\r\n0\r\n\r\n");
  EXPECT_NE(events.find("data: progress\n\n"), std::string::npos);
  EXPECT_EQ(std::count(events.begin(), events.end(), 'x'), 3 << 20);
  EXPECT_EQ(closed_, 0);
}

TEST_F(HttpStreams, AStreamThatIsGoneIsNotToldThatItsClientWasTooSlow) {
  const HttpClient client = begin();
  stream_->send({.text = std::string(8 << 20, 'x')});
  loop_.settle();
  stream_->send({.text = "one more", .last = true});
  stream_.reset();
  EXPECT_FALSE(exchange_->on_closed);
  loop_.until([this] { return server_->connections() == 0; });
  EXPECT_EQ(closed_, 0);
}

TEST_F(HttpStreams, AStreamIsToldOnceThatItsClientLeft) {
  HttpClient client = begin();
  stream_->send({.text = "progress"});
  client.close();
  loop_.until([this] { return closed_ > 0; });
  stream_->send({.text = "too late", .last = true});
  loop_.until([this] { return server_->connections() == 0; });
  EXPECT_EQ(closed_, 1);
  EXPECT_TRUE(stream_->closed());
}

}  // namespace
}  // namespace muniment::daemon
