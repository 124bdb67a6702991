// The state of a run as plain data (docs/format.md, State). fold.cpp updates it event by event; run_state_json.cpp
// writes and reads the document.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_tree.hpp"
#include "base/limits.hpp"
#include "events/catalogue_types.hpp"
#include "events/cost.hpp"
#include "events/event.hpp"

namespace muniment::events {

inline constexpr std::size_t run_labels_bytes_max = 61'440;  // all labels of a run, as canonical JSON

using Text = std::optional<std::string>;    // null in the document if absent
using Scalar = std::optional<std::string>;  // JSON text of a string, number or boolean

// A list of open items, limited to the newest limits::state_list_items_max. `is` compares an item's key.
template <typename Item>
struct OpenList {
  std::vector<Item> items;

  template <typename Is>
  void close(Is&& is) {
    const auto found = std::find_if(items.begin(), items.end(), is);
    if (found != items.end()) items.erase(found);
  }

  template <typename Is>
  void open(Item item, Is&& is, std::int64_t& dropped) {
    close(is);
    items.push_back(std::move(item));
    if (items.size() > limits::state_list_items_max) {
      items.erase(items.begin());
      ++dropped;
    }
  }
};

struct AgentState {
  Text name, id, version;
};

struct ParentState {
  Text run_id;
  std::int64_t run_seq = 0;
};

struct OpenStep {
  std::string step_id;
  Text name, kind, parent_step_id;
  std::int64_t run_seq = 0;
};

struct PendingCall {
  std::string call_id;
  std::string_view kind;  // "model", "tool" or "command"
  Text name;
  std::int64_t run_seq = 0;
};

struct PendingApproval {
  std::string approval_id;
  Text call_id;
  std::int64_t run_seq = 0;
};

struct PendingChild {
  std::string run_id;
  Text kind;
  bool halted = false;
  std::int64_t run_seq = 0;
};

struct PlanItem {
  Text id, text, status;
};

struct OpenItem {  // a claim or a task
  std::string id;
  std::int64_t run_seq = 0;
};

struct LastBudget {
  Text budget;
  Scalar limit, used;
  std::int64_t run_seq = 0;
};

struct HaltState {
  Text code, reason, pointer, expected, actual;
  std::int64_t attempts = 0;
  std::int64_t seq = 0;
  Time recorded_at;
};

struct RunState {
  std::int64_t seq = -1;
  std::int64_t run_seq = -1;
  Hash run_hash{};

  Text run_id;
  Text status, outcome, origin, goal;
  std::optional<AgentState> agent;
  std::map<std::string, std::string> labels;  // values are the JSON texts of scalars
  std::optional<ParentState> parent;
  std::optional<Time> started_at, last_event_at;

  OpenList<OpenStep> steps;
  std::int64_t steps_done = 0;
  std::int64_t steps_dropped = 0;

  OpenList<PendingCall> calls;
  OpenList<PendingApproval> approvals;
  OpenList<PendingChild> children;
  std::int64_t pending_dropped = 0;

  Text manifest_id;
  std::int64_t message_count = 0;
  std::optional<std::int64_t> first_message, last_message, compacted_at;

  std::vector<PlanItem> plan;

  OpenList<OpenItem> claims;
  std::int64_t claim_count = 0;
  std::int64_t claims_dropped = 0;

  OpenList<OpenItem> tasks;
  std::int64_t tasks_opened = 0;
  std::int64_t tasks_completed = 0;
  std::int64_t tasks_dropped = 0;

  std::int64_t budgets_exceeded = 0;
  std::optional<LastBudget> last_budget;

  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::map<std::string, Picos> cost;
  std::int64_t uncounted = 0;

  std::array<std::int64_t, type_count> counts{};  // by Type; foreign types are counted below
  std::map<std::string, std::int64_t, std::less<>> other_counts;

  std::int64_t artifact_count = 0;
  std::int64_t artifact_bytes = 0;

  std::optional<HaltState> halt;
  json::Tree working = json::Tree::object();
  std::int64_t labels_refused = 0;
  std::int64_t patches_refused = 0;
};

// Defined in fold.cpp: applies one event. `spilled_patch` as for State::apply.
void fold(RunState& state, const Event& event, std::string_view spilled_patch);

// Applies a state.patched body to `working`, completely or not at all. Errors: invalid_argument, too_large.
Status patch_working(json::Tree& working, const json::Value& body, std::string_view spilled_patch);

// Defined in run_state_json.cpp.
std::string write_document(const RunState& state);
Result<RunState> read_document(std::string_view document);

// The canonical size of labels as a JSON object.
std::size_t labels_bytes(const std::map<std::string, std::string>& labels);

}  // namespace muniment::events
