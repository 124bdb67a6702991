// Serves a witness over HTTP, on a Unix socket or a local port (libmicrohttpd): POST /add-checkpoint and GET /<sha256
// of the origin>/checkpoint.
#pragma once

#include <memory>
#include <string>

#include "audit/witness/witness.hpp"

namespace muniment::audit {

class WitnessServer {
 public:
  // `listen` is "unix:/path" or "127.0.0.1:8090" (an IPv4 address and a port). Serves until it is destroyed.
  static Result<std::unique_ptr<WitnessServer>> start(const std::string& listen, Witness& witness);
  ~WitnessServer();

 private:
  struct Impl;
  explicit WitnessServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muniment::audit
