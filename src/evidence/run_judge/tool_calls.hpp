// Determines the effects of tool calls, independent of the tools' names: a shell, an editor, a notebook, a tool that
// ends the work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/run_judge/actions/ledger.hpp"
#include "evidence/run_judge/checks.hpp"
#include "evidence/run_judge/outcome.hpp"

namespace muniment::evidence::run_judge {

struct CallEffects {
  CommandEffects effects;
  bool edits = false;  // the tool changes files, and its status shows whether it succeeded
  std::string line;    // the command line of a shell
  ToolCall call;       // the same for the ledger
  std::string said;    // the agent's final text, passed to a tool that ends the work
};

// `kind` is the kind in tool.called. `text` is the text of the arguments if they were spilled.
CallEffects effects_of_call(std::string_view name, std::string_view kind, const json::Value& arguments,
                            std::string_view text);

// Returns whether an editor's answer states that it changed nothing.
bool is_refused_edit(std::string_view output);

}  // namespace muniment::evidence::run_judge
