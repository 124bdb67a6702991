// Messages on a socket: a header of 24 bytes (magic, kind, call, length), followed by `length` bytes.
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
  failure,  // from both; a failure carries an Error
};
inline constexpr MessageKind last_message_kind = MessageKind::failure;

struct Frame {
  MessageKind kind = MessageKind::failure;
  std::uint64_t call = 0;  // chosen by the sender of a request; the answer repeats it
  std::string payload;
};

struct FrameHeader {
  std::uint32_t magic = 0;
  std::uint32_t kind = 0;
  std::uint64_t call = 0;
  std::uint64_t length = 0;
};

// Errors: corrupt for an invalid header, too_large for a length above `bytes_max`.
Result<FrameHeader> read_header(std::string_view bytes, std::size_t bytes_max);

// Errors: unavailable if the other end has closed, deadline_exceeded, too_large (nothing was sent).
Status send_frame(int socket, MessageKind kind, std::uint64_t call, std::string_view payload, std::size_t bytes_max,
                  Deadline deadline);

// Errors: those of send_frame, and corrupt. After any of them the socket cannot be used again.
Result<Frame> receive_frame(int socket, std::size_t bytes_max, Deadline deadline);

// Waits until data or the end of the stream can be received. Errors: unavailable, deadline_exceeded.
Status await_readable(int socket, Deadline deadline);

inline constexpr Deadline no_deadline = Deadline::max();
inline Monotonic steady_now() { return std::chrono::steady_clock::now(); }

}  // namespace muniment::retrieval
