// Messages on a socket: a header of 24 bytes (magic, kind, call, length) and as many bytes as it says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::retrieval {

enum class MessageKind : std::uint32_t {
  setup = 1,
  search,
  index,
  set_model,
  embed_again,
  status,  // to a search child
  document,
  train,  // to a text child
  embed,  // from a search child
  answer,
  failure,  // from either; a failure carries an Error
};
inline constexpr MessageKind last_message_kind = MessageKind::failure;

struct Frame {
  MessageKind kind = MessageKind::failure;
  std::uint64_t call = 0;  // chosen by who asks; the answer carries it back
  std::string payload;
};

struct FrameHeader {
  std::uint32_t magic = 0;
  std::uint32_t kind = 0;
  std::uint64_t call = 0;
  std::uint64_t length = 0;
};

// Errors: corrupt for what is no header, too_large for a length above `bytes_max`.
Result<FrameHeader> read_header(std::string_view bytes, std::size_t bytes_max);

// Errors: unavailable when the other end is gone, deadline_exceeded, too_large (nothing was sent).
Status send_frame(int socket, MessageKind kind, std::uint64_t call, std::string_view payload, std::size_t bytes_max,
                  Deadline deadline);

// The same errors, and corrupt. After any of them the socket is good for nothing.
Result<Frame> receive_frame(int socket, std::size_t bytes_max, Deadline deadline);

// Waits until there is something to be received, be it the end. Errors: unavailable, deadline_exceeded.
Status await_readable(int socket, Deadline deadline);

inline constexpr Deadline no_deadline = Deadline::max();
inline Monotonic steady_now() { return std::chrono::steady_clock::now(); }

}  // namespace muniment::retrieval
