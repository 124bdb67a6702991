// Entry point of `muniment-adapters`, which `muniment` starts for the commands that translate between other programs
// and the daemon.
#include "adapters/commands.hpp"
#include "client/program.hpp"

namespace {

namespace cli = muniment::cli;

constexpr cli::Family families[] = {
    {"mcp", cli::add_mcp_command},
    {"otlp", cli::add_otlp_command},
    {"record", [](CLI::App& app, cli::Session& session) { cli::add_record_command(app, session, cli::follow_file); }},
    {"import", cli::add_import_command},
};

}  // namespace

int main(int argc, char** argv) {
  cli::open_standard_streams();
  return cli::run_program({families, {}, false}, argc, argv, {});
}
