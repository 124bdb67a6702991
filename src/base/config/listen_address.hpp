// Parses TCP addresses to listen on, as in the configuration keys *_listen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment {

struct ListenAddress {
  std::string address;  // numeric, without brackets: 127.0.0.1, ::1, 0.0.0.0
  std::uint16_t port = 0;
  bool ipv6 = false;
  bool loopback = false;

  std::string text() const;  // "127.0.0.1:5433", "[::1]:5433"
};

// Parses `value` of the setting `key`. Errors: invalid_argument, with the expected form.
Result<ListenAddress> parse_listen_address(std::string_view key, const std::string& value);

}  // namespace muniment
