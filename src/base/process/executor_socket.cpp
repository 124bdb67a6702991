#include "base/process/executor_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/process/passed_descriptors.hpp"

namespace muniment {
namespace {

constexpr int callers_waiting_max = 128;

template <typename Call>
Result<Fd> open_socket(const std::string& name, const Call& call) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (!socket.open() || call(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return Error(Errc::unavailable, std::string("the executor: ") + std::strerror(errno));
  return socket;
}

}  // namespace

Result<Fd> listen_as_executor(const std::string& name) {
  return open_socket(name, [](int socket, const sockaddr* address, socklen_t length) {
    return ::bind(socket, address, length) != 0 ? -1 : ::listen(socket, callers_waiting_max);
  });
}

Result<Fd> connect_to_executor(const std::string& name, std::chrono::milliseconds patience) {
  const timeval bound{patience.count() / 1000, patience.count() % 1000 * 1000};
  return open_socket(name, [&](int socket, const sockaddr* address, socklen_t length) {
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    return ::connect(socket, address, length);
  });
}

Result<std::string> digest_of_tree(const std::string& executor, std::uint32_t uid, std::uint32_t process,
                                   const std::string& folder, Deadline deadline) {
  TreeRequest request;
  request.uid = uid;
  request.process = process;
  if (folder.size() >= sizeof request.folder) return Error(Errc::invalid_argument, "folder: the path is too long");
  folder.copy(request.folder, sizeof request.folder - 1);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  request.seconds = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left / 1000 + 1, 1, 3600));
  ASSIGN_OR_RETURN(const Fd connection,
                   connect_to_executor(executor, std::chrono::milliseconds(std::max<std::int64_t>(left, 1))));
  if (!send_message(connection.get(), {reinterpret_cast<const char*>(&request), sizeof request}))
    return Error(Errc::unavailable, std::string("the executor: ") + std::strerror(errno));
  pollfd answered{connection.get(), POLLIN, 0};
  if (::poll(&answered, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 600'000))) == 0)
    return Error(Errc::deadline_exceeded, "the digest of the working tree took too long. Retry with a longer deadline");
  std::array<char, 512> digest{};
  const std::size_t size = receive_message(connection.get(), digest).size;
  const std::string_view answer(digest.data(), size);
  if (answer != "." && !answer.starts_with("git:"))
    return Error(Errc::unavailable, "the executor ended before it answered");
  return std::string(digest.data(), size - 1);  // the last byte marks the end, so that no answer is empty
}

}  // namespace muniment
