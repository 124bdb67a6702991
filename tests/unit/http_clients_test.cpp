// Tests of the HTTP server with slow, silent and disconnecting clients.
#include <string>

#include "unit/http_server_fixture.hpp"

namespace muniment::http {
namespace {

using test::http_get;
using test::http_post;
using test::HttpClient;

TEST_F(HttpServer, ARefusedBodyIsReadForTheIdleTimeHoweverFastItComes) {
  Options options;
  options.idle = std::chrono::seconds(1);
  options.refuse = [](const Request&) -> std::optional<Answer> { return Answer{401, {}, "no token"}; };
  serve(options);
  HttpClient client = connect();
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 67108864\r\n\r\n");
  const std::string second(4'096, 'x');  // well above the minimum rate
  std::uint64_t next_ms = 0;
  std::size_t sent = 0;
  loop_.until([&] {
    if (uv_now(loop_.get()) >= next_ms) {
      client.send_now(second);
      sent += second.size();
      next_ms = uv_now(loop_.get()) + 100;
    }
    return client.closed() || sent > (4U << 20);  // the rate permits a minute for each 64 KiB
  });
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServer, AClientThatSendsByteByByteIsClosedAndBlocksNobody) {
  Options options;
  options.idle = std::chrono::seconds(1);
  serve(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
  HttpClient slow_head = connect(), slow_body = connect(), other = connect();
  slow_head.send("GET / HTTP/1.1\r\nX: ");
  slow_body.send(head);
  int answered = 0;
  std::uint64_t next_ms = 0;
  loop_.until([&] {
    if (uv_now(loop_.get()) >= next_ms) {
      slow_head.send_now("x");
      slow_body.send_now("x");
      next_ms = uv_now(loop_.get()) + 50;
    }
    other.send(http_post("/", "quick"));
    answered += other.read_reply().second == "quick" ? 1 : 0;
    return slow_head.closed() && slow_body.closed();
  });
  EXPECT_GT(answered, 0);
  loop_.until([&] { return server_->connections() == 1U; });  // the other client's connection
}

TEST_F(HttpServer, ASilentClientIsClosedButNotOneThatWaits) {
  Options options;
  options.idle = std::chrono::seconds(1);
  keep(options);
  HttpClient waiting = connect(), silent = connect(), silent_after_a_reply = connect();
  waiting.send(http_get("/"));
  const ExchangePtr exchange = next_kept();
  silent_after_a_reply.send(http_get("/"));
  next_kept()->reply(200, {}, "");
  silent_after_a_reply.read_reply();
  silent.read_to_end();
  silent_after_a_reply.read_to_end();
  HttpClient later = connect();
  later.read_to_end();  // twice the permitted idle time
  exchange->reply(200, {}, "at last");
  EXPECT_EQ(waiting.read_reply().second, "at last");
  EXPECT_EQ(closed_, 0);
}

TEST_F(HttpServer, AClientThatDoesNotReadItsReplyIsClosed) {
  Options options;
  options.idle = std::chrono::seconds(1);
  keep(options);
  HttpClient client(loop_, server_->port(), 4'096);
  client.send(http_get("/"));
  const ExchangePtr exchange = next_kept();
  exchange->reply(200, {}, std::string(32 << 20, 'x'));
  loop_.until([&] { return closed_ == 1; });
  loop_.until([&] { return server_->connections() == 0; });
}

TEST_F(HttpServer, TheHandlerHearsThatItsClientLeft) {
  keep();
  for (const bool half : {false, true}) {
    HttpClient client = connect();
    client.send(http_get("/"));
    const ExchangePtr exchange = next_kept();
    EXPECT_EQ(closed_, 0);
    half ? client.half_close() : client.close();
    loop_.until([&] { return closed_ == 1; });
    exchange->reply(200, {}, "too late");
    loop_.until([&] { return server_->connections() == 0; });
    EXPECT_EQ(std::exchange(closed_, 0), 1);
  }
}

TEST_F(HttpServer, AClientThatEndsItsDirectionGetsTheReplyThatIsOnItsWay) {
  keep();
  HttpClient client(loop_, server_->port(), 4'096);
  client.send(http_get("/"));
  next_kept()->reply(200, {}, std::string(8 << 20, 'x'));
  client.read_to("\r\n\r\n");
  client.half_close();
  EXPECT_EQ(client.read_to_end().size(), 8U << 20);
  loop_.until([&] { return server_->connections() == 0; });
  EXPECT_EQ(closed_, 0);
}

TEST_F(HttpServer, AClientThatLeavesBeforeItsRequestIsWholeReachesNoHandler) {
  keep();
  HttpClient client = connect();
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345");
  loop_.until([&] { return server_->connections() == 1; });
  client.close();
  loop_.until([&] { return server_->connections() == 0; });
  EXPECT_TRUE(kept_.empty());
}

}  // namespace
}  // namespace muniment::http
