// Reads the configuration, creates the daemon, and serves until a signal.
#include "daemon/program.hpp"

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/config/command_tree.hpp"
#include "base/config/config.hpp"
#include "base/log.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/process/stop_signals.hpp"
#include "daemon/start/child_modes.hpp"
#include "daemon/wiring.hpp"

namespace muniment::daemon {

int run_program(int argc, char** argv, const mcp::Extension* extension) {
  if (const auto status = serve_as_child(argc, argv)) std::_Exit(*status);
  ::prctl(PR_SET_DUMPABLE, 0);  // no other process of the user can trace the daemon
  CLI::App app{"munimentd: daemon of Muniment, audit-grade memory for AI agents", "munimentd"};
  ConfigInputs inputs;
  const auto flag = [&](const char* name, const char* key, const char* text) {
    app.add_option_function<std::string>(
        name, [&inputs, key](const std::string& value) { inputs.flags.emplace_back(key, value); }, text);
  };
  flag("--data", "data", "Data folder");
  flag("--database", "database", "URI of a Postgres server (default: a private server in the data folder)");
  flag("--socket", "socket", "Path of the Unix socket");
  app.add_option("--config", inputs.file, "Configuration file (default: <data>/muniment.toml)");
  StartChoices choices;
  app.add_flag("--continue-restored", choices.continue_restored, "Continue a restored or truncated log in a new log");
  app.add_flag("--adopt-tail", choices.adopt_tail, "Accept the events reported as log_foreign_tail, and record this");
  choices.extension = extension;
  app.set_version_flag("--version", "munimentd " MUNIMENT_VERSION);
  offer_command_tree(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 3;
  }

  auto config = read_config(inputs);
  auto manager = ServiceManager::from_environment();
  if (!config || !manager) {
    std::fprintf(stderr, "munimentd: %s\n", (config ? manager.error() : config.error()).message.c_str());
    return 3;
  }
  ignore_libpq_variables(config->database);
  config->socket = manager->path_of_socket().value_or(config->socket);
  const bool json = config->log_format == "json";
  set_log_level(config->log_level);
  if (json) set_log_format(LogFormat::json);
  StopSignals signals;
  auto daemon = Daemon::start(*config, *std::move(manager), choices, signals);
  if (!daemon) {
    if (json) {
      log_error("munimentd does not start",
                {{"code", name_of(daemon.error().code)}, {"error", daemon.error().message}});
      return 1;
    }
    std::fprintf(stderr, "munimentd: %s: %s\n", std::string(name_of(daemon.error().code)).c_str(),
                 daemon.error().message.c_str());
    return 1;
  }
  if (*daemon) return (*daemon)->serve();
  log_info("munimentd stops: a signal arrived while it started");
  return 0;
}

}  // namespace muniment::daemon
