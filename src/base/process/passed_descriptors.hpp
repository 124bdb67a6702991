// Messages with open descriptors between processes, over a Unix socket (SCM_RIGHTS).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/files/file.hpp"

namespace muniment {

inline constexpr std::size_t passed_descriptors_max = 8;

// Sends one message of at least one byte. Returns false if the peer is gone or the message does not fit.
bool send_message(int socket, std::string_view bytes, std::span<const int> descriptors = {});

struct PassedMessage {
  std::size_t size = 0;  // bytes in the buffer; 0: the peer has closed the socket, an error, or `none`
  bool none = false;     // no message waits, on a socket that does not block
  std::vector<Fd> descriptors;
};

// Receives one message into `buffer`. Blocks unless the socket does not. Closes descriptors of a message that was cut.
PassedMessage receive_message(int socket, std::span<char> buffer);

}  // namespace muniment
