// The commands of `muniment`, one file a family. A command is a struct of options, a function that
// declares them and one that runs; `add_command` joins the three.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "base/result.hpp"
#include "cli/session.hpp"

namespace muniment::cli {

struct NoOptions {};

template <typename Options>
CLI::App* add_command(Session& session, CLI::App& parent, const std::string& name,
                      const std::string& text, void (*declare)(CLI::App&, Options&),
                      Status (*run)(Session&, const Options&)) {
  CLI::App* command = parent.add_subcommand(name, text);
  auto options = std::make_shared<Options>();
  if (declare != nullptr) declare(*command, *options);
  command->callback([&session, options, run] { session.finish(run(session, *options)); });
  return command;
}

// A word that only has further words under it: "run", "event", ….
inline CLI::App* add_group(CLI::App& app, const std::string& name, const std::string& text) {
  return app.add_subcommand(name, text)->require_subcommand(1);
}

void add_server_commands(CLI::App& app, Session& session);    // up down status doctor config rebuild
void add_run_commands(CLI::App& app, Session& session);       // run …, recover, rehydrate
void add_event_commands(CLI::App& app, Session& session);     // event …
void add_artifact_commands(CLI::App& app, Session& session);  // artifact …, snapshot …, manifest …
void add_ledger_commands(CLI::App& app, Session& session);    // claim …, evidence …, pointer …
void add_import_command(CLI::App& app, Session& session);     // import
void add_exec_command(CLI::App& app, Session& session);       // exec

}  // namespace muniment::cli
