// A run as a person likes to read it: a heading, then one line an event, in constant memory: events
// come page by page and are forgotten.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "cli/show/describe.hpp"
#include "cli/show/open_calls.hpp"
#include "cli/show/output.hpp"

namespace muniment::cli {

struct TimelineOptions {
  bool full = false;    // every event, with all of its text
  bool errors = false;  // only what went wrong
};

// What a state does not say of what was erased in the run.
struct RunErasures {
  bool results = false;        // of calls, and with them which calls those were
  std::int64_t artifacts = 0;  // a state counts them still, and their bytes no more
};

// `state` is what run.rehydrate answers, or absent.
void print_run_heading(const Output& out, const json::Value& run, const json::Value& state, const RunErasures& erased,
                       const std::string& note);

class Timeline {
 public:
  // `prices`: what models cost, where that was not recorded.
  Timeline(const Output& out, const json::Value& run, TimelineOptions options, Prices prices = {});
  void add(const json::Value& event);
  // The last line, how many quiet events were left out, and what the answers of models cost by the prices.
  void finish();

 private:
  struct Line {
    std::string when;
    std::size_t depth = 0;
    Description text;
    std::string call_id;  // the result that may still join it
    std::string result;
    std::string answer_of;      // of a model's answer: the call, whose thought may replace it
    std::string body;           // with `full`
    bool awaits_error = false;  // with `errors`: a call is shown if its result is one
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
  bool dated_ = false;  // imported: an event has said when it was
  InterruptedSteps interrupted_;
  std::unordered_map<std::string, std::size_t> depths_;  // of the open steps
  std::optional<Line> held_;
  std::uint64_t quiet_ = 0;
  OpenCalls calls_;
  double usd_ = 0;  // of answers that have a price
  std::uint64_t priced_ = 0;
};

}  // namespace muniment::cli
