#include "base/process/passed_descriptors.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace muniment {
namespace {

struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * passed_descriptors_max)] = {};
};

}  // namespace

bool send_message(int socket, std::string_view bytes, std::span<const int> descriptors) {
  if (descriptors.size() > passed_descriptors_max) return false;
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

PassedMessage receive_message(int socket, std::span<char> buffer) {
  iovec part{buffer.data(), buffer.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got = 0;
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  PassedMessage received;
  received.none = got < 0 && errno == EAGAIN;
  if (got <= 0) return received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(header) + i * sizeof passed, sizeof passed);
      received.descriptors.emplace_back(passed);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return {};
  received.size = static_cast<std::size_t>(got);
  return received;
}

}  // namespace muniment
