// Entry point of `muniment-capsule`, which `muniment` starts: the commands on capsules, and with --serve a capsule as a
// server for one client, on standard input.
#include <unistd.h>

#include <cstring>

#include "capsule/rpc.hpp"
#include "cli/commands.hpp"
#include "client/program.hpp"
#include "retrieval/child/child_main.hpp"

namespace {

int serve_capsule(const char* path) {
  muniment::capsule::Server server(muniment::capsule::Capsule::open_or_create(path));
  return muniment::capsule::serve(STDIN_FILENO, server);
}

}  // namespace

int main(int argc, char** argv) {
  namespace cli = muniment::cli;
  if (const auto served = muniment::retrieval::serve_as_child(argc, argv)) return *served;
  cli::open_standard_streams();
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) return serve_capsule(argv[2]);
  constexpr cli::Family families[] = {{"capsule", cli::add_capsule_commands}};
  return cli::run_program({families}, argc, argv, {});
}
