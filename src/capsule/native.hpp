// The methods of a capsule for MCP (src/mcp/). One thread: a request is answered before the call returns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capsule/rpc.hpp"
#include "mcp/native.hpp"
#include "mcp/server.hpp"

namespace muniment::capsule {

class CapsuleNative final : public mcp::Native {
 public:
  explicit CapsuleNative(Server& server) : server_(server) {}

  std::int64_t request(std::string_view method, std::string params, Done done) override;
  void cancel(std::int64_t) override {}
  void add_folders(const std::vector<std::string>&) override {}
  void set_working_folder(std::string) override {}

 private:
  Server& server_;
  std::int64_t requests_ = 0;
};

// The tools of the methods that a capsule has.
mcp::ServerOptions tools_offer();

}  // namespace muniment::capsule
