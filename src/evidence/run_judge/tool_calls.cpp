// Recognises shells, editors and notebooks by the names and the arguments of tool calls.
#include "evidence/run_judge/tool_calls.hpp"

#include <array>
#include <optional>

#include "base/text.hpp"
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
bool add_command(CallEffects& call, const json::Value& arguments, bool is_shell, bool is_python) {
  for (const std::string_view name : command_members) {
    const json::Value member = arguments[name];
    if (member.is(json::Kind::array)) {
      const std::vector<std::string> words = strings_of(member);
      call.effects = effects_of_argv(words);
      const bool script = words.size() == 3 && words[1].starts_with("-") && words[1].ends_with("c");
      call.line = script ? words[2] : joined(words, " ");
      return true;
    }
    if (const auto text = member.as_string()) {
      // {"action": "cancel"} is no command line.
      const bool one_word = text->find_first_of(" \n") == std::string::npos;
      if (one_word && !is_shell && !is_python && name != "command" && name != "cmd") continue;
      call.line = *text;
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
  std::optional<std::string> path = first_string(arguments, path_members);
  // The destination of a journey is no file.
  if (path && path->find_first_of("/.") == std::string::npos && arguments["destination"].present()) path.reset();
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

// A tool of its own for a check or a deed: run_tests, git.commit, deploy_service.
void add_named_check(CallEffects& call, std::string_view name, const json::Value& arguments) {
  struct Row {
    Check check;
    Pattern pattern;
  };
  static const std::vector<Row> rows = [] {
    std::vector<Row> made;
    const auto add = [&](Check check, const char* pattern) { made.push_back({check, Pattern(pattern)}); };
    add(Check::test,
        R"((?:^|[_.:/-])(?:(?:run|execute)_?)?(?:unit_?|all_?|integration_?)?(?:tests?|test_?suite|pytest|jest|specs)(?:_run(?:ner)?|_execute)?$|^(?:tests?|ci)[_.](?:run|execute)|runtests?$)");
    add(Check::lint, R"((?:^|[_.:/-])(?:run_?)?(?:lint(?:er)?)$)");
    add(Check::types, R"((?:^|[_.:/-])(?:run_?)?(?:type_?check)$)");
    add(Check::build, R"((?:^|[_.:/-])(?:run_?)?(?:build|compile)(?:_project|_app)?$)");
    add(Check::commit, R"((?:^|[_.:/-])(?:git_?)?commit(?:_changes|_files|_all)?$|create_commit$)");
    add(Check::push,
        R"((?:^|[_.:/-])(?:git_?)?push(?:_branch|_changes|_files)?$|(?:create|open|submit)_?(?:pull_?request|merge_?request|pr|mr)$|pull_?requests?[_.]create$)");
    add(Check::deploy,
        R"((?:^|[_.:/-])(?:deploy|rollout)(?:_\w+)?$|(?:trigger|start|create|run)_?(?:deploy|deployment|release|rollout)$|(?:deployments?|releases?)[_.](?:create|trigger|start)$)");
    add(Check::install, R"((?:^|[_.:/-])install(?:_\w+)?$)");
    return made;
  }();
  for (const Row& row : rows) {
    if (!row.pattern.in(name)) continue;
    CheckRun run{.check = row.check, .command = std::string(name), .targets = {}, .status_speaks = true};
    constexpr std::array<std::string_view, 6> target_members = {"path", "target", "test", "file", "filter", "pattern"};
    if (const auto target = first_string(arguments, target_members);
        target && row.check == Check::test && !target->empty() && *target != ".")
      run.targets.push_back(*target);
    call.effects.checks.push_back(std::move(run));
    return;
  }
}

// A tool that sends requests, or a path that is none.
bool is_request(std::string_view name, const json::Value& arguments) {
  static const Pattern http(R"((?:^|[_.:/-])(?:http|https|api|rest|request|requests|curl)(?:$|[_.:/-]))");
  return http.in(name) || arguments["method"].present();
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
  const bool request = is_request(name, arguments);
  if (!is_command && !request) add_named_check(call, name, arguments);
  const bool named = !call.effects.checks.empty();
  if (!is_command && !request && !named && add_edit(call, name, arguments, text)) return call;
  const bool is_python = known.python.in(name);
  const bool is_shell = is_command || known.shell.in(name);
  if (!request && !named && arguments.is(json::Kind::object) && add_command(call, arguments, is_shell, is_python))
    return call;
  if (named || request) return call;
  const std::string line = arguments.as_string().value_or(std::string(text));
  if (!line.empty() && (is_shell || is_python)) {
    call.line = line;
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
