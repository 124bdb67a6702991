// Implements the plan of failpoints.
#include "base/process/failpoint.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace muniment::failpoint {

const bool present = true;

namespace {

constexpr std::chrono::minutes wait_max{2};
constexpr std::chrono::milliseconds wait_step{5};

enum class Action : std::uint8_t { kill, error, sleep, wait };

struct Point {
  std::string name;
  Action action = Action::error;
  std::chrono::milliseconds pause{0};
  std::string awaited;
  std::int64_t at = 1;
  bool onwards = false;  // at every pass from `at` on
  std::int64_t passed = 0;
};

// Aborts, because a misread plan in which no failpoint fires would look like a passed test.
[[noreturn]] void refuse(std::string_view item) {
  std::fprintf(stderr, "MUNIMENT_FAILPOINT: cannot read \"%.*s\"; want name=kill|error|sleep:<ms>|wait:<path>@<n>[+]\n",
               static_cast<int>(item.size()), item.data());
  std::abort();
}

std::int64_t read_number(std::string_view digits, std::string_view item) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 0) refuse(item);
  return value;
}

Point read_point(std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse(item);
  Point point;
  point.name = item.substr(0, equals);
  std::string_view action = item.substr(equals + 1);
  if (const std::size_t at = action.find('@'); at != std::string_view::npos) {
    std::string_view count = action.substr(at + 1);
    if (count.ends_with('+')) {
      point.onwards = true;
      count.remove_suffix(1);
    }
    point.at = read_number(count, item);
    action = action.substr(0, at);
  }
  if (action == "kill") {
    point.action = Action::kill;
  } else if (action.starts_with("sleep:")) {
    point.action = Action::sleep;
    point.pause = std::chrono::milliseconds(read_number(action.substr(6), item));
  } else if (action.starts_with("wait:")) {
    point.action = Action::wait;
    point.awaited = action.substr(5);
  } else if (action != "error") {
    refuse(item);
  }
  return point;
}

std::vector<Point> read_plan(std::string_view plan) {
  std::vector<Point> points;
  while (!plan.empty()) {
    const std::size_t comma = plan.find(',');
    const std::string_view item = plan.substr(0, comma);
    if (!item.empty()) points.push_back(read_point(item));
    plan = comma == std::string_view::npos ? std::string_view{} : plan.substr(comma + 1);
  }
  return points;
}

// The process has one environment and therefore one plan, which is read at the first pass.
struct Plan {
  std::mutex mutex;
  std::vector<Point> points;
  std::string log;
  Plan() {
    if (const char* text = std::getenv("MUNIMENT_FAILPOINT")) points = read_plan(text);
    if (const char* path = std::getenv("MUNIMENT_FAILPOINT_LOG")) log = path;
  }
};

Plan& plan() {
  static Plan the_plan;
  return the_plan;
}

void record(const std::string& path, std::string_view name) {
  if (path.empty()) return;
  const std::string line = std::string(name) + "\n";
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, line.data(), line.size()) < 0) std::perror("MUNIMENT_FAILPOINT_LOG");
  if (fd >= 0) ::close(fd);
}

void await(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + wait_max;
  while (::access(path.c_str(), F_OK) != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(wait_step);
}

}  // namespace

bool pass(std::string_view name) {
  Plan& armed = plan();
  Action action = Action::error;
  std::chrono::milliseconds pause{0};
  std::string awaited;
  {
    const std::lock_guard lock(armed.mutex);
    Point* fired = nullptr;
    for (Point& point : armed.points) {
      if (point.name != name) continue;
      ++point.passed;
      if (point.passed == point.at || (point.onwards && point.passed > point.at)) fired = &point;
    }
    if (fired == nullptr) return false;
    action = fired->action;
    pause = fired->pause;
    awaited = fired->awaited;
    record(armed.log, name);
  }
  if (action == Action::kill) {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();  // the signal is pending: no code after this may run
  }
  if (action == Action::sleep) {
    std::this_thread::sleep_for(pause);
    return false;
  }
  if (action == Action::wait) {
    await(awaited);
    return false;
  }
  return true;
}

void arm(std::string_view text) {
  Plan& armed = plan();
  const std::lock_guard lock(armed.mutex);
  armed.points = read_plan(text);
}

}  // namespace muniment::failpoint
