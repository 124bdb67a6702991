// Prints a run for reading: a heading, then one line per event. Memory is constant, because events are processed page
// by page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "cli/show/describe.hpp"
#include "cli/show/open_calls.hpp"
#include "client/output.hpp"

namespace muniment::cli {

struct TimelineOptions {
  bool full = false;    // show every event with its full text
  bool errors = false;  // show only errors and failures
};

// Facts about erased events that a state does not contain.
struct RunErasures {
  bool results = false;        // results of calls were erased, so their calls are unknown
  std::int64_t artifacts = 0;  // erased artifacts, which a state still counts without their bytes
};

// `state` is the result of run.rehydrate, or absent.
void print_run_heading(const Output& out, const json::Value& run, const json::Value& state, const RunErasures& erased,
                       const std::string& note);

class Timeline {
 public:
  Timeline(const Output& out, const json::Value& run, TimelineOptions options, Estimates estimates = {});
  void add(const json::Value& event);
  // Prints the last line, the number of hidden quiet events, and the estimated cost of model answers.
  void finish();

 private:
  struct Line {
    std::string when;
    std::size_t depth = 0;
    Description text;
    std::string call_id;  // call whose result may still be added to the line
    std::string result;
    std::string answer_of;      // call of a model's answer, whose thought may replace it
    std::string body;           // used with `full`
    bool awaits_error = false;  // used with `errors`: the call is shown if its result is an error
  };
  bool joins(const json::Value& event, const CallResult& call);
  static void name_call(Description& description, const CallResult& result, std::string_view type);
  void count_cost(const CallResult& result);
  void hold(const json::Value& event, const std::string& type, Description description);
  bool shown(const Description& description) const;
  std::optional<Time> time_at(const json::Value& event) const;
  std::string when(const json::Value& event) const;
  std::size_t depth_of(const json::Value& event, const std::string& type);
  void flush();

  const Output& out_;
  const TimelineOptions options_;
  std::optional<Time> started_;
  bool imported_ = false;
  bool dated_ = false;  // imported run: an event had its own time
  InterruptedSteps interrupted_;
  std::unordered_map<std::string, std::size_t> depths_;  // depth of each open step
  std::optional<Line> held_;
  std::uint64_t quiet_ = 0;
  OpenCalls calls_;
  double usd_ = 0;  // sum of the estimates
  std::uint64_t estimated_ = 0;
};

}  // namespace muniment::cli
