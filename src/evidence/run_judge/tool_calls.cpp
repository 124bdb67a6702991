// Recognises shells, editors and notebooks by the names and the arguments of tool calls.
#include "evidence/run_judge/tool_calls.hpp"

#include <array>
#include <optional>

#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr std::array<std::string_view, 10> command_members = {
    "command", "cmd", "script", "code", "action", "commandline", "shell_command", "argv", "input", "chars"};
constexpr std::array<std::string_view, 9> path_members = {"file_path",     "path",          "filename",
                                                          "notebook_path", "target_file",   "file",
                                                          "filepath",      "absolute_path", "destination"};
constexpr std::array<std::string_view, 6> last_word_members = {"message", "result",        "summary",
                                                               "output",  "final_thought", "answer"};
constexpr std::size_t patch_files_max = 64;

struct ToolNames {
  Pattern shell{
      R"((?:^|[_.:])(?:bash|sh|shell|terminal|exec|execute|cmd|command|powershell|pwsh|zsh|run|run_command|run_shell_command|execute_bash|execute_command|local_shell|run_terminal_cmd|console)(?:$|[_.:]))"};
  Pattern python{R"((?:python|ipython|jupyter|notebook_cell|code_interpreter))"};
  Pattern writer{R"((?:write|edit|create|replace|insert|append|update|save|modify|patch))"};
  Pattern remover{R"((?:delete|remove|unlink))"};
  Pattern reader{R"((?:^|[_.:])(?:read|view|open|list|ls|search|grep|glob|cat|get|fetch|find)(?:$|[_.:]|file))"};
  Pattern finisher{
      R"(^(?:finish|submit|complete|task_complete|attempt_completion|done|final_answer|exit_plan_mode|agent_finish)$)"};
  Pattern editor_order{R"(^(?:create|str_replace|insert|undo_edit|write|append|replace|edit)$)"};
  Pattern viewer_order{R"(^(?:view|open|list|search)$)"};
  Pattern patch_file{R"((?m)^(?:\*\*\* (?:Add|Update) File: |\+\+\+ (?:b/)?)(\S[^\n\t]*)$)", false};
  Pattern patch_deleted{R"((?m)^\*\*\* Delete File: (\S[^\n\t]*)$)", false};
};

const ToolNames& tool_names() {
  static const ToolNames patterns;
  return patterns;
}

template <typename Names>
std::optional<std::string> first_string(const json::Value& arguments, const Names& names) {
  for (const std::string_view name : names) {
    if (auto text = arguments[name].as_string()) return text;
  }
  return std::nullopt;
}

std::vector<std::string> strings_of(const json::Value& list) {
  std::vector<std::string> strings;
  for (const json::Value item : list) strings.push_back(item.string_or(""));
  return strings;
}

void add_patch_files(CommandEffects& effects, std::string_view text) {
  const auto add = [&](const Pattern& pattern, bool deleted) {
    for (std::size_t from = 0; effects.files.size() < patch_files_max;) {
      const auto found = pattern.find(text, from);
      if (!found) return;
      if (found->group != "/dev/null") effects.files.push_back({std::string(found->group), deleted});
      from = found->end;
    }
  };
  add(tool_names().patch_file, false);
  add(tool_names().patch_deleted, true);
}

// Adds the effects of a shell command: a text or a list of words.
bool add_command(CallEffects& call, const json::Value& arguments, bool is_python) {
  for (const std::string_view name : command_members) {
    const json::Value member = arguments[name];
    if (member.is(json::Kind::array)) {
      call.effects = effects_of_argv(strings_of(member));
      return true;
    }
    if (const auto text = member.as_string()) {
      call.effects = is_python && name == "code" ? effects_of_python(*text) : effects_of_line(*text);
      return true;
    }
  }
  return false;
}

// Adds the edit of an editor, recognised by its name or its command: {"command": "str_replace", "path": …}. Returns
// false if the tool is not an editor.
bool add_edit(CallEffects& call, std::string_view name, const json::Value& arguments, std::string_view text) {
  const ToolNames& known = tool_names();
  const std::optional<std::string> path = first_string(arguments, path_members);
  const std::string order = arguments["command"].string_or("");
  const bool orders = path && known.editor_order.in(order);
  if (path && known.viewer_order.in(order)) return true;
  if (!orders && known.shell.in(name)) return false;
  if (!orders && known.reader.in(name)) return true;
  const bool removes = !orders && known.remover.in(name);
  if (!orders && !removes && !known.writer.in(name)) return false;
  call.edits = true;
  if (path) {
    call.effects.files.push_back({*path, removes});
  } else {
    constexpr std::array<std::string_view, 3> patch_members = {"patch", "input", "diff"};
    add_patch_files(call.effects, first_string(arguments, patch_members).value_or(std::string(text)));
  }
  return true;
}

}  // namespace

CallEffects effects_of_call(std::string_view name, std::string_view kind, const json::Value& arguments,
                            std::string_view text) {
  const ToolNames& known = tool_names();
  CallEffects call;
  if (known.finisher.in(name)) {
    call.said = first_string(arguments, last_word_members).value_or("");
    return call;
  }
  const bool is_command = kind == "command";
  if (!is_command && add_edit(call, name, arguments, text)) return call;
  const bool is_python = known.python.in(name);
  if (arguments.is(json::Kind::object) && add_command(call, arguments, is_python)) return call;
  const std::string line = arguments.as_string().value_or(std::string(text));
  if (!line.empty() && (is_command || known.shell.in(name) || is_python)) {
    call.effects = is_python && !is_command ? effects_of_python(line) : effects_of_line(line);
  }
  return call;
}

bool is_refused_edit(std::string_view output) {
  static const Pattern refused(
      R"(^\s*(?:OBSERVATION:\s*)?(?:ERROR|Error|error:|No replacement was performed|Your proposed edit has introduced new syntax error|\[Your proposed edit has introduced|File has not been read|String to replace not found|Invalid|Usage: |No file open|Permission denied)|(?:SyntaxError|IndentationError): )",
      false);
  constexpr std::size_t answer_bytes = 2'000;
  return refused.in(output.substr(0, answer_bytes));
}

}  // namespace muniment::evidence::run_judge
