// What every command shares: the options that all take, the configuration, the connection (made
// when it is first needed), how a run is named, and how an error becomes words and an exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/config.hpp"
#include "base/result.hpp"
#include "cli/connect/client.hpp"
#include "cli/show/hints.hpp"
#include "cli/show/output.hpp"

namespace muniment::cli {

// Part of the contract: `muniment help` prints them.
enum ExitCode : int {
  exit_done = 0,
  exit_refused = 1,         // the daemon or a check said no
  exit_halted = 2,          // SYSTEM_ERROR: the run is stopped, or what it needs is damaged
  exit_usage = 3,           // the command line
  exit_unavailable = 4,     // no daemon, or it did not answer: the same command may work later
  exit_not_recorded = 125,  // exec: could not record, and the command was not started
};
int exit_code_of(Errc code);

struct CommonOptions {
  std::string data;
  std::string config;
  std::string database;
  std::string socket;
  bool json = false;
  bool raw = false;
  bool no_autostart = false;
};

class Session {
 public:
  CommonOptions options;
  int exit_code = exit_done;
  std::vector<std::string> command;   // what stood after "--"
  std::vector<std::string> commands;  // the first words that there are: up, down, run, …
  bool continue_restored = false;     // a daemon that is started goes on from a log that was restored

  ConfigInputs config_inputs() const;
  Result<Config> config() const;

  // A connection; starts an embedded daemon where none runs, unless --no-autostart.
  Result<Client*> client();
  // Never starts anything. Errors: unavailable, with how to start it.
  Result<Client*> running_client();

  // Where only a socket is named, the default data folder is another instance's: what follows is about the folder of
  // the daemon that answers there. Errors: unavailable where none does.
  Status find_place();
  bool names_only_socket() const;

  // The next request makes a new connection.
  void disconnect() { client_.reset(); }

  // One request, on `client()`.
  Result<Message> call(std::string_view method, std::string_view params);

  // An id, "@last", "@last~1", "@17" or a label "k=v" that exactly one run has. Empty: MUNIMENT_RUN.
  Result<std::string> run_id(std::string_view name);
  // The same where a run may be named and need not be. Empty: none is.
  Result<std::string> run_id_if_any(std::string_view name);

  const Output& out();

  // The options that name this instance, as an advised command is to have them.
  Advice advice() const;
  std::string advised(std::string_view text) const { return advice().with_place(text); }

  // Reports the outcome of a command and sets the exit code.
  void finish(const Status& status);
  // The same on standard error only, with the exit code left alone: standard output belongs to
  // somebody else's command.
  void finish_quietly(std::string_view what, const Status& status) const;
  // With --json, the result as it came; true when that was all.
  bool printed_json(const Message& message);

 private:
  // The configuration that this user may not read, where that may matter to who looks for the daemon; otherwise empty.
  std::string unread() const;
  Result<std::string> newest_run(std::string_view back);
  Result<std::string> numbered_run(std::string_view number);
  Result<std::string> labelled_run(std::string_view label);

  std::optional<Client> client_;
  std::optional<Output> out_;
};

}  // namespace muniment::cli
