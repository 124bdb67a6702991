// Translates the events that OpenHands itself writes: those of the server (`action` and `observation`), which its UI
// exports as a list and its evaluation as `history`, and those of its SDK (`kind`).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "adapters/import/formats/chat_turns.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// Members of events that say more about an event of the log, or that only the program uses.
extern const KnownMembers openhands_members;

// State that both kinds of events share: the run so far, and the calls without a result.
struct OpenHandsState {
  struct Call {
    std::string call_id;
    std::string action;   // or the kind of the action
    std::string command;  // command of an edit: create, str_replace …
  };

  ImportedRun& run;
  TurnWriter turns;
  std::string model;                                 // named by the source; empty: unknown
  std::map<std::string, Call> calls = {};            // by the id of the action, and by that of the tool call
  std::map<std::string, std::string> usage_of = {};  // by the id of the model's response
  std::map<std::string, std::int64_t> duration_of = {};
  std::string response_id = {};  // id of the last answer
  std::set<std::string> response_ids = {};
  std::string model_call = {};                       // its call_id
  std::int64_t input_tokens = 0, output_tokens = 0;  // of all answers
  std::string outcome = {};                          // as the agent or its state say; empty: unknown
  std::string summary = {};

  explicit OpenHandsState(ImportedRun& target) : run(target), turns(target.events, openhands_members) {}

  // Returns the call and forgets it; an empty call_id if there is none.
  Call take(std::initializer_list<std::string> ids);
  void remember(std::initializer_list<std::string> ids, const Call& call);
  void count(const std::string& usage);
  // Takes the totals of a metrics object: usage of the whole run, and of single responses.
  void take_metrics(const json::Value& metrics);
  void set_usage(const json::Value& usage, const json::Value& cost);
};

class OpenHandsEvents {
 public:
  explicit OpenHandsEvents(OpenHandsState& state) : state_(state), turns_(state.turns) {}
  void add(const json::Value& event);

 private:
  void add_action(const json::Value& event, const std::string& action);
  void add_message(const json::Value& event);
  void add_call(const json::Value& event, const std::string& action);
  void add_answer(const json::Value& response, const std::string& thought);
  void keep_metadata(SourceRest& rest, const json::Value& event) const;
  void add_observation(const json::Value& event, const std::string& observation);
  void add_return(const json::Value& event, const std::string& observation, const OpenHandsState::Call& call);
  void add_change(const json::Value& event, const OpenHandsState::Call& call);
  void add_error(const json::Value& event);
  void add_condensation(const json::Value& event);
  void take_end(const std::string& action, const json::Value& arguments);

  OpenHandsState& state_;
  TurnWriter& turns_;
};

class OpenHandsSdkEvents {
 public:
  explicit OpenHandsSdkEvents(OpenHandsState& state) : state_(state), turns_(state.turns) {}
  // Pass all events of the list once before the first call of `add`: one answer asks for several calls, and the model
  // is named in the state.
  void look_ahead(const json::Value& event);
  void add(const json::Value& event);

 private:
  void add_system(const json::Value& event);
  void add_message(const json::Value& event);
  void add_action(const json::Value& event);
  void add_answer(const json::Value& event);
  void add_return(const json::Value& event);
  void add_changes(const json::Value& observation, const OpenHandsState::Call& call);
  void add_refusal(const json::Value& event, std::string_view status, const json::Value& text);
  void add_error(const json::Value& event);
  void add_condensation(const json::Value& event);
  void add_state(const json::Value& event);

  OpenHandsState& state_;
  TurnWriter& turns_;
  std::map<std::string, std::vector<json::Value>> actions_of_;  // by the id of the model's response
};

}  // namespace muniment::cli
