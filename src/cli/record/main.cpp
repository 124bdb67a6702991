// muniment-record: `muniment record` alone. An agent starts it for each of its hooks and waits; this one links a
// quarter of the libraries, and so starts in a quarter of the time.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "base/config/command_tree.hpp"
#include "cli/commands.hpp"

int main(int argc, char** argv) {
  muniment::cli::Session session;
  CLI::App app("Records what an agent does: its hook command", "muniment-record");
  app.add_option("--data", session.options.data, "The data folder (MUNIMENT_DATA)")->type_name("DIR");
  app.add_option("--config", session.options.config, "The configuration file")->type_name("FILE");
  app.add_option("--socket", session.options.socket, "The daemon's socket (MUNIMENT_SOCKET)")->type_name("PATH");
  app.add_flag("--json", session.options.json, "Print JSON");
  app.set_version_flag("--version", MUNIMENT_VERSION);
  muniment::cli::make_record_command(app, session);
  muniment::offer_command_tree(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Not exit code 3, nor 2: to an agent a wrong command line must not be a refusal.
    return app.exit(error) == 0 ? muniment::cli::exit_done : muniment::cli::exit_refused;
  }
  return std::fflush(stdout) == 0 ? session.exit_code : muniment::cli::exit_refused;
}
