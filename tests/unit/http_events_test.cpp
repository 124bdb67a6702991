// Tests of server-sent events: their format, clients that disconnect, clients that do not read, and the end of a
// stream.
#include <gtest/gtest.h>

#include <algorithm>

#include "http/server.hpp"
#include "support/http_fixture.hpp"

namespace muniment::http {
namespace {

using test::http_get;
using test::HttpClient;
using test::HttpLoop;
using ExchangePtr = std::shared_ptr<Exchange>;

class HttpEvents : public testing::Test {
 protected:
  void serve(Options options = {}) {
    auto started = Server::listen(loop_.get(), std::move(options), [this](ExchangePtr exchange) {
      exchange->on_closed = [this] { ++closed_; };
      stream_ = std::move(exchange);
      stream_->begin_events(200, {{"X-Stream", "1"}});
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = *std::move(started);
  }
  // Returns a client whose stream has begun.
  HttpClient open(int buffer_bytes = 0) {
    HttpClient client(loop_, server_->port(), buffer_bytes);
    client.send(http_get("/events"));
    head_ = client.read_to("\r\n\r\n");
    return client;
  }

  HttpLoop loop_;
  std::unique_ptr<Server> server_;
  ExchangePtr stream_;
  std::string head_;
  int closed_ = 0;
};

TEST_F(HttpEvents, ArriveOneByOne) {
  serve();
  HttpClient client = open();
  EXPECT_TRUE(head_.starts_with("HTTP/1.1 200 OK\r\n")) << head_;
  for (const char* header : {"Content-Type: text/event-stream\r\n", "Cache-Control: no-store\r\n",
                             "X-Accel-Buffering: no\r\n", "X-Stream: 1\r\n"}) {
    EXPECT_NE(head_.find(header), std::string::npos) << header;
  }
  for (int number = 0; number < 100; ++number) {
    ASSERT_TRUE(stream_->send_event("event " + std::to_string(number)));
    const std::string event = "data: event " + std::to_string(number) + "\n\n";
    EXPECT_TRUE(client.read_to("\n\n\r\n").find(event) != std::string::npos);  // each event is a separate chunk
    EXPECT_EQ(stream_->unread_bytes(), 0U);
  }
  stream_->send_comment();
  EXPECT_EQ(client.read_to("\r\n").substr(0, 1), "3");
  EXPECT_EQ(client.read_to("\n\n"), ":\n\n");
}

TEST_F(HttpEvents, ALineOfDataIsALineOfTheEventWhateverEndsIt) {
  serve();
  HttpClient client = open();
  stream_->send_event("a\nb\r\nc\rid: d\n");
  EXPECT_NE(client.read_to("\n\n").find("data: a\ndata: b\ndata: c\ndata: id: d\ndata: \n\n"), std::string::npos);
}

TEST_F(HttpEvents, AnEventLongerThanAConnectionsMemoryArrivesWhole) {
  serve();
  HttpClient client = open();
  const std::string data(900'000, 'x');
  ASSERT_TRUE(stream_->send_event(data));
  stream_->end_events();
  const std::string chunks = client.read_to("\r\n0\r\n\r\n");
  EXPECT_EQ(std::count(chunks.begin(), chunks.end(), 'x'), 900'000);
}

TEST_F(HttpEvents, ManyEventsThatAreSentAtOnceArriveInOrder) {
  serve();
  HttpClient client = open();
  std::string wanted;
  for (int number = 0; number < 5'000; ++number) {
    ASSERT_TRUE(stream_->send_event(std::to_string(number)));
    wanted += "data: " + std::to_string(number) + "\n\n";
  }
  stream_->end_events();
  std::string chunks = client.read_to("\r\n0\r\n\r\n"), events;
  for (std::string_view rest = chunks; !rest.empty();) {
    const std::size_t line = rest.find("\r\n");
    const std::size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
    events += rest.substr(line + 2, size);
    rest.remove_prefix(line + 2 + size + 2);
  }
  EXPECT_EQ(events, wanted);
}

TEST_F(HttpEvents, TheConnectionIsKeptWhenAStreamEnds) {
  serve();
  HttpClient client = open();
  stream_->send_event("last");
  stream_->end_events();
  EXPECT_FALSE(stream_->send_event("after the end"));
  client.read_to("\r\n0\r\n\r\n");
  client.send(http_get("/events"));
  EXPECT_TRUE(client.read_to("\r\n\r\n").starts_with("HTTP/1.1 200"));
  stream_.reset();  // releasing a stream ends it
  EXPECT_EQ(client.read_to("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_EQ(closed_, 0);
}

TEST_F(HttpEvents, TheHandlerHearsThatAClientOfASilentStreamLeft) {
  serve();
  HttpClient client = open();
  loop_.settle();
  client.close();
  loop_.until([&] { return closed_ == 1; });
  EXPECT_FALSE(stream_->send_event("nobody"));
  stream_->end_events();
  EXPECT_EQ(stream_->unread_bytes(), 0U);
  loop_.until([&] { return server_->connections() == 0; });
  EXPECT_EQ(closed_, 1);
}

TEST_F(HttpEvents, AClientThatDoesNotReadIsClosedAtTheLimit) {
  Options options;
  options.unread_bytes_max = 64 * 1024;
  serve(options);
  HttpClient slow = open(4'096);
  const ExchangePtr slow_stream = stream_;
  HttpClient other = open();
  const std::string data(1'000, 'x');
  std::size_t unread_max = 0;
  bool taken = true;
  loop_.until([&] {
    taken = slow_stream->send_event(data);
    EXPECT_EQ(closed_, 0);  // on_closed is not called within the call
    unread_max = std::max(unread_max, slow_stream->unread_bytes());
    return !taken;
  });
  EXPECT_GT(unread_max, 64U * 1024);
  EXPECT_LE(unread_max, 66U * 1024);
  EXPECT_FALSE(slow_stream->send_event("x"));
  loop_.until([&] { return closed_ == 1; });
  loop_.until([&] { return server_->connections() == 1; });
  slow.read_to_end();
  EXPECT_TRUE(stream_->send_event("to the other"));
  EXPECT_NE(other.read_to("\n\n").find("to the other"), std::string::npos);
}

TEST_F(HttpEvents, AnEventIsRefusedOnlyWhileMoreThanTheLimitIsUnread) {
  Options options;
  options.unread_bytes_max = 1'000;
  serve(options);
  HttpClient client = open();
  EXPECT_TRUE(stream_->send_event(std::string(1'000 - 8, 'x')));  // "data: " and two line feeds
  EXPECT_TRUE(stream_->send_event(std::string(1'000'000, 'y')));
  client.read_to("y\n\n");
  EXPECT_TRUE(stream_->send_event(std::string(1'001 - 8, 'z')));
  EXPECT_FALSE(stream_->send_event("one more"));
  loop_.until([&] { return closed_ == 1; });
  client.read_to_end();
}

TEST_F(HttpEvents, AClientThatStopsReadingIsClosedAfterTheIdleTime) {
  Options options;
  options.idle = std::chrono::seconds(1);
  options.unread_bytes_max = 64 << 20;
  serve(options);
  HttpClient client = open(4'096);
  ASSERT_TRUE(stream_->send_event(std::string(32 << 20, 'x')));
  loop_.until([&] { return closed_ == 1; });
}

TEST_F(HttpEvents, AStreamWithoutEventsIsNotIdle) {
  Options options;
  options.idle = std::chrono::seconds(1);
  serve(options);
  HttpClient client = open();
  for (int twice = 0; twice < 2; ++twice) HttpClient(loop_, server_->port()).read_to_end();  // each is closed as idle
  EXPECT_TRUE(stream_->send_event("still here"));
  EXPECT_NE(client.read_to("\n\n").find("still here"), std::string::npos);
}

TEST_F(HttpEvents, ClosingTheServerEndsItsStreams) {
  serve();
  HttpClient silent = open();
  const ExchangePtr first = stream_;
  HttpClient busy = open();
  stream_->send_event("on its way");
  server_->close();
  EXPECT_EQ(closed_, 2);
  EXPECT_FALSE(first->send_event("too late"));
  silent.read_to_end();
  busy.read_to_end();
}

TEST_F(HttpEvents, OnClosedMayReleaseTheExchangeThatHoldsIt) {
  serve();
  HttpClient client = open();
  bool called = false;
  stream_->on_closed = [this, &called, held = stream_] {
    stream_.reset();
    called = true;
  };
  client.close();
  loop_.until([&] { return called; });
  // If on_closed is never called, it is released.
  HttpClient other = open();
  const std::weak_ptr<Exchange> weak = stream_;
  stream_->on_closed = [held = stream_] {};
  stream_->end_events();
  stream_.reset();
  other.read_to("0\r\n\r\n");
  loop_.until([&] { return weak.expired(); });
}

TEST_F(HttpEvents, AHeadRequestGetsTheHeadAndNoStream) {
  serve();
  HttpClient client(loop_, server_->port());
  client.send("HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.read_to("\r\n\r\n").starts_with("HTTP/1.1 200"));
  loop_.until([&] { return closed_ == 1; });
  EXPECT_FALSE(stream_->send_event("nobody"));
}

TEST_F(HttpEvents, AnHttp10ClientGetsThemWithoutChunks) {
  serve();
  HttpClient client(loop_, server_->port());
  client.send("GET /events HTTP/1.0\r\n\r\n");
  client.read_to("\r\n\r\n");
  stream_->send_event("one");
  EXPECT_EQ(client.read_to("\n\n"), "data: one\n\n");
  stream_->send_event("two");
  EXPECT_EQ(client.read_to("\n\n"), "data: two\n\n");
  stream_->end_events();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(closed_, 0);
}

}  // namespace
}  // namespace muniment::http
