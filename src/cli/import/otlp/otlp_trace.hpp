// One trace of OTLP spans as a run: what each span means by the GenAI semantic conventions, version otlp_conventions,
// and by what instrumentations of before 1.37 write (gen_ai.system, messages as events).
//
// The trace is the run, and its one outermost invoke_agent span says whose; every other invoke_agent span is a child
// run. A call of a model or a tool is two events, at its start and at its end; another span that has spans in it is a
// step. What is not known stays as it is, as x.otlp.span, x.otlp.event and x.otlp.log, or beside what is known, as
// x_source.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/import/events.hpp"
#include "cli/import/otlp/otlp_file.hpp"
#include "cli/import/otlp/otlp_messages.hpp"
#include "cli/import/otlp/otlp_value.hpp"

namespace muniment::cli {

inline constexpr std::string_view otlp_format = "otlp";
inline constexpr std::string_view otlp_conventions = "1.38.0";

class OtlpTrace {
 public:
  OtlpTrace(const OtlpFile& file, const OtlpTraceItems& trace);

  std::string name() const { return "otlp-" + trace_.id; }
  // Of all that the trace says, in its own order, wherever it stands in the file.
  Result<std::string> sha256_of_all() const;
  // Agent, goal, labels, outcome and summary; no events.
  Result<ImportedRun> head();
  // What is to be done, in order; `take` empties it. Errors: the file's, and those of `take`.
  Status each(const std::function<Status(std::vector<RunAction>&)>& take);

 private:
  static constexpr std::uint32_t none = OtlpOrder::none;

  // A run of the trace: the trace's own, or a subagent's.
  struct Run {
    std::string key;                 // empty: the trace's own
    std::set<std::string> call_ids;  // a trace may use one twice
    std::map<std::string, std::uint32_t>
        said;  // messages that are in the run, by hash: a call repeats the dialogue so far
    std::set<std::string> tool_definitions;  // their hashes
    std::unordered_map<std::string, std::string>
        asked_by;  // calls of tools that a model asked for: by which call of it
  };
  // A call that has begun.
  struct Call {
    std::string call_id;
    std::vector<std::string> parts;  // of an answer, from events
    std::vector<std::string> reasons;
    std::vector<std::string> sources;  // of what had no place in a part
  };
  // An event of a span, or a log record.
  struct Event {
    std::uint32_t item = 0;
    std::string what;  // tells it apart within the item
    std::string name;
    json::Value value;
    OtlpAttributes attributes;
    json::Value body;  // AnyValue of a log record
    std::string occurred_at;
  };
  using Placed = std::vector<std::string_view>;  // attributes that have a place in a body

  // Plan: whose run an item belongs to, in which step it stands.
  void plan();
  // How a span ended, by its status: one that has ended without an error is ok by the conventions, which leave such a
  // status unset.
  static bool is_error(const json::Value& span);
  static bool is_ok(const json::Value& span);
  std::string_view status_of(std::uint32_t item, const json::Value& span, const OtlpAttributes& attributes) const;
  bool is_step(std::uint32_t item) const { return items_[item].kind == OtlpKind::other && has_children_[item]; }
  bool starts_run(std::uint32_t item) const { return items_[item].kind == OtlpKind::agent && item != main_agent_; }
  std::string name_of(std::uint32_t item) const;
  Run& run_of(std::uint32_t item) { return runs_[run_of_[item]]; }

  Result<json::Value> load(std::uint32_t item);
  std::string goal_of(const json::Value& span) const;

  // otlp_trace.cpp: edges
  Status add_repairs();
  void add_resource(std::size_t index);
  void begin(std::uint32_t item);
  void end(std::uint32_t item);
  void begin_agent(std::uint32_t item);
  void end_agent(std::uint32_t item);
  void begin_other(std::uint32_t item);
  void end_other(std::uint32_t item);
  void begin_model(std::uint32_t item);
  void end_model(std::uint32_t item);
  void begin_tool(std::uint32_t item);
  void end_tool(std::uint32_t item);
  void emit(std::uint32_t item, std::string_view what, std::string type, std::string body, std::string occurred_at);

  // otlp_events.cpp: messages and events
  void add_messages(std::uint32_t item, const OtlpAttributes& attributes, std::string_view what,
                    const std::string& occurred_at, Placed& placed);
  void add_message_list(std::uint32_t item, const json::Value& list, std::string_view what,
                        const std::string& occurred_at);
  void add_message(std::uint32_t item, const std::string& what, std::string_view role, const OtlpParts& parts,
                   std::string_view source, const std::string& occurred_at);
  void add_span_events(std::uint32_t item, bool at_begin);
  void add_log(std::uint32_t item);
  void add_event(const Event& event);
  void add_event_message(const Event& event, std::string_view role);
  void add_choice(const Event& event);
  void add_exception(const Event& event);
  void add_error(std::uint32_t item);
  bool remember(Run& run, std::string_view role, const OtlpParts& parts, std::string_view source,
                std::map<std::string, std::uint32_t>* counts);

  // otlp_trace.cpp: parts of bodies
  std::string rest_of(const json::Value& span, const Placed& placed) const;
  void write_place(json::Writer& body, std::uint32_t item, const json::Value& span, const Placed& placed) const;
  void write_outcome(json::Writer& body, std::uint32_t item, const json::Value& span,
                     const OtlpAttributes& attributes) const;
  std::string new_call_id(std::uint32_t item, const OtlpAttributes& attributes, std::string_view key, Placed& placed);
  std::string start_time(std::uint32_t item) const;
  std::string end_time(std::uint32_t item) const;

  const OtlpFile& file_;
  const OtlpTraceItems& trace_;
  const OtlpItem* const items_;
  OtlpOrder order_;
  std::vector<bool> has_children_;
  std::vector<bool> has_twin_;  // another item before it has its span id
  std::vector<std::uint32_t> run_of_, step_of_;
  std::uint32_t main_agent_ = none;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> scopes_;                            // in the order of their first items …
  std::unordered_map<std::uint32_t, std::size_t> scope_places_;  // … and their places in it
  std::unordered_map<std::uint32_t, Call> calls_;                // that are open, by item

  std::uint32_t loaded_ = none;
  std::string text_;  // of the loaded item
  std::optional<json::Document> document_;
  std::vector<RunAction> actions_;
};

}  // namespace muniment::cli
