#include "cli/connect/download.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment::cli {

namespace {

// Passes the bytes to `write`, one slice per request.
template <typename Write>
Status each_slice(Client& client, std::string_view artifact_id, std::int64_t offset, std::int64_t length, Write write) {
  const std::string id = json::quote(artifact_id);
  while (length > 0) {
    const std::int64_t wanted = std::min<std::int64_t>(length, limits::artifact_raw_reply_bytes_max);
    ASSIGN_OR_RETURN(const Message answer,
                     client.call("artifact.get",
                                 fmt::format("{{\"artifact_id\":{},\"offset\":{},\"length\":{},\"encoding\":\"raw\"}}",
                                             id, offset, wanted)));
    RETURN_IF_ERROR(write(answer.raw));
    const auto got = static_cast<std::int64_t>(answer.raw.size());
    offset += got;
    length -= got;
    if (got < wanted) return success();
  }
  return success();
}

}  // namespace

Status copy_artifact(Client& client, std::string_view artifact_id, std::int64_t offset, std::int64_t length,
                     int descriptor) {
  return each_slice(client, artifact_id, offset, length,
                    [&](std::string_view bytes) { return write_all(descriptor, bytes, "the bytes"); });
}

Status save_artifact(Client& client, const Output& out, std::string_view artifact_id, std::int64_t offset,
                     std::int64_t length, const std::string& path) {
  if (path.empty() || path == "-") {
    if (!out.terminal()) return copy_artifact(client, artifact_id, offset, length, STDOUT_FILENO);
    return each_slice(client, artifact_id, offset, length, [&](std::string_view bytes) {
      out.print(out.safe(bytes));
      return success();
    });
  }
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.open())
    return Error(Errc::invalid_argument, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return copy_artifact(client, artifact_id, offset, length, file.get());
}

}  // namespace muniment::cli
