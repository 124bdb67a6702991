// Answers a seccomp notifier in a thread that does nothing else, because the command waits for each answer: decides
// each reported call and records those that the view of a command refuses.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/files/file.hpp"
#include "cli/workflow/watched_calls.hpp"

struct seccomp_notif;

namespace muniment::cli {

// An access outside the view.
struct Refusal {
  std::string operation;  // name of the system call
  std::string path;       // path, address or family; empty: unknown
  std::string program;    // executable of the process; empty: unknown
  std::int64_t count = 0;
};

// The view of a command, as its accesses are judged by it.
struct Watched {
  std::vector<std::string> seen;     // paths of the view, other than the private /tmp
  std::string hidden;                // folder of which only `seen` is in the view
  std::vector<std::string> removed;  // hidden folders that no longer exist
  std::string examined;              // folder of the view that the command is to open a file of; empty: none
  bool network = false;              // connections are permitted
};

class Notifier {
 public:
  explicit Notifier(Watched watched) : watched_(std::move(watched)) {}
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Answers `listener` from now on.
  void start(Fd listener);
  // Ends the thread; call when the command has ended. The members below are valid afterwards.
  void stop();

  std::vector<Refusal> take();
  std::int64_t total() const { return total_; }      // number of refused accesses
  std::int64_t omitted() const { return omitted_; }  // those that are not in `take`
  bool examined() const { return examined_; }        // the command opened a file of the examined folder

 private:
  void answer_all();
  void answer_one();
  std::int32_t judge(const seccomp_notif& asked);
  void judge_path(const WatchedCall& call, std::uint32_t pid, std::uint64_t folder, std::uint64_t address);
  bool in_view(const std::string& path) const;
  bool is_noticed(const WatchedCall& call, const std::string& path) const;
  void record(const char* operation, std::string path, std::uint32_t pid);

  const Watched watched_;
  Fd listener_, stopping_;
  std::thread thread_;
  // Those of the thread, until it has ended.
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> refused_;
  std::int64_t total_ = 0, omitted_ = 0;
  bool examined_ = false;
};

}  // namespace muniment::cli
