// Writes the events of an agent's turns, which the formats of agents share. An answer of a model begins a step; the
// tool calls that it asks for and their results follow in the same step.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// Names of members that a format is known to have.
using KnownMembers = std::span<const std::string_view>;

// Members of a source that have no place in an event. Those that the format is known to have, its details, become the
// member "x_details" of the event; all others were not understood, and become "x_source".
class SourceRest {
 public:
  // Keeps the members of `object` that `placed` does not name, except null. With a name in `under`, they become the
  // members of one object of that name. A list instead of an object is kept whole.
  SourceRest& keep(const json::Value& object, std::initializer_list<std::string_view> placed,
                   std::string_view under = {});
  SourceRest& keep_value(std::string_view name, const json::Value& value);  // nothing if it is absent or null
  SourceRest& keep_json(std::string_view name, std::string json);
  // The same for a member that is a detail whatever its name.
  SourceRest& detail(std::string_view name, const json::Value& value);
  SourceRest& detail_json(std::string_view name, std::string json);

  bool empty() const { return members_.empty(); }
  void write(json::Writer& body, KnownMembers known = {}) const;

 private:
  struct Member {
    std::string under;  // empty: of the event's own
    std::string name;   // in the source
    std::string key;    // the name, unless another member has it
    std::string json;
    bool is_detail = false;
  };
  void add(std::string_view under, std::string_view key, std::string json, bool is_detail);
  void write_group(json::Writer& body, std::string_view name, KnownMembers known, bool details) const;

  std::vector<Member> members_;
};

struct TurnAnswer {
  std::string model = {};  // empty: unknown
  std::string_view status = "ok";
  std::vector<std::string> finish_reasons = {};
  std::vector<std::string> parts = {};  // content, each the JSON of a part
  std::string usage = {};               // JSON; empty: none
  std::optional<std::int64_t> duration_us = {};
  SourceRest rest = {};
};

struct TurnCall {
  std::string name;
  std::string_view kind = "function";
  std::string source_id = {};     // id in the source; empty: none
  std::string requested_by = {};  // call_id of the model's answer; empty: none
  std::string arguments = {};     // JSON; empty: none
  std::string server = {};        // of MCP; empty: unknown
  SourceRest rest = {};
};

struct TurnReturn {
  std::string call_id;
  std::string_view status = unknown_end;
  std::vector<std::string> parts = {};
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::int64_t> duration_us = {};
  std::optional<std::string> occurred_at = {};  // empty: unknown; nullopt: the time of the item
  SourceRest rest = {};
};

struct TurnChange {
  std::string path;
  std::string_view change;  // created, modified, renamed, deleted
  std::string call_id = {};
  std::string diff = {};       // unified; empty: none
  std::string from_path = {};  // empty: not renamed
};

class TurnWriter {
 public:
  explicit TurnWriter(std::vector<ImportedEvent>& events, KnownMembers known = {}) : events_(events), known_(known) {}

  KnownMembers known() const { return known_; }

  // The next item of the source: its number is a part of the ids of the events that follow.
  void begin_item(std::string occurred_at = {});
  std::size_t item() const { return items_; }

  // Ends the open step and begins the next one.
  void begin_step();
  void end_step();
  std::size_t steps() const { return steps_; }

  // Records an answer of a model in the open step; returns its call_id.
  std::string answer(const TurnAnswer& answer);
  // Records a tool call; returns its call_id, which is that of the source unless it was used before.
  std::string call(const TurnCall& call);
  void returned(const TurnReturn& result);
  void changed(const TurnChange& file);
  void message(std::string_view role, const std::vector<std::string>& parts, const SourceRest& rest);
  // Records members of the source that belong to no other event as x.<format>.source; nothing if there are none.
  void source(std::string_view format, std::string_view part, const SourceRest& rest);
  void add(std::string_view what, std::string type, std::string body);

 private:
  std::string new_call_id(const std::string& source_id);

  std::vector<ImportedEvent>& events_;
  const KnownMembers known_;
  std::size_t items_ = 0;
  std::size_t steps_ = 0;
  std::size_t calls_ = 0;
  std::string step_;  // the open step; empty: none
  std::string occurred_at_;
  std::set<std::string> kinds_;     // event types of this item
  std::set<std::string> used_ids_;  // a source may repeat an id
};

// Content parts as JSON.
std::string text_part_json(std::string_view text);
std::string reasoning_part_json(std::string_view text);
// `arguments` may be an object or the text of one; it is kept as it is in the source.
std::string tool_call_part_json(const std::string& id, std::string_view name, const json::Value& arguments);
// The parts of content that is a text, null, or a list of texts and images; adds what it does not know to `rest`.
std::vector<std::string> content_parts(const json::Value& content, SourceRest& rest);
// The texts of the content, one after the other.
std::string content_text(const json::Value& content);

// Returns the JSON of tool arguments: an object, or the object whose text `arguments` is, or a string.
std::string arguments_json(const json::Value& arguments);

// Returns RFC 3339 for a time in that form, the same without an offset (taken as UTC), or seconds since 1970; empty for
// any other value.
std::string source_time(const json::Value& value);

// Returns microseconds for a number of seconds; nullopt for any other value.
std::optional<std::int64_t> microseconds_of(const json::Value& seconds);

// Returns the usage of a model call in the schema's names, from the names of OpenAI, Anthropic, LiteLLM and OpenHands;
// empty if neither the tokens read nor those written are known. `cost`: US dollars, if it is a number.
std::string call_usage(const json::Value& usage, const json::Value& cost);

// Keeps the members of a usage that call_usage does not read.
void keep_usage_rest(SourceRest& rest, const json::Value& usage);

// The number of input_tokens or output_tokens in such a usage; 0 if it is empty.
std::int64_t tokens_in(const std::string& usage, std::string_view name);

// Returns the heading of the task in the first message of a user: the first line of <pr_description> or
// <issue_description>, or of the text after "ISSUE:"; otherwise the whole text.
std::string task_heading(std::string_view text);

// The strings that are found anywhere in a value; two lists of messages that repeat each other are compared by it.
class StringSet {
 public:
  void add(const json::Value& value);
  void add(std::string text) { strings_.insert(std::move(text)); }
  bool has_all(const json::Value& value) const;

 private:
  std::set<std::string> strings_;
};

// Returns whether a list has an item that is an object.
bool has_object(const json::Value& list);

// Returns a number or a text as a string for a label; empty for any other value.
std::string label_word(const json::Value& value);
// Adds the label unless it is empty.
void label_run(ImportedRun& run, const char* name, const json::Value& value);

}  // namespace muniment::cli
