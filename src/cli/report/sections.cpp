// Builds the sections of a report after its summary, including the limits of what it proves.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/report/sections.hpp"

namespace muniment::cli {

std::string value_of(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::string() : found->second;
}

void add_fact(Facts& facts, std::string name, std::string value) {
  if (!value.empty()) facts.emplace_back(std::move(name), std::move(value));
}

std::string counted(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(static_cast<std::uint64_t>(count)), name);
  }
  return text;
}

void add_table(ReportSection& section, std::vector<ReportColumn> heading, const ReportRows& rows,
               std::string_view none) {
  if (rows.total == 0) {
    if (!none.empty()) section.blocks.emplace_back(ReportText{std::string(none)});
    return;
  }
  section.blocks.emplace_back(ReportTable{std::move(heading), rows.rows});
  if (rows.total > rows.rows.size()) {
    section.blocks.emplace_back(ReportText{fmt::format("{} more are omitted here; the log and the bundle contain them.",
                                                       grouped(rows.total - rows.rows.size())),
                                           Mark::warning});
  }
}

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) lines.emplace_back(text);
  return lines;
}

// Returns the event that the proof covers: the last one, or the last one before the chain breaks.
std::string last_event(const ReportData& data) {
  return data.chain->broken() ? fmt::format("The last event before the break (seq {})", data.chain->last_seq())
                              : "The last event";
}

void add_events(Facts& facts, const ReportData& data) {
  add_fact(facts, "Events in the log", fmt::format("seq {} to {}", data.first_seq, data.last_seq));
  if (!data.chain->broken()) return add_fact(facts, "Last run_hash", to_hex(data.chain->run_hash()));
  add_fact(facts, "Events before the break", grouped(static_cast<std::uint64_t>(data.chain->events())));
  if (data.chain->events() > 0) add_fact(facts, "Last run_hash before the break", to_hex(data.chain->run_hash()));
}

ReportSection custody_section(const ReportData& data) {
  ReportSection section{"custody", "Custody", {}};
  const ReportCustody& custody = data.custody;
  if (data.chain->broken()) {
    section.blocks.emplace_back(ReportText{
        "The run's chain is broken: " + *data.chain->broken() + ". Later events are not proven. Run muniment-verify.",
        Mark::bad});
  } else {
    section.blocks.emplace_back(ReportText{
        fmt::format(
            "This report recomputed the hash chain of {}: each body{} matches its hash, and each entry links to the next.",
            many(data.chain->events(), "event", "events"), data.erased.empty() ? "" : " that was not erased"),
        Mark::good});
  }
  if (custody.unproven) {
    section.blocks.emplace_back(ReportText{"The run is NOT proven to be in the log: " + *custody.unproven, Mark::bad});
  } else if (!custody.is_signed) {
    section.blocks.emplace_back(
        ReportText{fmt::format("{} is in the log's tree, but {}. An owner of the database could have forged all of it.",
                               last_event(data),
                               !custody.unsigned_why.empty() ? custody.unsigned_why
                               : custody.keys.empty()        ? "the log has no key: nothing is signed"
                                                             : "the newest checkpoint is not signed"),
                   Mark::warning});
  } else {
    section.blocks.emplace_back(ReportText{
        fmt::format(
            "{}, and by its chain every event before it, is in the log whose checkpoint at {} events is signed. {} checked the inclusion proof and the signature.",
            last_event(data), grouped(static_cast<std::uint64_t>(custody.size)),
            data.from_bundle ? "muniment-verify" : "This report"),
        Mark::good});
  }
  Facts facts;
  add_fact(facts, "Log", data.log_id);
  add_fact(facts, "Origin line", custody.origin_line);
  add_events(facts, data);
  if (custody.size >= 0) add_fact(facts, "Checkpoint", fmt::format("{} events, root {}", custody.size, custody.root));
  for (const std::string& key : custody.signed_by) add_fact(facts, "Signed by", key);
  for (const std::string& key : custody.keys) add_fact(facts, "Key of the log", key);
  section.blocks.emplace_back(ReportFacts{std::move(facts)});
  if (!custody.note.empty()) section.blocks.emplace_back(ReportCommands{lines_of(custody.note)});
  return section;
}

ReportSection who_section(const ReportData& data) {
  ReportSection section{"who", "Who", {}};
  Facts facts;
  add_fact(facts, "Agent", value_of(data.started, "agent"));
  add_fact(facts, "Goal", value_of(data.run, "goal"));
  add_fact(facts, "Owner", value_of(data.run, "owner"));
  add_fact(facts, "Written by", counted(data.actors));
  add_fact(facts, "Client", value_of(data.started, "client"));
  add_fact(facts, "Folder", value_of(data.started, "cwd"));
  add_fact(facts, "Version control", value_of(data.started, "vcs"));
  add_fact(facts, "Parent", value_of(data.run, "parent"));
  add_fact(facts, "Forked from", value_of(data.started, "forked_from"));
  add_fact(facts, "Continues", value_of(data.started, "continues"));
  add_fact(facts, "External id", value_of(data.run, "external_id"));
  add_fact(facts, "Imported from", value_of(data.started, "import"));
  for (const auto& [name, value] : data.labels) add_fact(facts, "Label " + name, value);
  section.blocks.emplace_back(ReportFacts{std::move(facts)});
  return section;
}

void add_timeline(ReportSection& section, const ReportData& data) {
  std::vector<ReportRow> rows = data.timeline_first;
  const auto seen = static_cast<std::size_t>(rows.size() + data.timeline_last.size());
  std::size_t total = 0;
  for (const auto& [type, count] : data.types) total += static_cast<std::size_t>(count);
  if (total > seen) {
    rows.push_back(
        {{"…", "", "", "", "", "", fmt::format("{} events are not shown here", grouped(total - seen))}, Mark::warning});
  }
  rows.insert(rows.end(), data.timeline_last.begin(), data.timeline_last.end());
  section.blocks.emplace_back(ReportTable{{{"run_seq", Cell::number},
                                           {"recorded (UTC)", Cell::time},
                                           {"occurred (claimed)", Cell::time},
                                           {"origin", Cell::name},
                                           {"type", Cell::name},
                                           {"step", Cell::name},
                                           "event"},
                                          std::move(rows)});
}

ReportSection what_section(const ReportData& data) {
  ReportSection section{"what", "What happened", {}};
  Facts facts;
  add_fact(facts, "Status",
           value_of(data.run, "status") +
               (value_of(data.run, "outcome").empty() ? "" : ", " + value_of(data.run, "outcome")));
  add_fact(facts, "Started", value_of(data.run, "started_at"));
  add_fact(facts, "Ended", value_of(data.run, "ended_at"));
  add_fact(facts, "Events by origin", counted(data.origins));
  add_fact(facts, "Events by type", counted(data.types));
  section.blocks.emplace_back(ReportFacts{std::move(facts)});
  add_timeline(section, data);
  return section;
}

ReportSection actions_section(const ReportData& data) {
  ReportSection section{"actions", "Tools, commands, files", {}};
  ReportRows tools;
  for (const auto& [name, use] : data.tools) {
    const std::int64_t open = use.calls - use.ok - use.failed - use.unknown;
    tools.add({name, std::to_string(use.calls), std::to_string(use.ok), std::to_string(use.failed),
               std::to_string(use.unknown), std::to_string(std::max<std::int64_t>(open, 0))},
              open > 0 ? Mark::warning : Mark::none);
  }
  add_table(section,
            {{"tool", Cell::name},
             {"calls", Cell::number},
             {"ok", Cell::number},
             {"failed", Cell::number},
             {"unknown", Cell::number},
             {"no result", Cell::number}},
            tools, "The run did not call a tool.");
  add_table(section, {{"run_seq", Cell::number}, "command", {"call", Cell::name}, "result"}, data.commands,
            "muniment exec recorded no command.");
  add_table(section,
            {{"run_seq", Cell::number},
             {"change", Cell::name},
             "path",
             {"before (SHA-256)", Cell::hash},
             {"after (SHA-256)", Cell::hash}},
            data.files, "The run did not report a change of a file.");
  add_table(
      section,
      {{"run_seq", Cell::number}, "artifact", {"type", Cell::name}, {"bytes", Cell::number}, {"SHA-256", Cell::hash}},
      data.artifacts, "The run did not store an artifact.");
  return section;
}

ReportSection approvals_section(const ReportData& data) {
  ReportSection section{"approvals", "Approvals", {}};
  add_table(section,
            {{"run_seq", Cell::number},
             {"decision", Cell::name},
             "question or reason",
             {"actor", Cell::name},
             {"by (claimed)", Cell::name}},
            data.approvals, "The run did not request an approval.");
  if (data.approvals.total > 0) {
    section.blocks.emplace_back(ReportText{
        "\"by\" is the writer's statement; the actor is the account that wrote the event. A person's decision is proven only if the account is that person's own.",
        Mark::quiet});
  }
  return section;
}

ReportSection ledger_section(const ReportData& data) {
  ReportSection section{"ledger", "Claims and evidence", {}};
  add_table(section, {{"seq", Cell::number}, {"status", Cell::name}, "claim", "pointers"}, data.claims,
            "The run did not record a claim.");
  add_table(section,
            {{"seq", Cell::number},
             {"type", Cell::name},
             "evidence",
             {"SHA-256", Cell::hash},
             {"validator (claimed)", Cell::name},
             {"actor", Cell::name}},
            data.evidence, "The run did not record evidence.");
  return section;
}

ReportSection reads_section(const ReportData& data) {
  ReportSection section{"reads", "What it read", {}};
  add_table(section, {{"run_seq", Cell::number}, {"recorded (UTC)", Cell::time}, {"type", Cell::name}, "what"},
            data.reads, "The run did not read documents, pointers or artifacts through the daemon.");
  return section;
}

ReportSection stops_section(const ReportData& data) {
  ReportSection section{"stops", "Halts, recoveries, errors", {}};
  if (const std::string halt = value_of(data.run, "halt"); !halt.empty()) {
    section.blocks.emplace_back(ReportText{"The run is halted: " + halt, Mark::bad});
  }
  std::string none = "The run was never halted and raised no error.";
  if (data.failed_calls > 0)
    none += fmt::format(" {} of its calls, commands and steps failed.",
                        grouped(static_cast<std::uint64_t>(data.failed_calls)));
  if (data.erased_results > 0)
    none +=
        fmt::format(" {} erased, so the outcome is unknown.", many(data.erased_results, "result was", "results were"));
  add_table(section, {{"run_seq", Cell::number}, {"recorded (UTC)", Cell::time}, {"type", Cell::name}, "event"},
            data.halts, none);
  return section;
}

ReportSection erasure_section(const ReportData& data) {
  ReportSection section{"erasure", "Erasures", {}};
  add_table(section,
            {{"run_seq", Cell::number},
             {"recorded (UTC)", Cell::time},
             "erased",
             "reason",
             "legal basis",
             {"by", Cell::name}},
            data.redactions, data.erased.empty() ? "No event of this run was erased." : "");
  if (!data.erased.empty()) {
    std::string list;
    std::size_t count = 0;
    for (const std::int64_t run_seq : data.erased) {
      if (++count > report_rows_max) break;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", run_seq);
    }
    if (count > report_rows_max) list += fmt::format(" and {} more", grouped(data.erased.size() - report_rows_max));
    section.blocks.emplace_back(ReportText{
        fmt::format("Events without a body (run_seq): {}. Their hashes remain, so every proof still holds.", list),
        Mark::warning});
  }
  return section;
}

ReportSection gaps_section(const ReportData& data) {
  ReportSection section{"gaps", "Gaps", {}};
  if (value_of(data.run, "status") == "open") {
    section.blocks.emplace_back(ReportText{
        data.from_bundle ? "The run is OPEN at the end of this bundle: it had not ended at the export, or the "
                           "events after the last one were left out."
                         : "The run is open: later events are not in this report.",
        Mark::warning});
  } else if (data.from_bundle) {
    section.blocks.emplace_back(
        ReportText{"A bundle does not show whether the run was reopened after its last event."});
  }
  const bool all_ended = data.pending_known && data.pending_dropped == 0;
  const std::string ended = data.erased_spans > 0
                                ? "Every beginning in an event with a body has its end."
                                : "Every call, command, approval, child run and step that began has its end.";
  add_table(section, {{"run_seq", Cell::number}, "without an end", "name"}, data.pending,
            !all_ended        ? ""
            : data.begun == 0 ? "The run has no call, command, approval, child run or step."
                              : ended);
  if (data.erased_spans > 0) {
    section.blocks.emplace_back(ReportText{
        fmt::format(
            "{} or ended a call, a command, an approval or a child run and {} erased: whether each has its end is unknown.",
            many(data.erased_spans, "event that began", "events that began"), data.erased_spans == 1 ? "is" : "are"),
        Mark::warning});
  }
  if (data.pending_dropped > 0) {
    section.blocks.emplace_back(
        ReportText{fmt::format("{} older ones without an end are not listed.", data.pending_dropped), Mark::warning});
  }
  add_table(section, {{"run_seq", Cell::number}, {"recorded (UTC)", Cell::time}, "interrupted recording"},
            data.interrupted, "");
  add_table(section, {{"run_seq", Cell::number}, {"sent late", Cell::name}, {"occurred (claimed)", Cell::time}},
            data.late, "");
  return section;
}

std::string without_steps(const ReportData& data) {
  std::string text =
      "Between the run's first event and its last, the log has no step of the daemon's clock of more than a second.";
  if (data.backwards > 0)
    text += fmt::format(" However, {} recorded earlier than its predecessor: the clock was set back.",
                        many(data.backwards, "event is", "events are"));
  return text;
}

// The daemon checks its clock at each append, so it misses steps while it is stopped.
void add_starts(ReportSection& section, const ReportData& data) {
  if (data.starts == 0) return;
  section.blocks.emplace_back(ReportText{
      fmt::format("The daemon was started {} in between. It does not see steps of the clock while it is stopped.",
                  many(data.starts, "time", "times"))});
}

ReportSection time_section(const ReportData& data) {
  ReportSection section{"time", "Times", {}};
  Facts facts;
  add_fact(facts, "Recorded",
           format_time(data.recorded_first) + " to " + format_time(data.recorded_last) + " (the daemon's clock)");
  if (data.occurred_first) {
    add_fact(
        facts, "Occurred",
        format_time(*data.occurred_first) + " to " + format_time(*data.occurred_last) + " (reported by the writers)");
  }
  add_fact(facts, "With a reported time", many(data.with_occurred, "event", "events"));
  add_fact(facts, "Recorded earlier than its predecessor", many(data.backwards, "event", "events"));
  section.blocks.emplace_back(ReportFacts{std::move(facts)});
  section.blocks.emplace_back(ReportText{
      "The order of events is the log's (seq), not a clock's. recorded_at is the wall clock of the daemon's host and is never corrected; occurred_at is a claim."});
  add_table(section, {{"seq", Cell::number}, {"clock before", Cell::time}, {"clock after", Cell::time}},
            data.clock_steps, data.clock_steps_unknown ? "" : without_steps(data));
  if (data.clock_steps_unknown) {
    section.blocks.emplace_back(
        ReportText{"Whether the clock stepped is unknown: " + *data.clock_steps_unknown, Mark::warning});
  } else {
    add_starts(section, data);
  }
  return section;
}

ReportSection limits_section(const ReportData& data) {
  ReportSection section{"limits", "What this report does not prove", {}};
  ReportList list;
  const auto count = [&data](const std::string& origin) {
    const auto found = data.origins.find(origin);
    return found == data.origins.end() ? std::int64_t{0} : found->second;
  };
  if (count("reported") > 0) {
    list.items.push_back(fmt::format(
        "That the content of {} is true. The log proves when they were recorded, by which account, and that they have not changed since.",
        many(count("reported"), "reported event", "reported events")));
  }
  if (count("imported") > 0) {
    list.items.push_back(
        fmt::format("Any fact about the time before the import. {} came from a file; the daemon did not witness them.",
                    many(count("imported"), "event", "events")));
  }
  list.items.emplace_back("That the agent reported everything it did.");
  list.items.emplace_back("Which person used the account. An actor is a Unix account of the daemon's host.");
  list.items.emplace_back("The times. They come from the host's clock and from the writers.");
  if (!data.custody.is_signed) {
    list.items.push_back(
        fmt::format("That the log was not rewritten as a whole: {}.",
                    data.custody.unproven ? "no signed checkpoint leads to this run" : "nothing is signed"));
  }
  if (data.custody.is_signed)
    list.items.emplace_back(
        "That the key above is the right one. Compare it with a copy that you received in another way. Only a witness detects a log that was rewritten with its own key.");
  if (!data.from_bundle)
    list.items.emplace_back(
        "The artifacts' bytes. This report contains their hashes; verifying the bundle checks the bytes.");
  list.items.emplace_back("This file itself. It is not signed; repeat it with the commands below.");
  section.blocks.emplace_back(std::move(list));
  return section;
}

ReportSection repeat_section(const ReportData& data) {
  ReportSection section{"repeat", "Repeating this report", {}};
  const std::string& run = data.run_id;
  if (data.from_bundle) {
    section.blocks.emplace_back(ReportText{"With the bundle and the log's public key:"});
    section.blocks.emplace_back(
        ReportCommands{{"muniment-verify --bundle run.muniment.tar.zst --key log.pub",
                        "muniment audit report --bundle run.muniment.tar.zst --key log.pub -o report.html"}});
    return section;
  }
  section.blocks.emplace_back(ReportText{"With access to the log:"});
  section.blocks.emplace_back(ReportCommands{{fmt::format("muniment audit report {} -o report.html", run),
                                              fmt::format("muniment event list --run {} --limit 0 --json", run),
                                              fmt::format("muniment audit prove {} -o run.tlog-proof", run),
                                              fmt::format("muniment audit export {} -o run.muniment.tar.zst", run)}});
  section.blocks.emplace_back(ReportText{"With only the files and the log's public key:"});
  section.blocks.emplace_back(ReportCommands{{"muniment audit verify --proof run.tlog-proof --key log.pub",
                                              "muniment-verify --bundle run.muniment.tar.zst --key log.pub"}});
  return section;
}

// Names the outcome only beside a proof of the end, and only if no claim of the run is unverified.
ReportText end_badge(const ReportData& data) {
  const bool proven = !data.chain->broken() && !data.custody.unproven;
  if (data.end.status == "open")
    return {data.from_bundle ? "run OPEN at the end of this bundle" : "run OPEN", Mark::warning};
  if (data.end.status == "halted") return {"halted", Mark::bad};
  if (!proven) return {"end not verified", Mark::warning};
  if (data.claims_unverified > 0)
    return {"ended; " + many(data.claims_unverified, "claim", "claims") + " not verified", Mark::warning};
  return {"ended: " + (data.end.outcome.empty() ? "outcome erased" : data.end.outcome)};
}

void add_badges(ReportDocument& report, const ReportData& data) {
  report.badges.push_back(end_badge(data));
  report.badges.push_back({"origin: " + value_of(data.run, "origin"),
                           value_of(data.run, "origin") == "imported" ? Mark::warning : Mark::none});
  if (data.chain->broken() || data.custody.unproven) {
    report.badges.push_back({"NOT PROVEN", Mark::bad});
  } else {
    report.badges.push_back(data.custody.is_signed ? ReportText{"proven, signed", Mark::good}
                                                   : ReportText{"consistent, unsigned", Mark::warning});
  }
  if (!data.erased.empty())
    report.badges.push_back(
        {many(static_cast<std::int64_t>(data.erased.size()), "event erased", "events erased"), Mark::warning});
  if (data.pending.total > 0)
    report.badges.push_back({fmt::format("{} without an end", data.pending.total), Mark::warning});
}

}  // namespace

ReportDocument report_document(const ReportData& data) {
  ReportDocument report;
  report.title = "Audit report of run " + data.run_id;
  report.subtitle = fmt::format("{}, written {} by muniment " MUNIMENT_VERSION, many(data.events, "event", "events"),
                                data.written_at);
  add_badges(report, data);
  report.sections = {summary_section(data), custody_section(data), who_section(data),       what_section(data),
                     models_section(data),  actions_section(data), approvals_section(data), ledger_section(data),
                     reads_section(data),   stops_section(data),   erasure_section(data),   gaps_section(data),
                     time_section(data),    limits_section(data),  repeat_section(data)};
  return report;
}

}  // namespace muniment::cli
