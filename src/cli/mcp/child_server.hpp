// An MCP server as a child process: its standard input and output are pipes of ours, its standard error is ours.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct ServerExit {
  int code = 0;  // when `signal` is 0
  int signal = 0;
  int exit_code() const { return signal != 0 ? 128 + signal : code; }  // as a shell says it
};

class ChildServer {
 public:
  // The exit code where COMMAND cannot be started, as a shell says it: 127 not found, 126 not executable.
  struct NotStarted {
    int exit_code = 0;
    std::string why;
  };

  // Errors: unavailable when the machine has no descriptors or processes left.
  static Result<ChildServer> start(const std::vector<std::string>& arguments, std::optional<NotStarted>& not_started);
  ChildServer(ChildServer&&) = default;
  ChildServer& operator=(ChildServer&&) = default;

  int input() const { return input_.get(); }      // to its standard input; -1: closed
  int output() const { return output_.get(); }    // from its standard output
  int process() const { return process_.get(); }  // readable once it has ended
  void close_input() { input_.reset(); }
  void signal(int number) const;
  // Reaps it; nullopt while it runs.
  std::optional<ServerExit> ended();

 private:
  ChildServer() = default;

  pid_t pid_ = -1;
  Fd input_;
  Fd output_;
  Fd process_;
  std::optional<ServerExit> exit_;
};

}  // namespace muniment::cli
