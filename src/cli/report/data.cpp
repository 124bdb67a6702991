// Collects the data of a report from its source.
#include "cli/report/data.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/report/source.hpp"
#include "cli/show/costs.hpp"
#include "cli/show/describe.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t report_text_bytes_max = 400;

std::string shown(const json::Value& value) { return shown_value(value); }
std::string spelled(const json::Value& value) { return spelled_value(value); }

Mark mark_of(Weight weight) {
  switch (weight) {
    case Weight::quiet: return Mark::quiet;
    case Weight::error:
    case Weight::loud: return Mark::bad;
    case Weight::normal: break;
  }
  return Mark::none;
}

class Collector {
 public:
  explicit Collector(ReportSource& source) : source_(source) {}

  Result<ReportData> run() {
    data_.written_at = format_time(Clock().now());
    RETURN_IF_ERROR(source_.read_run(data_));
    estimates_ = source_.estimates();
    data_.price_list = estimates_.price_list;
    RETURN_IF_ERROR(source_.each_event([this](const json::Value& event) { take(event); }));
    if (!data_.chain->broken()) {  // the events prove it, but not the row of the run
      data_.run["status"] = data_.end.status;
      data_.run["outcome"] = data_.end.outcome;
    }
    RETURN_IF_ERROR(source_.read_custody(data_));
    RETURN_IF_ERROR(read_ledger());
    read_pending();
    RETURN_IF_ERROR(source_.read_clock_steps(data_));
    return std::move(data_);
  }

 private:
  void take(const json::Value& event) {
    const std::string type = event["type"].string_or("");
    data_.chain->add(event);
    ++data_.events;
    data_.last_seq = event["seq"].as_int().value_or(-1);
    data_.end.follow(type, data_.last_seq, event["body"]);
    ++data_.types[type];
    ++data_.origins[event["origin"].string_or("")];
    ++data_.actors[event["actor"].string_or("")];
    if (event["redacted"]) data_.erased.insert(event["run_seq"].as_int().value_or(-1));
    note_times(event);
    note_line(event, type);
    if (event["body"]["late"].as_bool().value_or(false)) data_.late.add({place(event), type, occurred(event)});
    if (type == "run.started") return note_start(event);
    note_calls(event, type);
    if (type == "model.answered") note_model(event);
    note_spans(event, type);
    note_files(event, type);
    note_reads(event, type);
    note_stops(event, type);
    note_erasures(event, type);
  }

  static bool is_erased(const json::Value& event) { return event["redacted"].as_bool().value_or(false); }
  static std::string place(const json::Value& event) { return std::string(event["run_seq"].source()); }
  static std::string recorded(const json::Value& event) { return event["recorded_at"].string_or(""); }
  static std::string occurred(const json::Value& event) { return event["occurred_at"].string_or(""); }

  void note_times(const json::Value& event) {
    const Time time = parse_time(recorded(event)).value_or(Time{});
    if (data_.first_seq < 0) {
      data_.first_seq = event["seq"].as_int().value_or(-1);
      data_.recorded_first = time;
    } else if (time < data_.recorded_last) {
      ++data_.backwards;
    }
    data_.recorded_last = time;
    const auto happened = parse_time(occurred(event));
    if (!happened) return;
    ++data_.with_occurred;
    if (!data_.occurred_first || *happened < *data_.occurred_first) data_.occurred_first = happened;
    if (!data_.occurred_last || *data_.occurred_last < *happened) data_.occurred_last = happened;
  }

  // Keeps the first rows and the last; the report omits the middle of a long run.
  void note_line(const json::Value& event, const std::string& type) {
    Description line = describe(event);
    interrupted_steps_.follow(event, line);
    std::string what = line.head;
    if (!line.tail.empty()) what += (what.empty() ? "" : "  ") + line.tail;
    ReportRow row{{place(event), recorded(event), occurred(event), event["origin"].string_or(""), type,
                   event["step_id"].string_or(""), preview(what, report_text_bytes_max)},
                  mark_of(line.weight)};
    if (data_.timeline_first.size() < report_timeline_rows_max) {
      data_.timeline_first.push_back(std::move(row));
      return;
    }
    data_.timeline_last.push_back(std::move(row));
    if (data_.timeline_last.size() > report_timeline_rows_max) data_.timeline_last.pop_front();
  }

  void note_start(const json::Value& event) {
    for (const json::Value member : event["body"]) data_.started[member.key()] = spelled(member);
    const json::Value agent = event["body"]["agent"];
    if (!agent["name"].string_or("").empty())
      data_.started["agent"] =
          shown(agent["name"]) + (agent["version"] ? " " + shown(agent["version"]) : std::string());
  }

  void note_calls(const json::Value& event, const std::string& type) {
    const json::Value body = event["body"];
    const std::string call = body["call_id"].string_or("");
    if (type == "tool.called") {
      const std::string name = is_erased(event) ? "(erased)" : body["name"].string_or("");
      ++data_.tools[name].calls;
      if (open_tools_.size() < open_calls_max && !is_erased(event)) open_tools_[call] = name;
    } else if (type == "tool.returned") {
      const auto tool = open_tools_.find(call);
      ToolUse& use = data_.tools[tool == open_tools_.end() ? "(not seen)" : tool->second];
      const std::string status = body["status"].string_or("");
      ++(status == "ok" ? use.ok : status == "unknown" || status.empty() ? use.unknown : use.failed);
      if (tool != open_tools_.end()) open_tools_.erase(tool);
    } else if (type == "command.ended") {
      const Description result = describe(event);
      data_.commands.add({place(event), "", call, result.head + (result.tail.empty() ? "" : "  " + result.tail)},
                         mark_of(result.weight));
      if (body["interrupted"].as_bool().value_or(false))
        data_.interrupted.add({place(event), recorded(event), "command " + call});
    } else if (type == "command.started") {
      ++data_.commands_started;
      data_.commands.add({place(event), summary_of(event), call, "started in " + body["cwd"].string_or("")});
    } else if (type == "approval.requested") {
      data_.approvals.add({place(event), "asked", shown(body["question"]), event["actor"].string_or(""), ""},
                          Mark::none);
    } else if (type == "approval.decided") {
      data_.approvals.add({place(event), shown(body["decision"]), shown(body["reason"]), event["actor"].string_or(""),
                           shown(body["by"])});
    }
  }

  void note_model(const json::Value& event) {
    const json::Value body = event["body"];
    const json::Value usage = body["usage"];
    const std::string status = body["status"].string_or("unknown");
    ModelUse one;
    one.answers = 1;
    one.failed = status != "ok" && status != "unknown";
    one.without_usage = !usage.is(json::Kind::object);
    one.input = usage["input_tokens"].as_int().value_or(0);
    one.cached = usage["cached_input_tokens"].as_int().value_or(0);
    one.output = usage["output_tokens"].as_int().value_or(0);
    one.reasoning = usage["reasoning_tokens"].as_int().value_or(0);
    if (const json::Value cost = usage["cost"]; cost.is(json::Kind::object)) {
      const std::string amount = shown(cost["amount"]);
      one.cost[cost["currency"].string_or("")] = std::strtod(amount.c_str(), nullptr);
    }
    const auto estimate = estimates_.usd.find(event["seq"].as_int().value_or(-1));
    if (estimate != estimates_.usd.end()) one.estimated_usd = estimate->second;
    data_.models[is_erased(event) ? "(erased)" : body["model"].string_or("")].add(one);
  }

  // Counts beginnings and failures.
  void note_spans(const json::Value& event, const std::string& type) {
    constexpr std::string_view beginnings[] = {"model.called",       "tool.called",   "command.started",
                                               "approval.requested", "child.started", "step.started"};
    constexpr std::string_view ends[] = {"model.answered", "tool.returned", "step.ended"};
    const json::Value body = event["body"];
    if (std::ranges::find(beginnings, type) != std::end(beginnings)) ++data_.begun;
    if (std::ranges::find(ends, type) != std::end(ends)) {
      const std::string status = body["status"].string_or("unknown");
      data_.failed_calls += status != "ok" && status != "unknown";
    }
    if (is_erased(event)) note_erased_span(type);
    const bool command_failed =
        body["signal"] || body["interrupted"].as_bool().value_or(false) || body["exit_code"].as_int().value_or(0) != 0;
    data_.failed_calls += type == "command.ended" && command_failed;
    const std::string step = event["step_id"].string_or("main");
    if (type == "step.started" && open_steps_.size() < open_calls_max)
      open_steps_[step] = {place(event), shown(body["name"])};
    if (type == "step.ended") open_steps_.erase(step);
  }

  // An erased event keeps its step_id, so steps still match their ends; the other spans match by their bodies.
  void note_erased_span(const std::string& type) {
    constexpr std::string_view beginnings[] = {"model.called", "tool.called", "command.started", "approval.requested",
                                               "child.started"};
    constexpr std::string_view results[] = {"model.answered", "tool.returned", "command.ended", "child.ended"};
    const bool result = std::ranges::find(results, type) != std::end(results);
    data_.erased_results += result;
    data_.erased_spans +=
        result || type == "approval.decided" || std::ranges::find(beginnings, type) != std::end(beginnings);
  }

  void note_files(const json::Value& event, const std::string& type) {
    const json::Value body = event["body"];
    if (type == "file.changed") {
      data_.files.add({place(event), shown(body["change"]), shown(body["path"]), shown(body["before_hash"]),
                       shown(body["after_hash"])});
    } else if (type == "artifact.stored") {
      data_.artifacts.add({place(event), shown(body["path"]), shown(body["mime_type"]), shown(body["size_bytes"]),
                           shown(body["hash"])});
    }
  }

  static bool ended_badly(const json::Value& event, const std::string& type) {
    return type == "run.ended" && (event["body"]["error"] || event["body"]["outcome"].string_or("") == "failure");
  }

  static bool is_erasure(const std::string& type) { return type == "event.redacted" || type == "artifact.redacted"; }

  void note_reads(const json::Value& event, const std::string& type) {
    const events::TypeInfo* const info = events::find_type(type);
    if (info != nullptr && info->has_view("retrieval_report"))
      data_.reads.add({place(event), recorded(event), type, preview(summary_of(event), report_text_bytes_max)});
  }

  void note_stops(const json::Value& event, const std::string& type) {
    const events::TypeInfo* const info = events::find_type(type);
    const bool audited = info != nullptr && info->has_view("audit_report") && !is_erasure(type);
    if (audited || type == "error.raised" || ended_badly(event, type)) {
      const bool bad = type != "run.resumed";
      data_.halts.add({place(event), recorded(event), type, preview(summary_of(event), report_text_bytes_max)},
                      bad ? Mark::bad : Mark::good);
    }
  }

  void note_erasures(const json::Value& event, const std::string& type) {
    if (!is_erasure(type)) return;
    const json::Value body = event["body"];
    const std::string what =
        body["seq"] ? "event, seq " + shown(body["seq"]) : "artifact " + shown(body["artifact_id"]);
    data_.redactions.add(
        {place(event), recorded(event), what, shown(body["reason"]), shown(body["legal_basis"]), shown(body["by"])});
  }

  Status read_ledger() {
    RETURN_IF_ERROR(source_.each_claim([this](const json::Value& claim) {
      const std::string status = claim["status"].string_or("");
      data_.claims_unverified += status != "supported" && status != "withdrawn";
      std::string pointers;
      for (const json::Value pointer : claim["pointers"])
        pointers += (pointers.empty() ? "" : "\n") + pointer.string_or("");
      data_.claims.add({shown(claim["seq"]), shown(claim["status"]),
                        claim["text"].string_or("").empty() ? "(erased)" : shown(claim["text"]), pointers});
    }));
    return source_.each_evidence([this](const json::Value& item) {
      const std::string what = item["pointer"] ? shown(item["pointer"]) : shown(item["content"]["text"]);
      const std::string hash = shown(item["hash"]);
      const bool erased = hash.find_first_not_of('0') == std::string::npos;  // the row of an erased item remains
      data_.evidence.add({shown(item["seq"]), shown(item["type"]), erased ? "(erased)" : what, erased ? "" : hash,
                          shown(item["validator_id"]), shown(item["actor"])});
    });
  }

  void read_pending() {
    const Result<std::string> text = source_.pending();
    const auto document = text ? json::parse(*text) : Result<json::Document>(text.error());
    if (!document) {
      data_.pending.add({"", "the run's state cannot be read: " + document.error().message, ""}, Mark::bad);
      data_.pending_known = false;
      return;
    }
    const json::Value pending = document->root();
    for (const json::Value call : pending["calls"])
      data_.pending.add({shown(call["run_seq"]), shown(call["kind"]) + " call", joined_name(call)}, Mark::warning);
    for (const json::Value approval : pending["approvals"])
      data_.pending.add({shown(approval["run_seq"]), "approval", shown(approval["approval_id"])}, Mark::warning);
    for (const json::Value child : pending["children"])
      data_.pending.add({shown(child["run_seq"]), "child run", shown(child["run_id"])}, Mark::warning);
    for (const auto& [step_id, begun] : open_steps_) {
      data_.pending.add({begun.first, "step", begun.second.empty() ? step_id : begun.second + " (" + step_id + ")"},
                        Mark::warning);
    }
    data_.pending_dropped = pending["dropped"].as_int().value_or(0);
  }

  static std::string joined_name(const json::Value& call) {
    const std::string name = shown(call["name"]);
    return name.empty() ? shown(call["call_id"]) : name + " (" + shown(call["call_id"]) + ")";
  }

  static constexpr std::size_t open_calls_max = 100'000;

  ReportSource& source_;
  ReportData data_;
  Estimates estimates_;
  InterruptedSteps interrupted_steps_;
  std::map<std::string, std::string> open_tools_;
  std::map<std::string, std::pair<std::string, std::string>> open_steps_;  // key: step_id; value: start and name
};

}  // namespace

std::string shown_value(const json::Value& value) {
  if (!value.present() || value.is(json::Kind::null)) return {};
  return preview(value.is(json::Kind::string) ? value.string_or("") : std::string(value.source()),
                 report_text_bytes_max);
}

// Formats {"name":"x","version":"2"} as "name x, version 2".
std::string spelled_value(const json::Value& value) {
  if (!value.is(json::Kind::object)) return shown_value(value);
  std::string text;
  for (const json::Value member : value) text += (text.empty() ? "" : ", ") + member.key() + " " + shown_value(member);
  return text;
}

void ReportEnd::follow(std::string_view type, std::int64_t at, const json::Value& body) {
  if (type == "run.started" || type == "run.resumed") *this = {};
  if (type == "run.halted") *this = {"halted", "", at};
  if (type == "run.ended") *this = {"ended", body["outcome"].string_or(""), at};
}

std::string ReportEnd::text() const {
  if (status == "open") return "open after the last of these events";
  if (status == "halted") return fmt::format("halted at seq {}", seq);
  return fmt::format("ended with {} at seq {}", outcome.empty() ? "an erased outcome" : outcome, seq);
}

void ModelUse::add(const ModelUse& other) {
  answers += other.answers;
  failed += other.failed;
  without_usage += other.without_usage;
  input += other.input;
  cached += other.cached;
  output += other.output;
  reasoning += other.reasoning;
  for (const auto& [currency, amount] : other.cost) cost[currency] += amount;
  estimated_usd += other.estimated_usd;
}

Result<ReportData> collect_report(ReportSource& source) { return Collector(source).run(); }

}  // namespace muniment::cli
