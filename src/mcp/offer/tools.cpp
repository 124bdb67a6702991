// The table of tools, and the list that a server offers.
#include "mcp/offer/tools.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "mcp/offer/extension.hpp"
#include "mcp/offer/tool_inputs.hpp"
#include "mcp/offer/tool_texts.hpp"
#include "mcp/server.hpp"

namespace muniment::mcp {
namespace {

constexpr std::string_view handle_schema =
    R"({"type":"object","properties":{"handle":{"type":"string","description":"For the tool status"},)"
    R"("state":{"const":"working"}},"required":["handle","state"]})";

constexpr std::string_view earlier_recall = "build_context";  // its former name, by which hosts may still call it

constexpr Hints reads{.read_only = true, .idempotent = true};
constexpr Hints adds{};
constexpr Hints adds_once{.idempotent = true};

constexpr Tool tools_offered[] = {
    {.name = "remember",
     .title = "Remember a fact",
     .description =
         "Stores a fact under its subject. A new text with the same subject replaces the old one. Says if the "
         "fact is known already.",
     .method = "corpus.ingest",
     .hints = adds_once,
     .say = say_remembered,
     .adapt = remember_params,
     .input = remember_input,
     .shown = "subject text source expires_at review_at corpus path"},
    {.name = "recall",
     .title = "Recall facts",
     .description =
         "Returns the passages that answer a question, with dates and sources, numbered for citation; nothing "
         "if nothing stored is about it.",
     .method = "context.build",
     .hints = adds,
     .say = say_context,
     .adapt = recall_params,
     .input = recall_input,
     .shown = "question corpus budget_tokens"},
    {.name = "forget",
     .title = "Forget a fact",
     .description = "Removes a fact from recall; its history remains. With erase, its text is destroyed in all copies, "
                    "if the user asks for that.",
     .method = "document.retract",
     .hints = {.destructive = true, .idempotent = true},
     .say = say_forgotten,
     .adapt = forget_params,
     .input = forget_input,
     .shown = "subject reason erase corpus"},
    {.name = "memories",
     .title = "List the facts",
     .description = "Lists the stored facts by subject.",
     .method = "document.list",
     .hints = reads,
     .say = say_memories,
     .adapt = memories_params,
     .input = memories_input,
     .shown = "corpus limit cursor"},
    {.name = "history",
     .title = "History of a fact",
     .description = "Lists the earlier texts of a subject, newest first, and when each was replaced or forgotten.",
     .method = "document.history",
     .hints = reads,
     .say = say_history,
     .adapt = history_params,
     .input = history_input,
     .shown = "subject corpus"},
    {.name = "retrieve_evidence",
     .title = "Find evidence",
     .description = "Finds passages of all corpora. Returns cards: pointers with summaries, which show a short passage "
                    "whole. Cite a card as [ref:POINTER].",
     .method = "evidence.retrieve",
     .hints = reads,
     .say = say_cards,
     .adapt = retrieve_params,
     .shown = "queries topK asof"},
    {.name = "resolve_pointer",
     .title = "Read what pointers name",
     .description = "Reads what pointers name (ev:// artifact:// manifest:// snap:// run:// log://), with the hash "
                    "checked. critical: true stops the run with SYSTEM_ERROR if something recorded is lost.",
     .method = "pointer.resolve",
     .say = say_resolved,
     .shown = "pointers critical"},
    {.name = "render_with_pointers",
     .title = "Check a draft's citations",
     .description = "Checks every [ref:POINTER] of a draft and renders it with numbered citations. Call it before you "
                    "show an answer.",
     .method = "pointer.render",
     .hints = reads,
     .say = say_rendered,
     .shown = "draft"},
    {.name = "record_event",
     .title = "Record an event",
     .description = "Appends an event to the session's run. Types: message.added {role, content}, thought.recorded "
                    "{content}, file.changed, plan.updated, state.patched, or your own x.<vendor>.<name>.",
     .method = "event.append",
     .hints = adds,
     .say = say_recorded,
     .adapt = event_params,
     .shown = "type body run_id"},
    {.name = "record_claim",
     .title = "Record a claim",
     .description =
         "Records an assertion with the pointers that support it. A pointer to something lost stops the run.",
     .method = "claim.record",
     .hints = adds,
     .say = say_claimed,
     .shown = "text pointers"},
    {.name = "run_start",
     .title = "Start a run",
     .description =
         "Starts a run, or resumes an open one. A session has a run already, unless its host turned that off.",
     .method = "run.start",
     .hints = adds_once,
     .say = say_started,
     .shown = "run_id agent goal"},
    {.name = "run_end",
     .title = "End a run",
     .description = "Ends a run with its outcome (default: the session's run).",
     .method = "run.end",
     .hints = adds,
     .say = say_ended,
     .shown = "outcome summary run_id"},
    {.name = "rehydrate",
     .title = "Restore a run's state",
     .description = "Returns a run's state: open calls, plan, working memory. Call it after a restart.",
     .method = "run.rehydrate",
     .hints = reads,
     .say = say_state,
     .shown = "run_id asof"},
    {.name = "feedback",
     .title = "Rate evidence",
     .description = "Records how useful a card was, from -1 to 1.",
     .method = "feedback.record",
     .hints = adds,
     .say = say_feedback,
     .shown = "pointer value comment"},
    {.name = "status",
     .title = "Status",
     .description = "Returns the daemon's state, or, with a handle, the result of a call that took long.",
     .method = "server.status",
     .hints = reads,
     .say = say_status,
     .input = status_input,
     .shown = "handle"},
    {.name = "list_runs",
     .toolset = "runs",
     .title = "List runs",
     .description = "Lists runs, newest first.",
     .method = "run.list",
     .hints = reads,
     .say = say_runs},
    {.name = "list_events",
     .toolset = "runs",
     .title = "List events",
     .description = "Lists events of a run (default: the session's run).",
     .method = "event.list",
     .hints = reads,
     .say = say_events},
    {.name = "take_snapshot",
     .toolset = "runs",
     .title = "Take a snapshot",
     .description = "Stores a run's state now (default: the session's run).",
     .method = "snapshot.take",
     .hints = adds,
     .say = say_json},
    {.name = "record_evidence",
     .toolset = "ledger",
     .title = "Record evidence",
     .description = "Records evidence: a text or a pointer, with its type.",
     .method = "evidence.record",
     .hints = adds,
     .say = say_json},
    {.name = "link_evidence",
     .toolset = "ledger",
     .title = "Link evidence to a claim",
     .description = "Links evidence to a claim that it supports or refutes.",
     .method = "evidence.link",
     .hints = adds_once,
     .say = say_json},
    {.name = "list_claims",
     .toolset = "ledger",
     .title = "List claims",
     .description = "Lists claims and their status.",
     .method = "claim.list",
     .hints = reads,
     .say = say_json},
    {.name = "open_task",
     .toolset = "tasks",
     .title = "Open a task",
     .description =
         "Opens a task that ends with evidence, before work on it begins. Its text and what it requires cannot "
         "be changed later.",
     .method = "task.open",
     .hints = adds,
     .say = say_opened},
    {.name = "validate_todo",
     .toolset = "tasks",
     .title = "Check a task's evidence",
     .description = "Checks evidence against an opened task (task_id) or the text of another one (content), without "
                    "completing it. Names each problem by evidence and code, with the next step.",
     .method = "task.validate",
     .hints = adds,
     .say = say_validated},
    {.name = "complete_task",
     .toolset = "tasks",
     .title = "Complete a task",
     .description =
         "Completes an opened task with evidence. A task counts as done only after this call has completed it. "
         "A refusal names evidence, code and the next step.",
     .method = "task.complete",
     .hints = adds_once,
     .say = say_completed},
    {.name = "ask",
     .toolset = "documents",
     .title = "Answer a question",
     .description = "Answers a question with sentences of the documents, each with the pointer to cite.",
     .method = "ask",
     .hints = adds,
     .say = say_answer},
    {.name = "list_corpora",
     .toolset = "documents",
     .title = "List corpora",
     .description = "Lists the corpora and how many documents each has.",
     .method = "corpus.list",
     .hints = reads,
     .say = say_json},
    {.name = "list_documents",
     .toolset = "documents",
     .title = "List documents",
     .description = "Lists the documents of a corpus.",
     .method = "document.list",
     .hints = reads,
     .say = say_json},
    {.name = "retract_document",
     .toolset = "documents",
     .title = "Retract a document",
     .description = "Removes a document from retrieval; the log keeps it.",
     .method = "document.retract",
     .hints = {.destructive = true, .idempotent = true},
     .say = say_json},
};

// Writes what a model needs to know of a value: its type, meaning and members, without limits, which the method names
// when it refuses a value.
void write_brief(json::Writer& out, const json::Value& schema) {
  static constexpr std::array<std::string_view, 6> kept{"type",  "description", "enum",
                                                        "items", "properties",  "required"};
  out.begin_object();
  for (const json::Value member : schema) {
    const std::string key = member.key();
    if (std::ranges::find(kept, key) == kept.end()) continue;
    out.key(key);
    if (key == "properties") {
      out.begin_object();
      for (const json::Value property : member) {
        out.key(property.key());
        write_brief(out, property);
      }
      out.end_object();
    } else if (member.is(json::Kind::object)) {
      write_brief(out, member);
    } else {
      out.raw(member.source());
    }
  }
  out.end_object();
}

// Describes the method's result, or a handle if the call may take long.
void write_output_schema(json::Writer& out, const Tool& tool) {
  out.key("outputSchema").begin_object().member("type", "object").key("anyOf").begin_array();
  out.raw(plain_schema(tool.method, "result")).raw(handle_schema).end_array().end_object();
}

// A capsule's results have members of their own.
void write_tool(json::Writer& out, const Tool& tool, bool of_daemon) {
  out.begin_object().member("name", tool.name).member("title", tool.title).member("description", tool.description);
  out.raw_member("inputSchema",
                 tool.shown.empty() ? input_schema(tool).source() : std::string_view(shown_schema(tool)));
  if (tool.shown.empty() && of_daemon) write_output_schema(out, tool);
  out.key("annotations").begin_object().member("readOnlyHint", tool.hints.read_only);
  if (!tool.hints.read_only) {
    out.member("destructiveHint", tool.hints.destructive).member("idempotentHint", tool.hints.idempotent);
  }
  out.member("openWorldHint", false).end_object().end_object();
}

}  // namespace

std::span<const Tool> tool_table() { return tools_offered; }

std::string shown_schema(const Tool& tool) {
  const json::Value all = input_schema(tool);
  std::set<std::string> names;
  json::Writer out;
  out.begin_object().member("type", "object").key("properties").begin_object();
  for (std::string_view rest = tool.shown; !rest.empty();) {
    const std::string name(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    out.key(name);
    write_brief(out, all["properties"][name]);
    names.insert(name);
  }
  out.end_object();
  std::vector<std::string> required;
  for (const json::Value name : all["required"]) {
    if (names.contains(name.string_or(""))) required.push_back(name.string_or(""));
  }
  if (!required.empty()) out.member("required", required);
  return std::move(out.end_object()).text();
}

// Cached, since building a schema takes up to 30 µs.
json::Value input_schema(const Tool& tool) {
  struct Input {
    explicit Input(const Tool& tool)
        : text(tool.input ? tool.input() : plain_schema(tool.method, "params")),
          document(*json::parse(std::string_view(text))) {}
    const std::string text;
    const json::Document document;
  };
  static const auto inputs = [] {
    std::map<std::string_view, std::unique_ptr<const Input>> all;
    for (const Tool& one : tools_offered) all.emplace(one.name, std::make_unique<const Input>(one));
    return all;
  }();
  return inputs.at(tool.name)->document.root();
}

const Tool* ToolList::find(std::string_view name) const {
  if (name == earlier_recall) name = "recall";
  const auto found = std::find_if(tools.begin(), tools.end(), [&](const Tool* tool) { return tool->name == name; });
  return found == tools.end() ? nullptr : *found;
}

ToolList offered_tools(const ServerOptions& options) {
  ToolList offered;
  json::Writer list;
  list.begin_array();
  for (const Tool& tool : tools_offered) {
    const auto& sets = options.toolsets;
    if (options.only_tools() && std::ranges::find(options.methods, tool.method) == options.methods.end()) continue;
    if (!tool.toolset.empty() && std::find(sets.begin(), sets.end(), tool.toolset) == sets.end()) continue;
    offered.tools.push_back(&tool);
    write_tool(list, tool, !options.only_tools());
  }
  if (options.extension != nullptr) options.extension->write_tools(list);
  offered.list = std::move(list.end_array()).text();
  return offered;
}

Status check_toolsets(const std::vector<std::string>& names, std::string_view whose) {
  std::vector<std::string_view> known;
  for (const Tool& tool : tools_offered) {
    if (!tool.toolset.empty() && (known.empty() || known.back() != tool.toolset)) known.push_back(tool.toolset);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error(Errc::invalid_argument,
                   fmt::format("{}: unknown toolset {}. Known: {}.", whose, name, fmt::join(known, ", ")));
    }
  }
  return success();
}

}  // namespace muniment::mcp
