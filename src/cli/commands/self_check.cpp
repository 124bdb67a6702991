// Implements the hidden command self-check, which is `muniment doctor --self`.
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/meta/meta_validation.hpp"
#include "client/program.hpp"

namespace muniment::cli {

void add_self_check_command(CLI::App& app, Session& session) {
  add_word(session, app, "self-check", "Check Muniment's own criteria in a new run and record the report", [&session] {
    return validate_self(session, tree_of("muniment"));
  }).group("");
}

}  // namespace muniment::cli
