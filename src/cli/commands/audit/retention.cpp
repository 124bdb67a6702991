// Implements the commands retention preview and retention apply, which erase runs by the rules of the configuration.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <set>

#include "base/config/retention.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/commands/audit/erase_runs.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"
#include "client/connect/pages.hpp"

namespace muniment::cli {

RunEraser::RunEraser(Session& session, bool dry_run)
    : session_(session),
      dry_run_(dry_run),
      table_({"rule", "run", "ended", "events", "files", "size", "stays"}, {6, 1}) {}

Result<Message> RunEraser::redact(const std::string& run_id, const Erasure& erasure, bool dry_run) {
  json::Writer params;
  params.begin_object().member("run_id", run_id).member("reason", erasure.reason);
  if (!erasure.legal_basis.empty()) params.member("legal_basis", erasure.legal_basis);
  if (dry_run) params.member("dry_run", true);
  return session_.call("audit.redact", params.end_object().text());
}

// Errors: conflict also for a run whose files hold documents, or that is open again.
Result<Message> RunEraser::redact_unless_used(const std::string& run_id, const Erasure& erasure) {
  ASSIGN_OR_RETURN(Message planned, redact(run_id, erasure, true));
  if (const auto documents = planned.result()["documents"].as_int().value_or(0); documents > 0)
    return Error(Errc::conflict,
                 fmt::format("its files hold {} of corpora. To erase them too: muniment audit redact {}",
                             many(documents, "revision", "revisions"), run_id));
  if (dry_run_) return planned;
  ASSIGN_OR_RETURN(const Message run, session_.call("run.get", fmt::format(R"({{"run_id":{}}})", json::quote(run_id))));
  if (run.result()["run"]["status"].string_or("") != "ended") return Error(Errc::conflict, "it is open again");
  return redact(run_id, erasure, false);
}

Status RunEraser::erase(const json::Value& run, std::string_view rule, const Erasure& erasure) {
  const std::string run_id = run["run_id"].string_or("");
  const auto answer = erasure.keeps_documents ? redact_unless_used(run_id, erasure) : redact(run_id, erasure, dry_run_);
  if (!answer && answer.error().code != Errc::conflict) return answer.error();
  const std::string stays = answer ? std::string() : answer.error().message;
  const json::Value result = answer ? answer->result() : json::Value();
  const std::int64_t events = result["events"].as_int().value_or(0),
                     files = result["artifact_files"].as_int().value_or(0);
  if (answer && events == 0) return success();
  std::int64_t bytes = 0;
  for (const json::Value artifact : result["artifacts"]) bytes += artifact["size_bytes"].as_int().value_or(0);
  ++(answer ? runs_ : held_);
  events_ += events;
  files_ += files;
  bytes_ += bytes;
  const std::string ended = end_of_run(run);
  if (session_.options.json) {
    json::Writer row;
    row.begin_object().member("rule", rule).member("run_id", run_id).member("ended_at", ended);
    row.member("events", events).member("artifact_files", files).member("artifact_bytes", bytes);
    if (!answer) row.member("stays", stays);
    session_.out().json_line(row.member("erased", answer && !dry_run_).end_object().text());
    return success();
  }
  const auto number = [&](std::int64_t value) {
    return answer ? grouped(static_cast<std::uint64_t>(value)) : std::string();
  };
  table_.add({std::string(rule), session_.out().one_line(run_id), ended.substr(0, 10), number(events), number(files),
              answer ? human_size(static_cast<std::uint64_t>(bytes)) : "", session_.out().one_line(stays)});
  return success();
}

bool RunEraser::finish() {
  if (session_.options.json) return held_ > 0;
  table_.omit_last_if_empty();
  if (table_.size() > 0) table_.print(session_.out());
  session_.out().line(fmt::format("{} {} with {} and {} ({}){}", dry_run_ ? "would erase" : "erased",
                                  many(runs_, "run", "runs"), many(events_, "event", "events"),
                                  many(files_, "file", "files"), human_size(static_cast<std::uint64_t>(bytes_)),
                                  held_ == 0 ? "" : fmt::format("; {} must stay", many(held_, "run", "runs"))));
  return held_ > 0;
}

std::string end_of_run(const json::Value& run) {
  const std::string last = run["origin"].string_or("") == "imported" ? run["last_occurred_at"].string_or("") : "";
  return last.empty() ? run["ended_at"].string_or("") : last;
}

Status confirm_erasure() {
  if (::isatty(STDIN_FILENO) == 0) return success();  // a script is not asked
  std::fprintf(stderr, "This cannot be undone. Erase it? Type yes: ");
  std::string word;
  std::getline(std::cin, word);
  return word == "yes" ? success()
                       : Status(Error(Errc::invalid_argument, "nothing was erased. Answer yes or pass --yes"));
}

namespace {

struct RetentionOptions {
  std::string at;
  bool yes = false;
};

void declare_preview(CLI::App& command, RetentionOptions& options) {
  // Not add_time, whose ages are in the past.
  command.add_option("--at", options.at, "Date or time at which the rules are applied (default: now)")
      ->type_name("TIME");
}

void declare_apply(CLI::App& command, RetentionOptions& options) {
  command.add_flag("--yes", options.yes, "Do not ask for confirmation on a terminal");
}

// Calls `take` with each run that a rule selects at a time, each run once, with its first rule.
class Selection {
 public:
  Selection(Session& session, Time at) : session_(session), at_(at) {}

  template <typename Take>
  Status each(const RetentionRule& rule, Take take) {
    const std::string before = format_time(Time{at_.micros - rule.days * std::int64_t{86'400'000'000}});
    json::Writer params;
    params.begin_object().member("status", "ended").member("until", before).member("limit", limits::page_items_max);
    if (!rule.agent.empty()) params.member("agent", rule.agent);
    if (!rule.thread.empty()) params.member("external_id", rule.thread);
    if (!rule.label.empty()) {
      ASSIGN_OR_RETURN(const std::string labels, labels_json({rule.label}));
      params.raw_member("labels", labels);
    }
    // The runs are listed before the first of them is erased.
    std::vector<std::string> runs;
    RETURN_IF_ERROR(each_item(
        session_, "run.list", params.end_object().text(), "runs", [&](const json::Value& run) -> Result<bool> {
          if (!run["log_no"] && end_of_run(run) < before && seen_.insert(run["run_id"].string_or("")).second)
            runs.emplace_back(run.source());
          return true;
        }));
    for (const std::string& text : runs) {
      ASSIGN_OR_RETURN(const json::Document run, json::parse(std::string_view(text)));
      RETURN_IF_ERROR(take(run.root()));
    }
    return success();
  }

 private:
  Session& session_;
  const Time at_;
  std::set<std::string> seen_;
};

Status run_rules(Session& session, Time at, bool dry_run) {
  RETURN_IF_ERROR(session.find_place());  // the rules of that instance
  ASSIGN_OR_RETURN(const Config config, session.config());
  ASSIGN_OR_RETURN(const std::vector<RetentionRule> rules, parse_retention(config.retention));
  if (rules.empty())
    return Error(
        Errc::not_found,
        "the configuration has no rules. Write [retention.NAME] with days = 90, and with label, agent or thread "
        "(docs/operations.md)");
  RunEraser eraser(session, dry_run);
  Selection selection(session, at);
  for (const RetentionRule& rule : rules) {
    RETURN_IF_ERROR(selection.each(rule, [&](const json::Value& run) {
      return eraser.erase(run, rule.name, {rule.reason, rule.legal_basis, true});
    }));
  }
  eraser.finish();
  return success();
}

Status preview_retention(Session& session, const RetentionOptions& options) {
  Time at = Clock().now();
  if (!options.at.empty()) {
    ASSIGN_OR_RETURN(const std::string text, read_time(options.at, at));
    at = parse_time(text).value_or(at);
  }
  return run_rules(session, at, true);
}

Status apply_retention(Session& session, const RetentionOptions& options) {
  const Time now = Clock().now();
  if (!options.yes && ::isatty(STDIN_FILENO) != 0) {
    RETURN_IF_ERROR(run_rules(session, now, true));
    RETURN_IF_ERROR(confirm_erasure());
  }
  return run_rules(session, now, false);
}

}  // namespace

void add_retention_commands(CLI::App& app, Session& session) {
  CLI::App& retention = add_group(app, "retention", "Erase old runs by the rules of the configuration");
  add_command<RetentionOptions>(session, retention, "preview", "List the runs that the rules erase, and change nothing",
                                declare_preview, preview_retention);
  add_command<RetentionOptions>(session, retention, "apply", "Erase the runs of the rules; proofs remain",
                                declare_apply, apply_retention);
}

}  // namespace muniment::cli
