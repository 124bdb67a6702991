// The table of tools, and the list that a server offers.
#include "mcp/offer/tools.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "mcp/offer/fixture.hpp"
#include "mcp/offer/tool_inputs.hpp"
#include "mcp/offer/tool_texts.hpp"
#include "mcp/server.hpp"

namespace muniment::mcp {
namespace {

constexpr std::string_view handle_schema =
    R"({"type":"object","properties":{"handle":{"type":"string","description":"For the tool status"},)"
    R"("state":{"const":"working"}},"required":["handle","state"]})";

constexpr Hints reads{.read_only = true, .idempotent = true};
constexpr Hints adds{};
constexpr Hints adds_once{.idempotent = true};

constexpr Tool tools_offered[] = {
    {.name = "retrieve_evidence",
     .title = "Find evidence",
     .description =
         "Finds passages that answer questions. Returns cards: pointers with summaries of at most 600 bytes, "
         "which show a short passage whole. Cite a card's pointer as [ref:POINTER]; read its text with resolve_pointer.",
     .method = "evidence.retrieve",
     .hints = reads,
     .say = say_cards,
     .adapt = retrieve_params},
    {.name = "render_with_pointers",
     .title = "Check a draft's citations",
     .description = "Checks every [ref:POINTER] of a draft against the stored bytes and renders it with numbered "
                    "citations. Call it before you show an answer; it names the pointers that do not resolve.",
     .method = "pointer.render",
     .hints = reads,
     .say = say_rendered},
    {.name = "resolve_pointer",
     .title = "Read what pointers name",
     .description =
         "Reads what pointers name (ev:// artifact:// manifest:// snap:// run:// log://), with the hash "
         "checked. critical: true retries once and then stops the run with SYSTEM_ERROR if something recorded is "
         "lost.",
     .method = "pointer.resolve",
     .say = say_resolved},
    {.name = "build_context",
     .title = "Build a context pack",
     .description = "Collects the passages that answer a question within a token budget, with citations.",
     .method = "context.build",
     .hints = adds,
     .say = say_context},
    {.name = "remember",
     .title = "Remember a text or a file",
     .description =
         "Stores a document with its source in a corpus, so that retrieve_evidence finds it. A document with "
         "the id of an earlier one becomes its next revision.",
     .method = "corpus.ingest",
     .hints = adds_once,
     .say = say_remembered,
     .adapt = remember_params,
     .input = remember_input},
    {.name = "run_start",
     .title = "Start a run",
     .description = "Starts a run, or resumes an open one with the same run_id. A session has a run already, unless "
                    "its host turned that off.",
     .method = "run.start",
     .hints = adds_once,
     .say = say_started},
    {.name = "run_end",
     .title = "End a run",
     .description = "Ends a run with its outcome (default: the session's run).",
     .method = "run.end",
     .hints = adds,
     .say = say_ended},
    {.name = "record_event",
     .title = "Record an event",
     .description =
         "Appends an event to a run (default: the session's run), durably. Types: message.added, "
         "thought.recorded, model.called, file.changed, plan.updated, state.patched, or your own x.<vendor>.<name>.",
     .method = "event.append",
     .hints = adds,
     .say = say_recorded,
     .adapt = event_params},
    {.name = "record_claim",
     .title = "Record a claim",
     .description = "Records an assertion with the pointers that support it. A pointer to something lost stops the run "
                    "with SYSTEM_ERROR; a mistyped one is refused.",
     .method = "claim.record",
     .hints = adds,
     .say = say_claimed},
    {.name = "rehydrate",
     .title = "Restore a run's state",
     .description = "Returns a run's state as of now or of an earlier position: open calls, plan, working memory. Call "
                    "it after a restart.",
     .method = "run.rehydrate",
     .hints = reads,
     .say = say_state},
    {.name = "feedback",
     .title = "Rate evidence",
     .description = "Records how useful a card was, from -1 to 1.",
     .method = "feedback.record",
     .hints = adds,
     .say = say_feedback},
    {.name = "status",
     .title = "Status",
     .description = "Returns the daemon's state, or, with a handle, the result of a call that took long.",
     .method = "server.status",
     .hints = reads,
     .say = say_status,
     .input = status_input,
     .output = false},
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

// Describes the method's result, or a handle if the call may take long.
void write_output_schema(json::Writer& out, const Tool& tool) {
  out.key("outputSchema").begin_object().member("type", "object").key("anyOf").begin_array();
  out.raw(plain_schema(tool.method, "result")).raw(handle_schema).end_array().end_object();
}

void write_tool(json::Writer& out, const Tool& tool) {
  out.begin_object().member("name", tool.name).member("title", tool.title).member("description", tool.description);
  out.raw_member("inputSchema", input_schema(tool).source());
  if (tool.output) write_output_schema(out, tool);
  out.key("annotations").begin_object().member("title", tool.title).member("readOnlyHint", tool.hints.read_only);
  out.member("destructiveHint", tool.hints.destructive).member("idempotentHint", tool.hints.idempotent);
  out.member("openWorldHint", false).end_object().end_object();
}

}  // namespace

std::span<const Tool> tool_table() { return tools_offered; }

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
  const auto found = std::find_if(tools.begin(), tools.end(), [&](const Tool* tool) { return tool->name == name; });
  return found == tools.end() ? nullptr : *found;
}

ToolList offered_tools(const ServerOptions& options) {
  ToolList offered;
  json::Writer list;
  list.begin_array();
  for (const Tool& tool : tools_offered) {
    const auto& sets = options.toolsets;
    if (!tool.toolset.empty() && std::find(sets.begin(), sets.end(), tool.toolset) == sets.end()) continue;
    offered.tools.push_back(&tool);
    write_tool(list, tool);
  }
  if (options.fixture) fixture::write_tools(list);
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
