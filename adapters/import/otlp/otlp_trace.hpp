// Translates one trace of OTLP spans to a run according to the GenAI semantic conventions, version otlp_conventions,
// and to the forms used before 1.37 (gen_ai.system, messages as events). Spans of other conventions are rewritten first
// (otlp_conventional.hpp).
//
// The trace is the run, and its single outermost invoke_agent span names the agent; every other invoke_agent span is a
// child run. A model or tool call becomes two events, at its start and its end; another span with child spans becomes a
// step. Unknown data is kept unchanged as x.otlp.span, x.otlp.event and x.otlp.log, or in x_source.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/import/events.hpp"
#include "adapters/import/otlp/otlp_file.hpp"
#include "adapters/import/otlp/otlp_messages.hpp"
#include "adapters/import/otlp/otlp_value.hpp"

namespace muniment::cli {

inline constexpr std::string_view otlp_format = "otlp";
inline constexpr std::string_view otlp_conventions = "1.38.0";

class OtlpTrace {
 public:
  OtlpTrace(const OtlpFile& file, const OtlpTraceItems& trace);

  std::string name() const { return "otlp-" + trace_.id; }
  // Produces the actions of one trace in the order of the trace.
  Result<std::string> sha256_of_all() const;
  // Returns agent, goal, labels, outcome and summary without events.
  Result<ImportedRun> head();
  // Passes the actions to `take` in order; `take` empties the list. Errors: those of the file and of `take`.
  Status each(const std::function<Status(std::vector<RunAction>&)>& take);

 private:
  static constexpr std::uint32_t none = OtlpOrder::none;

  // A run of the trace: the main run or that of a subagent.
  struct Run {
    std::string key;                 // empty: the main run
    std::set<std::string> call_ids;  // a trace may repeat an id
    std::map<std::string, std::uint32_t>
        said;                                // hashes of messages in the run, since a call repeats the dialogue so far
    std::set<std::string> tool_definitions;  // hashes
    std::unordered_map<std::string, std::string> asked_by;  // tool call → the model call that requested it
    std::unordered_map<std::string, std::deque<std::string>> asked_by_name;  // the same for calls without an id
  };
  // A call that has begun.
  struct Call {
    std::string call_id;
    std::vector<std::string> parts;  // parts of an answer, from events
    std::vector<std::string> reasons;
    std::vector<std::string> sources;  // data that the parts cannot represent
  };
  // An event of a span, or a log record.
  struct Event {
    std::uint32_t item = 0;
    std::string what;  // unique within the item
    std::string name;
    json::Value value;
    OtlpAttributes attributes;
    json::Value body;  // AnyValue of a log record
    std::string occurred_at;
  };
  using Placed = std::vector<std::string_view>;  // attributes that a field of the body holds

  // Plan: the kind, run and step of each item.
  void plan();
  void plan_kinds();
  OtlpKind kind(std::uint32_t item) const { return kinds_[item]; }
  // A details log whose span is not in the file is a call by itself.
  bool is_lone_call(std::uint32_t item) const { return items_[item].is_details && !moved_.contains(item); }
  void note_asked(Run& run, const OtlpParts& parts, const std::string& call_id);
  std::optional<std::string> take_asked(std::uint32_t item, const std::string& id, const std::string& name);
  // Returns the outcome of a span from its status; by the conventions, an unset status without an error means ok.
  static bool is_error(const json::Value& span);
  static bool is_ok(const json::Value& span);
  std::string_view status_of(std::uint32_t item, const json::Value& span, const OtlpAttributes& attributes) const;
  bool is_step(std::uint32_t item) const { return kind(item) == OtlpKind::other && has_children_[item]; }
  bool starts_run(std::uint32_t item) const { return kind(item) == OtlpKind::agent && item != main_agent_; }
  std::string name_of(std::uint32_t item) const;
  Run& run_of(std::uint32_t item) { return runs_[run_of_[item]]; }

  Result<json::Value> load(std::uint32_t item);
  Status rewrite_loaded(std::uint32_t item);
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
  // `role` is that of messages without one.
  void add_message_list(std::uint32_t item, const json::Value& list, std::string_view role, std::string_view what,
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
  std::vector<OtlpKind> kinds_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> details_;  // details logs of each model call …
  std::map<std::uint32_t, std::set<std::string>> moved_;         // … and the attributes that the call has taken
  std::vector<bool> has_children_;
  std::vector<bool> has_twin_;  // an earlier item has the same span id
  std::vector<std::uint32_t> run_of_, step_of_;
  std::uint32_t main_agent_ = none;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> scopes_;                            // in order of their first items …
  std::unordered_map<std::uint32_t, std::size_t> scope_places_;  // … and the index of each
  std::unordered_map<std::uint32_t, Call> calls_;                // open calls, by item

  std::uint32_t loaded_ = none;
  std::string text_;  // text of the loaded item
  std::optional<json::Document> document_;
  std::vector<RunAction> actions_;
};

}  // namespace muniment::cli
