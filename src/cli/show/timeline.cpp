#include "cli/show/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t when_columns = 9;
constexpr std::size_t width_max = 160;          // longer lines are hard to read
constexpr std::size_t result_columns_max = 30;  // columns reserved for the result on a call's line

std::string plain(const json::Value& value) {
  if (value.is(json::Kind::string)) return value.string_or("");
  return value && !value.is(json::Kind::null) ? std::string(value.source()) : std::string();
}

std::optional<Time> time_of(const json::Value& value) { return parse_time(value.string_or("")); }

// Returns a text such as "ended: success", red if the run is halted.
std::string status_text(const Output& out, const json::Value& run) {
  const std::string status = plain(run["status"]);
  const std::string outcome = plain(run["outcome"]);
  if (status == "halted") return out.tone(Tone::loud, " HALTED ");
  if (status == "open") return out.tone(Tone::yellow, "open");
  return out.tone(outcome == "success" ? Tone::green : Tone::yellow,
                  outcome.empty() || outcome == "unknown" ? status : outcome);
}

// Counts events by their positions in the run, because a state does not count events that do not change it, such as
// snapshots.
std::string counts_text(const json::Value& run, const json::Value& state, std::int64_t erased) {
  std::int64_t counted = 0;
  for (const json::Value count : state["counts"]) counted += count.as_int().value_or(0);
  const auto events = static_cast<std::uint64_t>(run["next_run_seq"].as_int().value_or(counted));
  std::string text = fmt::format("{} event{}", grouped(events), events == 1 ? "" : "s");
  if (const auto done = state["steps"]["done"].as_int()) text += fmt::format(" · {} steps", *done);
  const auto tools = state["counts"]["tool.called"].as_int();
  if (tools) text += fmt::format(" · {} tool calls", *tools);
  const std::int64_t artifacts = state["artifacts"]["count"].as_int().value_or(0) - erased;
  const auto bytes = state["artifacts"]["bytes"].as_int();
  if (artifacts > 0) {
    text += fmt::format(" · {} artifacts ({})", artifacts, human_size(static_cast<std::uint64_t>(bytes.value_or(0))));
  }
  return text;
}

std::string tokens_text(const json::Value& usage) {
  const auto in = usage["input_tokens"].as_int().value_or(0);
  const auto out = usage["output_tokens"].as_int().value_or(0);
  const json::Value cost = usage["cost"];
  std::string text;
  // A sum of 0 means that no usage was reported.
  if (in > 0) text = fmt::format("{} tokens in", grouped(static_cast<std::uint64_t>(in)));
  if (out > 0)
    text += fmt::format("{}{}", text.empty() ? "" : " · ",
                        grouped(static_cast<std::uint64_t>(out)) + (in > 0 ? " out" : " tokens out"));
  if (const auto amount = cost["amount"].as_double()) {
    text += fmt::format("{}{:.2f} {}", text.empty() ? "" : " · ", *amount, plain(cost["currency"]));
  } else if (cost.is(json::Kind::object)) {
    for (const json::Value currency : cost) {
      text += fmt::format("{}{} {}", text.empty() ? "" : " · ", plain(currency), currency.key());
    }
  }
  return text;
}

void add_took_and_cost(std::string& tail, const CallResult& result) {
  if (result.took_us.value_or(0) > 0) tail = human_duration(*result.took_us) + (tail.empty() ? "" : " " + tail);
  if (result.usd) tail += (tail.empty() ? "" : " · ") + estimate_text(*result.usd);
}

}  // namespace

void print_run_heading(const Output& out, const json::Value& run, const json::Value& state, const RunErasures& erased,
                       const std::string& note) {
  const auto put = [&out](std::string_view name, const std::string& text) {
    if (!text.empty()) out.line(out.tone(Tone::dim, fmt::format("{:<9}", name)) + text);
  };
  out.line(out.tone(Tone::bold, out.one_line(plain(run["run_id"]))) + "  " + status_text(out, run) +
           out.tone(Tone::dim, fmt::format("  @{}  {}", plain(run["run_no"]), plain(run["origin"]))));
  const json::Value agent = run["agent"];
  if (const json::Value closed = run["log_no"]) {
    put("log",
        fmt::format("{}, which is closed: this run accepts no events. Continue it in a new run:", closed.source()));
    put("", out.advised("muniment run start NAME --agent AGENT --continues ") + out.one_line(plain(run["run_id"])));
  }
  put("agent", out.one_line(agent.is(json::Kind::object) ? plain(agent["name"]) : plain(agent)));
  put("goal", fit(out.one_line(plain(run["goal"])), std::min(out.width(), width_max) - when_columns));
  std::string labels;
  for (const json::Value label : run["labels"]) labels += label.key() + "=" + plain(label) + " ";
  put("labels", out.one_line(labels));
  const auto started = time_of(run["started_at"]);
  const auto ended = time_of(run["ended_at"]);
  std::string times = plain(run["started_at"]);
  // The daemon's clock may have been set back meanwhile.
  if (started && ended)
    times += *ended < *started ? ", ended " + plain(run["ended_at"]) + " by a clock that was set back"
                               : ", took " + human_duration(ended->micros - started->micros);
  // An imported run was started at its import.
  put(plain(run["origin"]) == "imported" ? "imported" : "started",
      plain(run["origin"]) == "imported" ? plain(run["started_at"]) : times);
  if (state) {
    put("so far", counts_text(run, state, erased.artifacts));
    put("usage", out.one_line(tokens_text(state["usage"])));
    if (state["pending"]["calls"].size() > 0) {
      const std::size_t calls = state["pending"]["calls"].size();
      put("pending",
          out.tone(Tone::yellow,
                   fmt::format("{} call{} without a {}", calls, calls == 1 ? "" : "s",
                               erased.results ? "recorded result; results of this run were erased" : "result")));
    }
  }
  if (!note.empty()) put("note", out.tone(Tone::yellow, out.one_line(note)));
  if (const json::Value halt = run["halt"]; halt.is(json::Kind::object)) {
    put("halted", out.tone(Tone::red, out.one_line(plain(halt["code"]) + " since " + plain(halt["recorded_at"]) + ": " +
                                                   plain(halt["reason"]))));
    if (!run["log_no"]) put("fix", out.advised("muniment recover ") + out.one_line(plain(run["run_id"])));
  }
  out.line("");
}

Timeline::Timeline(const Output& out, const json::Value& run, TimelineOptions options, Estimates estimates)
    : out_(out),
      options_(options),
      started_(time_of(run["started_at"])),
      imported_(plain(run["origin"]) == "imported"),
      calls_(std::move(estimates)) {}

void Timeline::add(const json::Value& event) {
  const std::string type = plain(event["type"]);
  // An imported run began with its first event and not at its import.
  if (const auto occurred = imported_ && !dated_ ? time_of(event["occurred_at"]) : std::nullopt) {
    started_ = occurred;
    dated_ = true;
  }
  Description description = describe(event);
  interrupted_.follow(event, description);
  if (is_call(type)) calls_.begin(event, time_at(event));
  if (is_result(type)) {
    const CallResult result = calls_.end(event, time_at(event));
    count_cost(result);
    // Hidden events must not separate a call from its result.
    if (joins(event, result)) return;
    name_call(description, result, type);
  }
  const std::size_t depth = depth_of(event, type);
  const bool awaits_error = options_.errors && is_call(type) && description.weight == Weight::normal;
  if (!awaits_error && !shown(description)) {
    if (!options_.errors) ++quiet_;
    return;
  }
  // A thought repeats the beginning of its answer, so only one is shown.
  const bool repeats = type == "thought.recorded" && held_ && held_->answer_of == call_of(event) && !options_.full;
  if (repeats && !held_->answer_of.empty()) held_.reset();
  flush();
  hold(event, type, std::move(description));
  held_->depth = depth;
  held_->awaits_error = awaits_error;
}

void Timeline::finish() {
  flush();
  if (quiet_ > 0) {
    out_.line(out_.tone(Tone::dim, fmt::format("\n{} quiet event{} (manifests, artifacts, snapshots, …): "
                                               "--full shows all",
                                               grouped(quiet_), quiet_ == 1 ? "" : "s")));
  }
  if (estimated_ > 0) {
    out_.line(out_.tone(Tone::dim, fmt::format("{}{}: {} answer{} of models by the prices of the daemon, version {}",
                                               quiet_ > 0 ? "" : "\n", estimate_text(usd_), grouped(estimated_),
                                               estimated_ == 1 ? "" : "s", calls_.price_list())));
  }
}

bool Timeline::shown(const Description& description) const {
  if (options_.full) return true;
  if (options_.errors) return description.weight >= Weight::error;
  return description.weight != Weight::quiet;
}

// A result that directly follows its call is shown on the call's line.
bool Timeline::joins(const json::Value& event, const CallResult& call) {
  if (!held_ || held_->call_id.empty() || held_->call_id != call_of(event) || !held_->result.empty()) {
    return false;
  }
  Description result = describe_result(event);
  add_took_and_cost(result.tail, call);
  if (held_->awaits_error && result.weight >= Weight::error) held_->awaits_error = false;
  held_->result =
      out_.tone(result.tone, out_.one_line(result.head)) +
      (result.tail.empty() ? "" : (result.head.empty() ? "" : " ") + out_.tone(Tone::dim, out_.one_line(result.tail)));
  if (options_.full) held_->body += "\n" + text_of_content(event["body"]["content"]);
  return true;
}

// A separate result names its call, since several may be open.
void Timeline::name_call(Description& description, const CallResult& result, std::string_view type) {
  const bool answer = type == "model.answered" && description.weight == Weight::normal;
  if (answer) {
    if (result.usd) description.head += (description.head.empty() ? "" : " · ") + estimate_text(*result.usd);
    return;
  }
  add_took_and_cost(description.tail, result);
  if (!result.call.empty()) description.head = result.call + (description.head.empty() ? "" : ": " + description.head);
}

void Timeline::count_cost(const CallResult& result) {
  if (!result.usd) return;
  usd_ += *result.usd;
  ++estimated_;
}

void Timeline::hold(const json::Value& event, const std::string& type, Description description) {
  Line line;
  line.when = when(event);
  if (is_call(type)) line.call_id = call_of(event);
  const bool plain_answer = type == "model.answered" && description.weight == Weight::normal;
  if (plain_answer && !event["body"]["usage"]) line.answer_of = call_of(event);
  if (options_.full) {
    const json::Value body = event["body"];
    line.body = body["content"] ? text_of_content(body["content"]) : plain(body);
    if (body["content"]) description.tail.clear();
  }
  line.text = std::move(description);
  held_ = std::move(line);
}

// The recording time of an imported event is the time of the import and not of the run.
std::optional<Time> Timeline::time_at(const json::Value& event) const {
  const auto occurred = time_of(event["occurred_at"]);
  return occurred || imported_ ? occurred : time_of(event["recorded_at"]);
}

std::string Timeline::when(const json::Value& event) const {
  const auto at = time_at(event);
  if (!at || !started_) return "#" + plain(event["run_seq"]);
  const double seconds = static_cast<double>(at->micros - started_->micros) / 1e6;
  if (std::abs(seconds) < 100) return fmt::format("{:+.2f}s", seconds);
  const char sign = seconds < 0 ? '-' : '+';
  const auto whole = static_cast<std::int64_t>(std::abs(seconds));
  if (whole < 3600) return fmt::format("{}{}m{:02}s", sign, whole / 60, whole % 60);
  return fmt::format("{}{}h{:02}m", sign, whole / 3600, whole / 60 % 60);
}

std::size_t Timeline::depth_of(const json::Value& event, const std::string& type) {
  constexpr std::size_t depth_max = 8;
  const std::string step = plain(event["step_id"]);
  if (step.empty()) return 0;
  if (type == "step.started") {
    const auto parent = depths_.find(plain(event["body"]["parent_step_id"]));
    const std::size_t depth = parent == depths_.end() ? 0 : std::min(parent->second + 1, depth_max);
    depths_[step] = depth;
    return depth;
  }
  const auto found = depths_.find(step);
  if (found == depths_.end()) return 0;
  const std::size_t depth = found->second;
  if (type != "step.ended") return depth + 1;
  depths_.erase(found);
  return depth;
}

void Timeline::flush() {
  if (!held_) return;
  const Line line = std::move(*held_);
  held_.reset();
  if (line.awaits_error) return;
  const Description& text = line.text;
  std::string left = out_.tone(Tone::dim, fmt::format("{:>{}}", line.when, when_columns)) + "  " +
                     std::string(2 * line.depth, ' ') + out_.tone(text.tone, text.glyph);
  const std::size_t width = std::min(out_.width(), width_max) -
                            (line.result.empty() ? 0 : std::min(columns_of(line.result) + 5, result_columns_max));
  const auto room = [&left, width] {
    const std::size_t used = columns_of(left) + 1;
    return used + 8 < width ? width - used : std::size_t{8};
  };
  if (!text.head.empty()) {
    left += " " + out_.tone(text.tone, fit(out_.one_line(text.head), room()));
  }
  if (!text.tail.empty() && columns_of(left) + 8 < width) {
    const std::string tail = fit(out_.one_line(text.tail), room());
    left += " " + (text.weight >= Weight::error ? tail : out_.tone(Tone::dim, tail));
  }
  out_.line(line.result.empty() ? left : left + "  → " + line.result);
  if (line.body.empty()) return;
  std::string_view rest = line.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    out_.line(std::string(when_columns + 4 + 2 * line.depth, ' ') + out_.safe(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace muniment::cli
