// State shared by all commands: common options, configuration, the connection (opened on first use), the resolution of
// run names, and the conversion of errors to messages and exit codes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/config.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"
#include "client/hints.hpp"
#include "client/output.hpp"

namespace muniment::cli {

// Exit codes are part of the interface and printed by `muniment help`.
enum ExitCode : int {
  exit_done = 0,
  exit_refused = 1,         // refused by the daemon or by a check
  exit_halted = 2,          // SYSTEM_ERROR: the run is halted, or data it needs is damaged
  exit_usage = 3,           // invalid command line
  exit_unavailable = 4,     // no daemon or no reply: a retry may succeed
  exit_not_recorded = 125,  // exec: the start or the end of the command is not recorded
  exit_interrupted = 130,   // ended by SIGINT, SIGQUIT, SIGTERM or SIGHUP, as in a shell
};
int exit_code_of(Errc code);

// Returns the path of a program that is installed beside this one.
std::string path_beside(std::string_view name);

struct CommonOptions {
  std::string data;
  std::string config;
  std::string database;
  std::string socket;
  std::string capsule;  // file that takes the place of a daemon; empty: none
  bool json = false;
  bool raw = false;
  bool no_autostart = false;
};

// Set if this process is a worker of the executor, which runs commands for the daemon.
struct Execution {
  pid_t front = 0;  // process that the user started; 0: this process is not a worker
  Fd daemon;        // open until the first use: the connection whose events are observed
};

class Session {
 public:
  Session() = default;
  ~Session() { end_capsule(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  CommonOptions options;
  int exit_code = exit_done;
  std::vector<std::string> words;    // all words of this process
  std::vector<std::string> command;  // the words after "--"
  Execution execution;
  bool continue_restored = false;  // a started daemon continues from a restored log

  ConfigInputs config_inputs() const;
  Result<Config> config() const;

  // Returns a connection; starts an embedded daemon if none runs, unless --no-autostart is given.
  Result<Client*> client();
  // Connects without starting a daemon. Errors: unavailable, with the command that starts one.
  Result<Client*> running_client();

  // If only a socket is named, the default data folder may belong to another instance; this sets the data folder to
  // that of the daemon that answers there. Errors: unavailable if none answers.
  Status find_place();
  bool names_only_socket() const;

  // In a worker of the executor: the next requests use its connection, and their events are observed. Without one, and
  // after `disconnect`, they are reported. Only the commands that the executor is for may call this.
  void observe();

  // Closes the connection; the next request opens a new one.
  void disconnect() { end_capsule(); }

  // Sends one request on `client()`.
  Result<Message> call(std::string_view method, std::string_view params);

  // Returns the id of the run named by an id, "@last", "@last~1", "@17" or a label "k=v" that exactly one run has.
  // Empty: MUNIMENT_RUN.
  Result<std::string> run_id(std::string_view name);
  // Returns the id of an optional run. Empty: none.
  Result<std::string> run_id_if_any(std::string_view name);

  const Output& out();

  // Returns the options that name this instance, for commands suggested in messages.
  Advice advice() const;
  std::string advised(std::string_view text) const { return advice().with_place(text); }

  // Reports the result of a command and sets the exit code.
  void finish(const Status& status);
  // Reports the result on standard error only, without setting the exit code, for commands whose standard output
  // belongs to another program.
  void finish_quietly(std::string_view what, const Status& status) const;
  // With --json, prints the result unchanged and returns true: the command is done.
  bool printed_json(const Message& message);

 private:
  Status start_capsule();
  // Closes the connection; waits until a capsule has indexed what was ingested. A failure sets the exit code.
  void end_capsule();
  // Returns the unreadable configuration file if it may name another socket; otherwise empty.
  std::string unread() const;
  Result<std::string> newest_run(std::string_view back);
  Result<std::string> numbered_run(std::string_view number);
  Result<std::string> labelled_run(std::string_view label);

  std::optional<Client> client_;
  pid_t capsule_server_ = 0;  // process that serves the capsule; 0: none
  std::optional<Output> out_;
};

}  // namespace muniment::cli
