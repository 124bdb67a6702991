// What the calls of agents' tools do, whatever the tools are called: a shell, an editor, a notebook, the end of the
// work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/run_judge/checks.hpp"
#include "evidence/run_judge/outcome.hpp"

namespace muniment::evidence::run_judge {

struct CallEffects {
  CommandEffects effects;
  bool edits = false;  // a tool that changes files, and whose status says whether it did
  std::string said;    // the agent's last word, given to a tool that ends the work
};

// `kind`: as in tool.called. `text`: the arguments where they were spilled.
CallEffects effects_of_call(std::string_view name, std::string_view kind, const json::Value& arguments,
                            std::string_view text);

// Whether an editor's answer says that it changed nothing.
bool is_refused_edit(std::string_view output);

}  // namespace muniment::evidence::run_judge
