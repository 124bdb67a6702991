// Derives from `run.` events the part of a run's state that the table `run` also holds (docs/format.md, State and
// Rows).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/json/json.hpp"

namespace muniment::verify {

using Text = std::optional<std::string>;  // nullopt is null

// Read members of a body as docs/format.md defines. They never fail.
Text text_of(const json::Value& body, std::string_view member);
std::int64_t natural_of(const json::Value& body, std::string_view member);
Text scalar_of(const json::Value& value);  // canonical text; nullopt if `value` is not a scalar

struct RunEvent {
  std::int64_t seq = 0;
  std::int64_t run_seq = 0;
  Time recorded_at;
  std::int64_t origin = 0;
  std::string_view type;
};

struct RunFacts {
  Text status, outcome, origin, goal, started_at;
  bool has_agent = false;
  Text agent_name, agent_id, agent_version;
  std::map<std::string, std::string> labels;  // name → canonical text of the value
  bool has_parent = false;
  Text parent_run_id;
  std::int64_t parent_run_seq = 0;
  Text halt;  // canonical text of the object
  std::int64_t labels_refused = 0;

  void apply(const RunEvent& event, const json::Value& body);
  std::string labels_text() const;

 private:
  void start(const RunEvent& event, const json::Value& body);
  void halted(const RunEvent& event, const json::Value& body);
  void annotate(const json::Value& body);
};

void write_text(const Text& text, std::string& out);  // quoted, or null
std::int64_t capped_sum(std::int64_t a, std::int64_t b);

}  // namespace muniment::verify
