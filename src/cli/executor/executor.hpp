// Runs a command line of `muniment` in the executor of the daemon, so that the commands that it starts are observed.
//
// The front process, which the user started, hands its words, environment, folder and standard streams to the executor
// (`muniment --executor-child`, a child of the daemon). The executor forks two processes: a relay, and a worker, which
// runs the same command line as the user of the front. The worker is to the front what a command is to a shell: the
// relay passes signals and stops between them. The worker's connection to the daemon marks its events as observed, and
// no process of the user can trace the worker or take over that connection.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

// Serves as the executor until the daemon ends. Descriptor 3 is the listening socket, 4 the channel to the daemon.
// Returns an exit code; in a worker, that of `run`.
int serve_executor(int (*run)(int argc, char** argv, Execution execution));

// Runs this process's command line in the executor and returns its exit code. Returns nullopt if the daemon does not
// observe this process, with a note on standard error if `tell`; the caller then runs the command itself. Errors: those
// of the connection to the daemon.
Result<std::optional<int>> run_in_executor(Session& session, bool tell);

// Exchanged by front and relay, one for each message of the socket.
struct FrontMessage {
  // key: sent by the kernel to the whole job of the front; wake: ends the stop of the worker, not of its command.
  enum class Kind : int { signal, key, resume, wake };
  Kind kind = Kind::signal;
  int signal = 0;
};
struct RelayMessage {
  enum class Kind : int { refused, running, stopped, ended };
  Kind kind = Kind::refused;
  int status = 0;         // ended: as from waitpid()
  char reason[192] = "";  // refused
};

}  // namespace muniment::cli
