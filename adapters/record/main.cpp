// Entry point of muniment-record, which contains only `muniment record`. An agent starts it for each hook and waits; it
// links a quarter of the libraries and therefore starts in a quarter of the time.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "adapters/commands.hpp"
#include "base/config/command_tree.hpp"

int main(int argc, char** argv) {
  muniment::cli::Session session;
  CLI::App app("Record what an agent does, as its hook command", "muniment-record");
  app.add_option("--data", session.options.data, "Data folder (default: MUNIMENT_DATA)")->type_name("DIR");
  app.add_option("--config", session.options.config, "Configuration file")->type_name("FILE");
  app.add_option("--socket", session.options.socket, "Socket of the daemon (default: MUNIMENT_SOCKET)")
      ->type_name("PATH");
  app.add_flag("--json", session.options.json, "Print JSON");
  app.set_version_flag("--version", MUNIMENT_VERSION);
  muniment::cli::make_record_command(app, session);
  muniment::offer_command_tree(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Avoids exit codes 2 and 3: an invalid command line must not block the agent.
    return app.exit(error) == 0 ? muniment::cli::exit_done : muniment::cli::exit_refused;
  }
  return std::fflush(stdout) == 0 ? session.exit_code : muniment::cli::exit_refused;
}
