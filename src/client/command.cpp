#include "client/command.hpp"

#include <CLI/CLI.hpp>

#include <utility>

namespace muniment::cli {

CLI::App& add_word(Session& session, CLI::App& parent, const std::string& name, const std::string& text,
                   std::function<Status()> run) {
  CLI::App* word = parent.add_subcommand(name, text);
  word->footer("");  // the footer of the program is not repeated for a command
  word->callback([&session, run = std::move(run)] { session.finish(run()); });
  return *word;
}

CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& text) {
  CLI::App* group = parent.add_subcommand(name, text);
  group->footer("");
  group->require_subcommand(1);
  return *group;
}

}  // namespace muniment::cli
