// Runs an MCP server as a child process: its standard input and output are pipes, its standard error is inherited.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct ServerExit {
  int code = 0;  // valid if `signal` is 0
  int signal = 0;
  int exit_code() const { return signal != 0 ? 128 + signal : code; }  // shell convention
};

class ChildServer {
 public:
  // Exit code if COMMAND cannot be started, by shell convention: 127 not found, 126 not executable.
  struct NotStarted {
    int exit_code = 0;
    std::string why;
  };

  // Errors: unavailable if the system has no descriptors or processes left.
  static Result<ChildServer> start(const std::vector<std::string>& arguments, std::optional<NotStarted>& not_started);
  ChildServer(ChildServer&&) = default;
  ChildServer& operator=(ChildServer&&) = default;

  int input() const { return input_.get(); }      // write end of its standard input; -1: closed
  int output() const { return output_.get(); }    // read end of its standard output
  int process() const { return process_.get(); }  // pidfd; readable after the server has ended
  void close_input() { input_.reset(); }
  void signal(int number) const;
  // Reaps the server; returns nullopt while it runs.
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
