#include "base/process/open_files.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/limits.hpp"

namespace muniment {

Result<ConnectionsMax> reserve_descriptors(std::size_t threads, std::size_t http_wanted) {
  constexpr std::size_t each = limits::descriptors_per_connection;
  const std::size_t own = limits::descriptors_of_daemon + limits::descriptors_per_thread * threads;
  const std::size_t least = own + each + std::min<std::size_t>(http_wanted, 1);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return file_error("reading", "the limit of open files", errno);
  // Raises it only as far as useful, because child programs inherit it and some of them close every descriptor number
  // below it.
  const rlim_t wanted = std::max<rlim_t>(
      files.rlim_cur, std::min<rlim_t>(files.rlim_max, own + each * limits::connections_max + http_wanted));
  files.rlim_cur = wanted;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return file_error("raising", "the limit of open files", errno);
  if (wanted < least) {
    return Error(Errc::invalid_argument,
                 fmt::format("the limit of open files is {}, munimentd needs at least {}. Raise it: "
                             "LimitNOFILE= of the service, or ulimit -n",
                             wanted, least));
  }
  const std::size_t http = std::min<std::size_t>(http_wanted, (wanted - own) / (each + 1));
  return ConnectionsMax{std::min<std::size_t>(limits::connections_max, (wanted - own - http) / each), http};
}

}  // namespace muniment
