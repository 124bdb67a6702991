// Tests of answers that wait for slow clients: memory use and time limits.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "http/server.hpp"
#include "support/http_fixture.hpp"

namespace muniment::http {
namespace {

using test::http_get;
using test::HttpClient;

class HttpAnswers : public testing::Test {
 protected:
  void serve(Options options = {}) {
    auto started = Server::listen(loop_.get(), std::move(options), [this](std::shared_ptr<Exchange> exchange) {
      exchange->on_closed = [this] { ++closed_; };
      exchange_ = std::move(exchange);
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = *std::move(started);
  }
  // Returns a client that reads only when the test does, and its request.
  std::pair<HttpClient, std::shared_ptr<Exchange>> ask() {
    HttpClient client(loop_, server_->port(), 4'096);
    client.send(http_get("/"));
    loop_.until([this] { return exchange_ != nullptr; });
    return {std::move(client), std::exchange(exchange_, nullptr)};
  }

  test::HttpLoop loop_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<Exchange> exchange_;
  int closed_ = 0;
};

TEST_F(HttpAnswers, AllTogetherHaveALimitAndTheLargestIsClosed) {
  Options options;
  options.answers_bytes_max = 8 << 20;
  serve(options);
  auto [large, of_large] = ask();
  of_large->reply(200, {}, std::string(6 << 20, 'l'));
  auto [small, of_small] = ask();
  of_small->reply(200, {}, std::string(2 << 20, 's'));
  loop_.settle();
  EXPECT_EQ(closed_, 0);
  auto [other, of_other] = ask();
  of_other->reply(200, {}, "x");
  EXPECT_EQ(other.read_reply().second, "x");
  loop_.until([this] { return closed_ == 1; });
  EXPECT_LT(large.read_to_end().size(), 6U << 20);
  EXPECT_EQ(small.read_reply().second.size(), 2U << 20);
  EXPECT_EQ(closed_, 1);
}

TEST_F(HttpAnswers, EventsAreCountedUntilTheyAreRead) {
  Options options;
  options.answers_bytes_max = 8 << 20;
  serve(options);
  auto [client, stream] = ask();
  stream->begin_events(200, {});
  client.read_to("\r\n\r\n");
  const std::string event(3 << 20, 'e');
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(stream->send_event(event));
    client.read_to("e\n\n");
  }
  EXPECT_FALSE(stream->send_event(std::string(9 << 20, 'e')));
  loop_.until([this] { return closed_ == 1; });
}

TEST_F(HttpAnswers, TheServerIsAnsweringUntilTheyAreWritten) {
  serve();
  auto [client, exchange] = ask();
  EXPECT_FALSE(server_->answering());
  exchange->reply(200, {}, std::string(8 << 20, 'x'));
  loop_.settle();
  EXPECT_TRUE(server_->answering());
  EXPECT_EQ(client.read_reply().second.size(), 8U << 20);
  loop_.until([this] { return !server_->answering(); });
  auto [other, stream] = ask();
  stream->begin_events(200, {});
  stream->send_event("open");
  EXPECT_FALSE(server_->answering()) << "a stream goes on as long as it likes";
}

}  // namespace
}  // namespace muniment::http
