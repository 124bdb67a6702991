// Describes one event in a few words for `run show` and `event list`. A pure function from JSON to text; the text comes
// from the event and must be escaped before printing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "client/output.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {

using events::Weight;

struct Description {
  std::string glyph;  // one column
  Tone tone = Tone::plain;
  std::string head;  // "open", "$ make test"
  std::string tail;  // the rest, shown dim
  Weight weight = Weight::normal;
};

Description describe(const json::Value& event);

// True for a type whose line depends on the values of its body. The catalogue has the texts of the others.
bool has_own_line(events::Type type);

// Tracks steps that were open when the daemon was interrupted: a step of the same name started afterwards continues the
// same work.
class InterruptedSteps {
 public:
  // Takes the events of one run in order; changes the description of a continued step.
  void follow(const json::Value& event, Description& description);

 private:
  struct Step {
    std::string name;
    std::int64_t seq = 0;  // seq of its start
  };
  std::map<std::string, Step> open_;  // key: step_id
  std::set<std::string> cut_;         // names of interrupted steps
};

// Returns the displayed status of a run: open, ended or halted.
Tone tone_of_status(std::string_view status);

// Returns the text of a content list; for a part stored as an artifact, its preview.
std::string text_of_content(const json::Value& content);
// Returns its size in bytes, including artifacts.
std::uint64_t size_of_content(const json::Value& content);

// Returns the result at the end of a call's line, "ok 4.4 KiB"; for tool.returned, model.answered and command.ended.
Description describe_result(const json::Value& event);

// Returns whether the content of evidence was made from a command that a client reported, and no executor observed.
bool is_reported(const json::Value& content);
// Returns what weakens evidence of a command: that a client reported it, the agent's own program, a file of tests that
// its command line leaves out. Empty: nothing.
std::string caveats_of(const json::Value& content);

// Returns head and tail in one text.
std::string summary_of(const json::Value& event);

}  // namespace muniment::cli
