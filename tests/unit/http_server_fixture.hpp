// A server on the test's own event loop, for the tests of the HTTP server.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "http/server.hpp"
#include "support/http_fixture.hpp"

namespace muniment::http {

using ExchangePtr = std::shared_ptr<Exchange>;

class HttpServer : public testing::Test {
 protected:
  void serve(Options options = {}, Server::Handler handler = {}) {
    if (!handler) {
      handler = [](const ExchangePtr& exchange) {
        exchange->reply(200, {{"X-Path", exchange->request().path}}, exchange->request().body);
      };
    }
    auto started = Server::listen(loop_.get(), std::move(options), std::move(handler));
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = *std::move(started);
  }
  // The handler keeps each exchange; the test answers it.
  void keep(Options options = {}) {
    serve(std::move(options), [this](ExchangePtr exchange) {
      exchange->on_closed = [this] { ++closed_; };
      kept_.push_back(std::move(exchange));
    });
  }
  test::HttpClient connect() { return test::HttpClient(loop_, server_->port()); }
  ExchangePtr next_kept() {
    loop_.until([this] { return !kept_.empty(); });
    ExchangePtr exchange = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return exchange;
  }

  test::HttpLoop loop_;
  std::unique_ptr<Server> server_;
  std::vector<ExchangePtr> kept_;
  int closed_ = 0;
};

}  // namespace muniment::http
