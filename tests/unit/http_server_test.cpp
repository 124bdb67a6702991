// Tests of the HTTP server: requests, replies, limits, refusals, starting and closing. http_events_test.cpp covers
// event streams, http_clients_test.cpp slow and disconnecting clients.
#include "http/server.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "unit/http_server_fixture.hpp"

namespace muniment::http {
namespace {

using test::http_get;
using test::http_post;
using test::HttpClient;

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_F(HttpServer, RepliesAndKeepsTheConnection) {
  serve();
  HttpClient client = connect();
  client.send(http_post("/a%20b?x=%2F", "first"));
  const auto [head, body] = client.read_reply();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  EXPECT_TRUE(has(head, "X-Path: /a%20b\r\n")) << head;
  EXPECT_EQ(body, "first");
  client.send(http_post("/", "second"));
  EXPECT_EQ(client.read_reply().second, "second");
  EXPECT_EQ(server_->connections(), 1U);
}

TEST_F(HttpServer, RequestsThatWereSentAheadAreAnsweredInTheirOrder) {
  keep();
  HttpClient client = connect();
  client.send(http_post("/", "1") + http_post("/", "2"));
  next_kept()->reply(200, {}, "one");
  next_kept()->reply(200, {}, "two");
  EXPECT_EQ(client.read_reply().second, "one");
  EXPECT_EQ(client.read_reply().second, "two");
}

TEST_F(HttpServer, HandsOnAllOfARequestUndecoded) {
  keep();
  HttpClient client = connect();
  client.send(
      "PUT /a%2Fb?c=d&e=%20?f HTTP/1.1\r\nHost: localhost\r\nx-a: 1\r\nX-A: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  const ExchangePtr exchange = next_kept();
  const Request& request = exchange->request();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/a%2Fb?c=d&e=%20?f");
  EXPECT_EQ(request.path, "/a%2Fb");
  EXPECT_EQ(request.query, "c=d&e=%20?f");
  EXPECT_EQ(request.body, "abcde");
  EXPECT_EQ(request.header("X-a"), "1");
  EXPECT_EQ(request.headers_named("X-A"), (std::vector<std::string_view>{"1", "2"}));
  EXPECT_EQ(request.header("Y"), std::nullopt);
  EXPECT_TRUE(request.peer.starts_with("127.0.0.1:")) << request.peer;
  exchange->reply(204, {}, "");
  EXPECT_TRUE(client.read_to("\r\n\r\n").starts_with("HTTP/1.1 204"));
}

TEST_F(HttpServer, OnlyTheFirstAnswerCounts) {
  keep();
  HttpClient client = connect();
  client.send(http_get("/"));
  const ExchangePtr exchange = next_kept();
  exchange->reply(200, {}, "first");
  exchange->reply(404, {}, "second");
  exchange->begin_events(200, {});
  EXPECT_FALSE(exchange->send_event("third"));
  EXPECT_EQ(client.read_reply().second, "first");
  exchange->reply(404, {}, "after it");
  client.send(http_get("/"));
  next_kept()->reply(200, {}, "next");
  EXPECT_EQ(client.read_reply().second, "next");
  EXPECT_EQ(closed_, 0);
}

TEST_F(HttpServer, AnExchangeThatIsReleasedIsAnsweredWith500) {
  serve({}, [](const ExchangePtr&) {});
  HttpClient client = connect();
  client.send(http_get("/"));
  EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 500"));
  keep();
  HttpClient later = connect();
  later.send(http_get("/"));
  next_kept().reset();
  EXPECT_TRUE(later.read_reply().first.starts_with("HTTP/1.1 500"));
}

TEST_F(HttpServer, AHeaderThatWouldBeTwoIsNotWritten) {
  serve({}, [](const ExchangePtr& exchange) { exchange->reply(200, {{"X-A", "1\r\nX-B: 2"}}, "secret"); });
  HttpClient client = connect();
  client.send(http_get("/"));
  const auto [head, body] = client.read_reply();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 500")) << head;
  EXPECT_FALSE(has(head, "X-B"));
  EXPECT_FALSE(has(body, "secret"));
}

TEST_F(HttpServer, ALargeReplyArrivesWhole) {
  std::string large(20 << 20, 'x');
  for (std::size_t i = 0; i < large.size(); i += 1'000) large[i] = static_cast<char>('a' + i / 1'000 % 26);
  serve({}, [&](const ExchangePtr& exchange) { exchange->reply(200, {}, large); });
  HttpClient client = connect();
  client.send(http_get("/"));
  EXPECT_TRUE(client.read_reply().second == large);
}

TEST_F(HttpServer, ABodyOfTheLimitIsTakenAndOneMoreByteIsNot) {
  Options options;
  options.body_bytes_max = 100'000;
  serve(options);
  HttpClient client = connect();
  client.send(http_post("/", std::string(100'000, 'x')));
  EXPECT_EQ(client.read_reply().second.size(), 100'000U);
  client.send(http_post("/", std::string(100'001, 'x')));
  EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 413"));
  client.read_to_end();
  loop_.until([&] { return server_->connections() == 0; });
}

TEST_F(HttpServer, AChunkedBodyHasTheSameLimit) {
  Options options;
  options.body_bytes_max = 16;
  serve(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  HttpClient client = connect();
  client.send(head + "8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_reply().second, "1234567812345678");
  client.send(head + "8\r\n12345678\r\n9\r\n123456789\r\n0\r\n\r\n");
  EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 413"));
  client.read_to_end();
}

TEST_F(HttpServer, AClientThatWaitsForContinueIsRefusedBeforeItSends) {
  Options options;
  options.body_bytes_max = 16;
  serve(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ";
  HttpClient client = connect();
  client.send(head + "16\r\n\r\n");
  EXPECT_TRUE(client.read_to("\r\n\r\n").starts_with("HTTP/1.1 100"));
  client.send(std::string(16, 'x'));
  EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 200"));
  client.send(head + "17\r\n\r\n");
  EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 413"));
  client.read_to_end();
}

TEST_F(HttpServer, TheHeadHasALimit) {
  Options options;
  options.head_bytes_max = 4'096;
  serve(options);
  const std::string begin = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", end = "\r\n\r\n";
  const auto head_of = [&](std::size_t bytes) { return begin + std::string(bytes - begin.size() - 4, 'x') + end; };
  for (const auto& [bytes, status] : {std::pair{4'096U, "200"}, {4'097U, "431"}, {100'000U, "431"}}) {
    HttpClient client = connect();
    client.send(head_of(bytes));
    EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 " + std::string(status))) << bytes;
  }
}

TEST_F(HttpServer, WhatTwoServersMayReadInTwoWaysIsRefused) {
  serve();
  for (const std::string head : {
           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
           "Content-Length: 1\r\nContent-Length: 1\r\n",
           "Content-Length: 1\r\nContent-Length: 2\r\n",
           "Content-Length: +1\r\n",
           "Content-Length: 1,1\r\n",
           "Transfer-Encoding: gzip, chunked\r\n",
           "Transfer-Encoding: identity\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
           "Content-Length : 1\r\n",
           "X(: 1\r\n",
       }) {
    HttpClient client = connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\nx");
    EXPECT_TRUE(client.read_to("\r\n").starts_with("HTTP/1.1 400")) << head;
    client.read_to_end();
  }
  for (const std::string line :
       {"GET http://localhost/ HTTP/1.1\r\n", "GET x HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n"}) {
    HttpClient client = connect();
    client.send(line + "Host: localhost\r\n\r\n");
    EXPECT_TRUE(client.read_to("\r\n").starts_with("HTTP/1.1 400")) << line;
  }
  HttpClient without_host = connect();
  without_host.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(without_host.read_to("\r\n").starts_with("HTTP/1.1 400"));
}

TEST_F(HttpServer, OptionsRefuseFromTheHead) {
  Options options;
  options.refuse = [](const Request& request) -> std::optional<Answer> {
    if (request.header("Authorization")) return {};
    return Answer{401, {{"WWW-Authenticate", "Bearer"}}, "no"};
  };
  serve(options);
  HttpClient client = connect();
  client.send(http_post("/", std::string(200'000, 'x')));
  auto [head, body] = client.read_reply();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 401")) << head;
  EXPECT_TRUE(has(head, "WWW-Authenticate: Bearer\r\n"));
  EXPECT_EQ(body, "no");
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n\r\n");  // on the same connection
  EXPECT_TRUE(client.read_reply().first.starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServer, ClientsBeyondTheLimitAreClosed) {
  Options options;
  options.connections_max = 2;
  serve(options);
  HttpClient first = connect();
  first.send(http_get("/"));  // from its first request on it is no stranger
  EXPECT_TRUE(first.read_reply().first.starts_with("HTTP/1.1 200"));
  HttpClient second = connect();
  second.send(http_get("/"));
  EXPECT_TRUE(second.read_reply().first.starts_with("HTTP/1.1 200"));
  HttpClient third = connect();
  third.send(http_get("/"));
  EXPECT_EQ(third.read_to_end(), "");
  first.send(http_post("/", "served"));
  EXPECT_EQ(first.read_reply().second, "served");
  first.close();
  loop_.until([&] { return server_->connections() == 1; });
  HttpClient fourth = connect();
  fourth.send(http_post("/", "admitted"));
  EXPECT_EQ(fourth.read_reply().second, "admitted");
}

std::optional<Answer> refuse_without_token(const Request& request) {
  if (request.header("Authorization")) return std::nullopt;
  return Answer{401, {}, "no"};
}

constexpr const char* with_token = "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n\r\n";

TEST_F(HttpServer, StrangersKeepNoClientOut) {
  for (const std::size_t connections_max : {std::size_t{8}, std::size_t{1'024}}) {
    Options options;
    options.connections_max = connections_max;
    options.strangers_max = 4;
    options.refuse = refuse_without_token;
    serve(options);
    HttpClient known = connect();
    known.send(with_token);
    EXPECT_TRUE(known.read_reply().first.starts_with("HTTP/1.1 200"));
    std::vector<HttpClient> strangers;
    for (int i = 0; i < 20; ++i) {
      strangers.push_back(connect());
      if (i % 3 == 1) strangers.back().send(http_get("/"));  // refused, and still a stranger
      if (i % 3 == 2) strangers.back().send("GET / HT");
      loop_.until([&] { return server_->connections() == std::min<std::size_t>(strangers.size(), 4) + 1; });
    }
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      if (i < 16) strangers[i].read_to_end();
      EXPECT_EQ(strangers[i].closed(), i < 16) << i;
    }
    HttpClient later = connect();
    for (HttpClient* const client : {&known, &later}) {
      client->send(with_token);
      EXPECT_TRUE(client->read_reply().first.starts_with("HTTP/1.1 200"));
    }
    server_.reset();
  }
}

TEST_F(HttpServer, AStrangerHasLittleTime) {
  Options options;
  options.stranger_idle = std::chrono::seconds(1);
  options.refuse = refuse_without_token;
  serve(options);
  HttpClient known = connect(), silent = connect(), refused = connect();
  known.send(with_token);
  EXPECT_TRUE(known.read_reply().first.starts_with("HTTP/1.1 200"));
  refused.send(http_get("/"));
  refused.read_to_end();
  silent.read_to_end();
  EXPECT_FALSE(known.closed());
  known.send(with_token);
  EXPECT_TRUE(known.read_reply().first.starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServer, AllBodiesTogetherHaveALimit) {
  keep();
  const std::string body(limits::http_body_bytes_max, 'x');
  std::vector<HttpClient> clients;
  for (std::size_t sent = 0; sent < limits::http_bodies_bytes_max; sent += body.size()) {
    clients.push_back(connect());
    clients.back().send(http_post("/", body));
  }
  loop_.until([&] { return kept_.size() == clients.size(); });
  HttpClient late = connect();
  late.send(http_post("/", "x"));
  EXPECT_TRUE(late.read_reply().first.starts_with("HTTP/1.1 503"));
  late.send(http_get("/"));  // a request without a body is served
  loop_.until([&] { return kept_.size() == clients.size() + 1; });
  kept_.back()->reply(200, {}, "");
  EXPECT_TRUE(late.read_reply().first.starts_with("HTTP/1.1 200"));
  kept_.front()->reply(200, {}, "");
  clients.front().read_reply();
  kept_.clear();
  late.send(http_post("/", "x"));
  next_kept()->reply(200, {}, "room again");
  EXPECT_EQ(late.read_reply().second, "room again");
}

TEST_F(HttpServer, ClientsWaitWhileThereAreNoDescriptors) {
  serve();
  HttpClient client = connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd next(::dup(0));  // the lowest unused number
  const rlimit none{static_cast<rlim_t>(next.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  client.send(http_post("/", "waits"));
  loop_.settle();
  EXPECT_EQ(server_->connections(), 0U);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(client.read_reply().second, "waits");
}

TEST_F(HttpServer, TwoServersShareALoop) {
  serve();
  auto other = Server::listen(loop_.get(), {}, [](const ExchangePtr& exchange) { exchange->reply(200, {}, "other"); });
  ASSERT_TRUE(other.ok());
  HttpClient one = connect(), two(loop_, (*other)->port());
  one.send(http_post("/", "one"));
  two.send(http_post("/", "two"));
  EXPECT_EQ(one.read_reply().second, "one");
  EXPECT_EQ(two.read_reply().second, "other");
  other->reset();
  two.read_to_end();
  one.send(http_post("/", "still"));
  EXPECT_EQ(one.read_reply().second, "still");
}

TEST_F(HttpServer, ClosingEndsWhatIsOpen) {
  keep();
  HttpClient waiting = connect(), idle = connect(), answered = connect();
  answered.send(http_get("/"));
  next_kept()->reply(200, {}, "done");
  EXPECT_EQ(answered.read_reply().second, "done");
  waiting.send(http_get("/"));
  const ExchangePtr exchange = next_kept();
  loop_.until([&] { return server_->connections() == 3; });
  server_->close();
  EXPECT_EQ(closed_, 1);
  EXPECT_EQ(server_->connections(), 0U);
  exchange->reply(200, {}, "too late");
  waiting.read_to_end();
  idle.read_to_end();
  EXPECT_EQ(answered.read_to_end(), "");
  server_->close();
}

TEST_F(HttpServer, TheHandlerMayCloseAndDestroyTheServer) {
  serve({}, [this](ExchangePtr exchange) {
    exchange->on_closed = [this] { ++closed_; };
    server_.reset();
    kept_.push_back(std::move(exchange));
  });
  HttpClient client = connect();
  client.send(http_get("/"));
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(closed_, 1);
}

TEST_F(HttpServer, AServerThatStopsAcceptingServesOn) {
  keep();
  HttpClient client = connect();
  client.send(http_get("/"));
  const ExchangePtr exchange = next_kept();
  const std::uint16_t port = server_->port();
  server_->stop_accepting();
  HttpClient late(loop_, port);
  EXPECT_EQ(late.read_to_end(), "");
  exchange->reply(200, {}, "served");
  EXPECT_EQ(client.read_reply().second, "served");
}

TEST_F(HttpServer, SaysWhyItCannotListen) {
  serve();
  const auto error_of = [this](std::string address, std::uint16_t port) {
    Options options;
    options.address = std::move(address);
    options.port = port;
    auto started = Server::listen(loop_.get(), options, [](const ExchangePtr&) {});
    return started.ok() ? Error(Errc::system_error, "it listens") : started.error();
  };
  const Error in_use = error_of("127.0.0.1", server_->port());
  EXPECT_EQ(in_use.code, Errc::unavailable);
  EXPECT_TRUE(has(in_use.message, "choose another port")) << in_use.message;
  for (const char* address : {"localhost", "", "127.0.0.1:80", "[::1]", "203.0.113.1"}) {
    const Error error = error_of(address, 0);
    EXPECT_EQ(error.code, Errc::invalid_argument) << address;
    EXPECT_TRUE(has(error.message, "127.0.0.1")) << error.message;
  }
}

TEST_F(HttpServer, ListensOnIpv6OrSaysWhatToWriteInstead) {
  Options options;
  options.address = "::1";
  auto started = Server::listen(loop_.get(), options, [](const ExchangePtr&) {});
  if (started) {
    EXPECT_NE((*started)->port(), 0);
  } else {  // a machine without IPv6: the error suggests another address
    EXPECT_EQ(started.error().code, Errc::invalid_argument);
    EXPECT_TRUE(has(started.error().message, "127.0.0.1")) << started.error().message;
  }
}

}  // namespace
}  // namespace muniment::http
