// Serves OTLP/HTTP: POST /v1/traces and /v1/logs in JSON or protobuf, plain or gzip, with the checks of MCP over HTTP
// (Host, Origin, bearer token). A request is answered with 200 when its spans are durable in the spool.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/receive/trace_spool.hpp"
#include "base/result.hpp"
#include "http/access.hpp"
#include "http/server.hpp"

namespace muniment::cli {

struct ReceiverOptions {
  http::Options server;
  std::string token;               // empty: none is required
  std::vector<std::string> hosts;  // allowed besides the loopback names
};

class OtlpReceiver {
 public:
  OtlpReceiver(TraceSpool& spool, ReceiverOptions options);

  // Errors: those of http::Server::listen.
  Status listen(uv_loop_t* loop);
  std::uint16_t port() const { return server_->port(); }
  void close() { server_.reset(); }

 private:
  std::optional<http::Answer> refuse(const http::Request& request) const;
  http::Answer serve(const http::Request& request);
  Result<OtlpRefused> take(const http::Request& request, OtlpSignal signal);

  TraceSpool& spool_;
  ReceiverOptions options_;
  http::AllowedHosts hosts_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace muniment::cli
