#include "client/folder_events.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace muniment::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds watch_quiet{200};        // a burst of changes ends after this time without one
constexpr milliseconds watch_burst_max{5'000};  // changes that do not end are ingested after this time
constexpr std::uint32_t watched_changes = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE |
                                          IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

int stop_descriptor = -1;  // for the signal handler

void ask_to_stop(int) {
  const int before = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_descriptor, &one, sizeof one);
  errno = before;
}

}  // namespace

Result<FolderEvents> FolderEvents::open() {
  Fd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!events.open() && errno == EMFILE) {
    return Error(Errc::over_budget,
                 "the limit of inotify instances is reached. Raise it: sysctl fs.inotify.max_user_instances=1024");
  }
  if (!events.open()) return file_error("opening", "inotify", errno);
  Fd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.open()) return file_error("opening", "an eventfd", errno);
  stop_descriptor = stop.get();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // nohup
    action.sa_handler = ask_to_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(number, &action, nullptr);
  }
  return FolderEvents(std::move(events), std::move(stop));
}

Status FolderEvents::add(int folder, const std::string& path) {
  const std::string open_folder = fmt::format("/proc/self/fd/{}", folder);
  if (::inotify_add_watch(events_.get(), open_folder.c_str(), watched_changes) >= 0) return success();
  if (errno != ENOSPC) return file_error("watching", path, errno);
  return Error(Errc::over_budget, "watching " + path +
                                      ": the limit of watched folders is reached. Raise it: "
                                      "sysctl fs.inotify.max_user_watches=1048576");
}

bool FolderEvents::wait_for_change(milliseconds longest) {
  using Steady = std::chrono::steady_clock;
  std::optional<Steady::time_point> until;  // end of the burst
  for (;;) {
    int timeout = static_cast<int>(longest.count());
    if (until) {
      const auto left = std::chrono::ceil<milliseconds>(*until - Steady::now());
      if (left.count() <= 0) return !stopping();
      timeout = static_cast<int>(std::min(watch_quiet, left).count());
    }
    std::array<pollfd, 2> both{{{events_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    const int ready = ::poll(both.data(), both.size(), timeout);
    if (both[1].revents != 0) return false;
    if (ready == 0) return true;
    if (ready < 0 || both[0].revents == 0) continue;
    drain();
    if (!until) until = Steady::now() + watch_burst_max;
  }
}

// A folder that was moved is watched again by the next walk, if it is still below a root.
void FolderEvents::drain() {
  alignas(inotify_event) std::array<char, 64 * 1024> events;
  for (ssize_t have = 0; (have = ::read(events_.get(), events.data(), events.size())) > 0;) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(have);) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof event);
      if ((event.mask & IN_MOVE_SELF) != 0) ::inotify_rm_watch(events_.get(), event.wd);
      at += sizeof event + event.len;
    }
  }
}

bool FolderEvents::pause(milliseconds time) const {
  pollfd stop{stop_.get(), POLLIN, 0};
  ::poll(&stop, 1, static_cast<int>(time.count()));
  return stop.revents == 0;
}

}  // namespace muniment::cli
