// Serves a witness over HTTP with libmicrohttpd.
#include "audit/witness/witness_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/files/file.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t body_bytes_max = 128 * 1024;
constexpr unsigned connections_max = 64;
constexpr unsigned idle_seconds_max = 30;

// The received part of a request's body.
struct Upload {
  std::string body;
  bool too_large = false;
};

MHD_Result respond(MHD_Connection* connection, const WitnessAnswer& answer) {
  MHD_Response* const response =
      MHD_create_response_from_buffer(answer.text.size(), const_cast<char*>(answer.text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", answer.is_size ? "text/x.tlog.size" : "text/plain; charset=utf-8");
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

WitnessAnswer serve(Witness& witness, std::string_view method, std::string_view path, const Upload& upload) {
  if (upload.too_large) return {413, fmt::format("a request has at most {} bytes\n", body_bytes_max), false};
  if (path == "/add-checkpoint") {
    if (method != "POST") return {405, "POST it\n", false};
    return witness.add_checkpoint(upload.body);
  }
  constexpr std::string_view suffix = "/checkpoint";
  if (method == "GET" && path.size() == 1 + 64 + suffix.size() && path.ends_with(suffix))
    return witness.checkpoint(path.substr(1, 64));
  return {404, "not found\n", false};
}

MHD_Result handle(void* witness, MHD_Connection* connection, const char* url, const char* method, const char*,
                  const char* data, std::size_t* size, void** held) {
  if (*held == nullptr) {
    *held = new Upload;
    return MHD_YES;
  }
  auto& upload = *static_cast<Upload*>(*held);
  if (*size > 0) {
    upload.too_large = upload.too_large || upload.body.size() + *size > body_bytes_max;
    if (!upload.too_large) upload.body.append(data, *size);
    *size = 0;
    return MHD_YES;
  }
  return respond(connection, serve(*static_cast<Witness*>(witness), method, url, upload));
}

void forget(void*, MHD_Connection*, void** held, MHD_RequestTerminationCode) { delete static_cast<Upload*>(*held); }

template <typename Address>
Result<Fd> listen_on(const Address& address, int family, const std::string& shown) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket.open() && family == AF_INET) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!socket.open() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 64) != 0) {
    return file_error("listening on", shown, errno);
  }
  return socket;
}

Result<Fd> open_listener(const std::string& listen) {
  if (listen.starts_with("unix:")) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = listen.substr(5);
    if (path.empty() || path.size() >= sizeof address.sun_path) {
      return Error(Errc::invalid_argument,
                   fmt::format("{}: a socket's path has 1 to {} bytes", listen, sizeof address.sun_path - 1));
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ::unlink(path.c_str());
    ASSIGN_OR_RETURN(Fd socket, listen_on(address, AF_UNIX, listen));
    // The daemon runs under a different account. Its requests are authenticated by signatures, not by its identity.
    if (::chmod(path.c_str(), 0666) != 0) return file_error("opening to others", path, errno);
    return socket;
  }
  const std::size_t colon = listen.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const int port = colon == std::string::npos ? 0 : std::atoi(listen.c_str() + colon + 1);
  if (port <= 0 || port > 65'535 || ::inet_pton(AF_INET, listen.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    return Error(Errc::invalid_argument, fmt::format("{}: give unix:/path or ADDRESS:PORT", listen));
  }
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return listen_on(address, AF_INET, listen);
}

}  // namespace

struct WitnessServer::Impl {
  MHD_Daemon* daemon = nullptr;
  std::string socket_path;
};

WitnessServer::WitnessServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

WitnessServer::~WitnessServer() {
  MHD_stop_daemon(impl_->daemon);  // closes the socket
  if (!impl_->socket_path.empty()) ::unlink(impl_->socket_path.c_str());
}

Result<std::unique_ptr<WitnessServer>> WitnessServer::start(const std::string& listen, Witness& witness) {
  ASSIGN_OR_RETURN(Fd socket, open_listener(listen));
  auto impl = std::make_unique<Impl>();
  if (listen.starts_with("unix:")) impl->socket_path = listen.substr(5);
  impl->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, nullptr, nullptr, handle, &witness,
                                  MHD_OPTION_LISTEN_SOCKET, socket.get(), MHD_OPTION_CONNECTION_LIMIT, connections_max,
                                  MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds_max, MHD_OPTION_NOTIFY_COMPLETED, forget,
                                  nullptr, MHD_OPTION_END);
  if (impl->daemon == nullptr) return Error(Errc::unavailable, "the HTTP server does not start on " + listen);
  socket.release();
  return std::unique_ptr<WitnessServer>(new WitnessServer(std::move(impl)));
}

}  // namespace muniment::audit
