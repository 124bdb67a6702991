// Implements the command audit witness: a separate process, run under an account that the log's operator cannot use.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <signal.h>

#include "audit/witness/witness.hpp"
#include "audit/witness/witness_server.hpp"
#include "base/files/file.hpp"
#include "cli/commands.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t key_file_bytes_max = 64 * 1024;

struct WitnessOptions {
  std::string state;
  std::string name = "witness.local";
  std::string listen;
  std::vector<std::string> logs;
};

void declare_witness(CLI::App& command, WitnessOptions& options) {
  command.add_option("--state", options.state, "Folder for the witness key and the newest checkpoint of each log")
      ->required()
      ->type_name("DIR");
  command.add_option("--log-key", options.logs, "Public keys of the logs to watch (muniment audit key show)")
      ->required()
      ->type_name("FILE");
  command.add_option("--listen", options.listen, "unix:/path or ADDRESS:PORT (default: unix:DIR/witness.sock)");
  command.add_option("--name", options.name, "Name of the witness key when it is created")->capture_default_str();
}

Status witness(Session& session, const WitnessOptions& options) {
  std::vector<VerifierKey> keys;
  for (const std::string& path : options.logs) {
    ASSIGN_OR_RETURN(const std::string text, read_input(path, key_file_bytes_max));
    auto read = parse_verifier_keys(text);
    if (!read) return Error(Errc::invalid_argument, path + ": " + read.error().message);
    keys.insert(keys.end(), read->begin(), read->end());
  }
  if (keys.empty())
    return Error(Errc::invalid_argument, "the files named by --log-key contain no key: there is no log to watch");
  // Blocks the signals before any thread starts, so that all threads leave them to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Clock clock;
  ASSIGN_OR_RETURN(const auto serving, audit::Witness::open(options.state, options.name, std::move(keys), clock));
  const std::string listen = options.listen.empty() ? "unix:" + options.state + "/witness.sock" : options.listen;
  ASSIGN_OR_RETURN(const auto server, audit::WitnessServer::start(listen, *serving));
  session.out().line(fmt::format("{} {}", listen, serving->verifier().text()));
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return success();
}

}  // namespace

void add_witness_command(CLI::App& audit, Session& session) {
  add_command(session, audit, "witness", "Cosign checkpoints of logs; prints the value for the setting `witnesses`",
              declare_witness, witness);
}

}  // namespace muniment::cli
