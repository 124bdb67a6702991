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

Status copy_artifact(Client& client, std::string_view artifact_id, std::int64_t offset, std::int64_t length,
                     int descriptor) {
  const std::string id = json::quote(artifact_id);
  while (length > 0) {
    const std::int64_t wanted = std::min<std::int64_t>(length, limits::artifact_raw_reply_bytes_max);
    ASSIGN_OR_RETURN(const Message answer,
                     client.call("artifact.get",
                                 fmt::format("{{\"artifact_id\":{},\"offset\":{},\"length\":{},\"encoding\":\"raw\"}}",
                                             id, offset, wanted)));
    RETURN_IF_ERROR(write_all(descriptor, answer.raw, "the bytes"));
    const auto got = static_cast<std::int64_t>(answer.raw.size());
    offset += got;
    length -= got;
    if (got < wanted) return success();
  }
  return success();
}

Status save_artifact(Client& client, const Output& out, std::string_view artifact_id, std::int64_t offset,
                     std::int64_t length, const std::string& path) {
  if (path.empty() || path == "-") {
    if (out.terminal()) {
      return Error(Errc::invalid_argument,
                   "the artifact may contain control sequences and standard output is a terminal. Pass -o FILE, "
                   "or pipe it into a pager that escapes them");
    }
    return copy_artifact(client, artifact_id, offset, length, STDOUT_FILENO);
  }
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.open())
    return Error(Errc::invalid_argument, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return copy_artifact(client, artifact_id, offset, length, file.get());
}

}  // namespace muniment::cli
