// Reads a seccomp notifier: decides each reported call and records those that the view of a command refuses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/files/file.hpp"

namespace muniment::cli {

// An access outside the view.
struct Refusal {
  std::string operation;  // name of the system call
  std::string path;       // path or address; empty: unknown
  std::string program;    // executable of the process; empty: unknown
  std::int64_t count = 0;
};

class Notifier {
 public:
  // `seen`: paths of the view, other than the private /tmp. `hidden`: a folder of which only `seen` is in the view.
  // `network`: connections are permitted.
  Notifier(std::vector<std::string> seen, std::string hidden, bool network)
      : seen_(std::move(seen)), hidden_(std::move(hidden)), network_(network) {}

  // Answers one pending notification of `listener`. Returns false if the listener has ended.
  bool serve(int listener);

  std::vector<Refusal> take();
  std::int64_t total() const { return total_; }      // number of refused accesses
  std::int64_t omitted() const { return omitted_; }  // those that are not in `take`

 private:
  bool in_view(const std::string& path) const;
  void record(const char* operation, std::string path, std::uint32_t pid);

  std::vector<std::string> seen_;
  std::string hidden_;
  bool network_;
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> refused_;
  std::int64_t total_ = 0, omitted_ = 0;
};

}  // namespace muniment::cli
