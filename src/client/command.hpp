// Declares a command: a struct of options, a function that declares them and a function that runs; `add_command` joins
// the three.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "client/connect/session.hpp"

namespace CLI {
class App;
}

namespace muniment::cli {

struct NoOptions {};

// Adds a subcommand of `parent` that calls `run`; the session reports its result.
CLI::App& add_word(Session& session, CLI::App& parent, const std::string& name, const std::string& text,
                   std::function<Status()> run);
// Adds a subcommand that only groups other subcommands: "run", "event", ….
CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& text);

template <typename Options>
void add_command(Session& session, CLI::App& parent, const std::string& name, const std::string& text,
                 void (*declare)(CLI::App&, Options&), Status (*run)(Session&, const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      add_word(session, parent, name, text, [&session, options, run] { return run(session, *options); });
  if (declare != nullptr) declare(command, *options);
}

}  // namespace muniment::cli
