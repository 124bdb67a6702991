// Sends and receives framed messages.
#include "retrieval/child/frame.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace muniment::retrieval {

namespace {

constexpr std::uint32_t magic = 0x3143534d;  // "MSC1"
// Memory grows with the received bytes, not with the length in the header.
constexpr std::size_t step_bytes = 256 * 1024;

Error broken(const char* doing) {
  return Error(Errc::unavailable, std::string(doing) + ": " + std::generic_category().message(errno));
}

Status wait_for(int socket, short events, Deadline deadline) {
  for (;;) {
    int patience = -1;
    if (deadline != no_deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now()).count();
      patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    }
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, patience);
    if (ready > 0) return success();
    if (ready < 0 && errno != EINTR) return broken("poll");
    if (patience == 0) return Error(Errc::deadline_exceeded, "no answer within the deadline");
  }
}

Status receive_into(int socket, char* to, std::size_t size, Deadline deadline) {
  for (std::size_t got = 0; got < size;) {
    const ssize_t count = ::recv(socket, to + got, size - got, MSG_DONTWAIT);
    if (count == 0) return Error(Errc::unavailable, "the other end has closed the channel");
    if (count > 0) {
      got += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(wait_for(socket, POLLIN, deadline));
    } else if (errno != EINTR) {
      return broken("recv");
    }
  }
  return success();
}

}  // namespace

Status await_readable(int socket, Deadline deadline) { return wait_for(socket, POLLIN, deadline); }

Result<FrameHeader> read_header(std::string_view bytes, std::size_t bytes_max) {
  FrameHeader header;
  if (bytes.size() != sizeof header) return Error(Errc::corrupt, "a message's header is incomplete");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != magic || header.kind == 0 || header.kind > static_cast<std::uint32_t>(last_message_kind)) {
    return Error(Errc::corrupt, "the received bytes are not a message");
  }
  if (header.length > bytes_max) {
    Error error(Errc::too_large, "a message of " + std::to_string(header.length) + " bytes");
    error.limit = static_cast<std::int64_t>(bytes_max);
    return error;
  }
  return header;
}

Status send_frame(int socket, MessageKind kind, std::uint64_t call, std::string_view payload, std::size_t bytes_max,
                  Deadline deadline) {
  if (payload.size() > bytes_max) {
    Error error(Errc::too_large, "a message of " + std::to_string(payload.size()) + " bytes");
    error.limit = static_cast<std::int64_t>(bytes_max);
    return error;
  }
  FrameHeader header{magic, static_cast<std::uint32_t>(kind), call, payload.size()};
  const std::size_t total = sizeof header + payload.size();
  for (std::size_t sent = 0; sent < total;) {
    iovec parts[2];
    std::size_t count = 0;
    if (sent < sizeof header) parts[count++] = {reinterpret_cast<char*>(&header) + sent, sizeof header - sent};
    const std::size_t from = sent < sizeof header ? 0 : sent - sizeof header;
    if (from < payload.size()) parts[count++] = {const_cast<char*>(payload.data()) + from, payload.size() - from};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t done = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done >= 0) {
      sent += static_cast<std::size_t>(done);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(wait_for(socket, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return broken("send");
    }
  }
  return success();
}

Result<Frame> receive_frame(int socket, std::size_t bytes_max, Deadline deadline) {
  char head[sizeof(FrameHeader)];
  RETURN_IF_ERROR(receive_into(socket, head, sizeof head, deadline));
  ASSIGN_OR_RETURN(const FrameHeader header, read_header({head, sizeof head}, bytes_max));
  Frame frame{static_cast<MessageKind>(header.kind), header.call, {}};
  while (frame.payload.size() < header.length) {
    const std::size_t before = frame.payload.size();
    frame.payload.resize(before + std::min<std::size_t>(step_bytes, header.length - before));
    RETURN_IF_ERROR(receive_into(socket, frame.payload.data() + before, frame.payload.size() - before, deadline));
  }
  return frame;
}

}  // namespace muniment::retrieval
