// Entry point of `muniment-capsule`, which `muniment` starts: the commands on capsules, and with --serve a capsule as a
// server for one client, on standard input.
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "base/process/spawn.hpp"
#include "capsule/rpc.hpp"
#include "cli/commands.hpp"
#include "client/program.hpp"
#include "retrieval/child/tool_child.hpp"

namespace {

int serve_capsule(const char* path) {
  muniment::capsule::Server server(path);
  return muniment::capsule::serve(STDIN_FILENO, server);
}

}  // namespace

int main(int argc, char** argv) {
  namespace cli = muniment::cli;
  // The child that reads documents and trains models.
  if (argc == 2 && std::strcmp(argv[1], "--text-child") == 0)
    return muniment::retrieval::serve_tool(muniment::first_handed_over);
  cli::open_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) return serve_capsule(argv[2]);
  constexpr cli::Family families[] = {
      {"capsule", cli::add_capsule_commands},
      {"agent", cli::add_agent_command},
      {.names = "config", .add = cli::add_capsule_config_commands, .hidden = true},
      {.names = "mcp", .add = cli::add_capsule_mcp_command, .hidden = true},
  };
  return cli::run_program({families}, argc, argv, {});
}
