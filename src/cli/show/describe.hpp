// One event in a few words: what `run show` and `event list` print of it. Pure: JSON in, text out;
// the text is what stands in the event and is not yet safe to print.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "cli/show/output.hpp"

namespace muniment::cli {

// How much a line asks for attention.
enum class Weight : std::uint8_t { quiet, normal, error, loud };

struct Description {
  std::string glyph;  // one column
  Tone tone = Tone::plain;
  std::string head;  // "open", "$ make test"
  std::string tail;  // the rest, shown dim
  Weight weight = Weight::normal;
};

Description describe(const json::Value& event);

// Steps that were open when the daemon was interrupted: one of that name that is started afterwards is the same work,
// which goes on, and is not a second one.
class InterruptedSteps {
 public:
  // Takes the events of one run in their order; changes what is said of a step that goes on.
  void follow(const json::Value& event, Description& description);

 private:
  struct Step {
    std::string name;
    std::int64_t seq = 0;  // of its start
  };
  std::map<std::string, Step> open_;  // by step_id
  std::set<std::string> cut_;         // names
};

// How the status of a run is shown: open, ended or halted.
Tone tone_of_status(std::string_view status);

// The text of a content list; a part that is kept as an artifact gives its preview.
std::string text_of_content(const json::Value& content);
// Its bytes, artifacts included.
std::uint64_t size_of_content(const json::Value& content);

// The result that a call's line ends with, "ok 4.4 KiB"; for tool.returned, model.answered and
// command.ended.
Description describe_result(const json::Value& event);

// Head and tail in one text.
std::string summary_of(const json::Value& event);

}  // namespace muniment::cli
