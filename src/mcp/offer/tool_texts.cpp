// Writes the texts of tool results.
#include "mcp/offer/tool_texts.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace muniment::mcp {
namespace {

constexpr std::size_t passage_bytes_max = 4'000;
constexpr std::size_t json_bytes_max = 4'000;
constexpr std::size_t findings_shown_max = 20;
constexpr std::size_t finding_bytes_max = 400;

std::string cut(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}… ({} bytes in all)", text.substr(0, end), text.size());
}

std::string text_of(const json::Value& value) { return value.string_or(""); }
std::int64_t number_of(const json::Value& value) { return value.as_int().value_or(0); }

// "1 card", "2 cards".
std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}
std::string counted(const json::Value& list, std::string_view noun) {
  return counted(static_cast<std::int64_t>(list.size()), noun);
}

// Lists the runs that the request itself stopped.
std::string say_halted(const json::Value& halted) {
  std::string text;
  for (const json::Value run : halted) {
    text += fmt::format(
        "\nRun {} is stopped with {}: {}. Do no further work in it; tell the user. See: muniment "
        "recover {}",
        text_of(run["run_id"]), text_of(run["code"]), text_of(run["reason"]), text_of(run["run_id"]));
  }
  return text;
}

// "2026-11-22" of a time; empty for none.
std::string day_of(const json::Value& time) { return text_of(time).substr(0, 10); }

// Returns what a model needs to weigh a fact: its date, its source, and whether there is another statement about the
// same. `place` finds the number of the newer one.
std::string circumstances(const json::Value& fact, const std::function<int(const std::string&)>& place) {
  std::string text = day_of(fact["freshness"]);
  const std::string source = text_of(fact["source"]), replaced = day_of(fact["replaces"]);
  if (!source.empty()) text += ", from " + source;
  if (!replaced.empty()) text += ", replaces the text of " + replaced;
  if (fact["newer"]) text += fmt::format(", older than {}, which may replace it", place(text_of(fact["newer"])));
  if (fact["expires_at"]) text += ", valid until " + day_of(fact["expires_at"]);
  if (!fact["current"].as_bool().value_or(true)) text += ", no longer current";
  return text;
}

// Explains why nothing was recalled or found.
std::string say_nothing(const json::Value& result) {
  const std::string reason = text_of(result["reason"]);
  const std::int64_t count = number_of(result["count"]);
  if (reason == "expired") return fmt::format("what is known about it has expired ({})", counted(count, "fact"));
  if (reason == "all_quarantined")
    return fmt::format("what is known about it waits for review ({})", counted(count, "fact"));
  if (reason == "low_confidence") return "what is stored hardly answers it";
  if (reason == "index_behind") return fmt::format("the index is behind by {}; ask again", counted(count, "event"));
  if (reason == "nothing_indexed") return "nothing is stored yet";
  return reason.empty() || reason == "no_match" ? "nothing stored is about it" : reason;
}

// Lists blocking findings first, then notes. A finding's text ends with the next step.
std::string say_findings(const json::Value& result) {
  std::string text;
  std::size_t shown = 0;
  for (const bool blocking : {true, false}) {
    for (const json::Value finding : result["findings"]) {
      if (finding["blocks"].as_bool().value_or(false) != blocking) continue;
      if (++shown > findings_shown_max) continue;
      const std::string id = text_of(finding["evidence_id"]);
      text += fmt::format("\n- {}{}{}: {}", blocking ? "" : "note: ", id.empty() ? "" : "evidence " + id + ": ",
                          text_of(finding["code"]), cut(text_of(finding["text"]), finding_bytes_max));
    }
  }
  if (shown > findings_shown_max) text += fmt::format("\n- and {} more findings", shown - findings_shown_max);
  return text;
}

}  // namespace

std::string say_cards(const json::Value& result) {
  std::string text;
  for (const json::Value query : result["results"]) {
    if (!text.empty()) text += "\n";
    text += fmt::format("{}: {}", text_of(query["query"]), counted(query["cards"], "card"));
    if (query["reason"]) text += fmt::format(" ({})", say_nothing(query));
    const auto place = [&](const std::string& pointer) {
      int number = 0;
      for (const json::Value card : query["cards"]) {
        ++number;
        if (text_of(card["id"]) == pointer) return number;
      }
      return 0;
    };
    int number = 0;
    for (const json::Value card : query["cards"]) {
      text += fmt::format("\n{}. {} [ref:{}] {}, {}\n   {}", ++number, text_of(card["title"]), text_of(card["id"]),
                          circumstances(card, place), text_of(card["trust"]), text_of(card["summary"]));
    }
  }
  return text;
}

std::string say_rendered(const json::Value& result) {
  if (result["ok"].as_bool().value_or(false)) {
    std::string text = text_of(result["content"]);
    for (const json::Value citation : result["citations"])
      text += fmt::format("\n[{}] {}", number_of(citation["number"]), text_of(citation["pointer"]));
    return text;
  }
  std::string text = "The draft has citations that do not resolve. Correct or remove them:";
  for (const json::Value bad : result["bad"])
    text += fmt::format("\n{}: {} {}", text_of(bad["pointer"]), text_of(bad["reason"]), text_of(bad["detail"]));
  return text + say_halted(result["halted"]);
}

std::string say_resolved(const json::Value& result) {
  std::string text;
  for (const json::Value one : result["results"]) {
    if (!text.empty()) text += "\n";
    text += text_of(one["pointer"]);
    if (!one["ok"].as_bool().value_or(false)) {
      text += fmt::format(": {} {}", text_of(one["reason"]), text_of(one["detail"]));
    } else if (one["text"]) {
      text += ":\n" + cut(text_of(one["text"]), passage_bytes_max);
    } else {
      text += fmt::format(": {} bytes, intact", number_of(one["size_bytes"]));
    }
  }
  return text + say_halted(result["halted"]);
}

std::string say_answer(const json::Value& result) {
  std::string text = text_of(result["answer"]);
  for (const json::Value item : result["provenance"]["local"])
    text += fmt::format("\n[{}] [ref:{}]", number_of(item["n"]), text_of(item["pointer"]));
  return text + fmt::format("\nConfidence {:.2f}", result["confidence"]["local"].as_double().value_or(0));
}

std::string say_context(const json::Value& result) {
  const std::string text = text_of(result["text"]);
  return text.empty() ? fmt::format("Nothing is recalled: {}.", say_nothing(result)) : text;
}

std::string say_remembered(const json::Value& result) {
  std::string text;
  for (const json::Value document : result["documents"]) {
    text += fmt::format("{} {} ({})", document["unchanged"].as_bool().value_or(false) ? "Unchanged:" : "Stored:",
                        text_of(document["uri"]), counted(number_of(document["chunks"]), "chunk"));
    if (document["replaces"]) text += "\nIt replaces " + text_of(document["replaces"]);
    for (const json::Value known : document["known"]) text += "\nThe same is known already as " + text_of(known);
    if (text_of(document["trust"]) == "quarantined")
      text += "\nIt waits for review, and is not recalled until then: the user runs muniment memory review";
  }
  for (const json::Value error : result["errors"])
    text += fmt::format("Not stored: {}: {}", text_of(error["code"]), text_of(error["message"]));
  return text;
}

std::string say_forgotten(const json::Value& result) {
  const std::string fact = text_of(result["corpus"]) + "/" + text_of(result["document"]);
  if (const std::int64_t files = number_of(result["erased_files"]); files > 0)
    return fmt::format(
        "Erased: {}, {} at seq {}. The log keeps its subject and its hashes.{}", fact, counted(files, "file"),
        number_of(result["seq"]),
        result["answers"].size() == 0
            ? ""
            : fmt::format(" {} in the log still {} it; the user erases them: muniment audit redact.",
                          counted(result["answers"], "answer"), result["answers"].size() == 1 ? "quotes" : "quote"));
  return fmt::format("Forgotten: {} at seq {}. It is no longer recalled; its history remains.", fact,
                     number_of(result["seq"]));
}

std::string say_memories(const json::Value& result) {
  std::string text = counted(result["documents"], "fact");
  for (const json::Value row : result["documents"]) {
    text += fmt::format("\n{}: {} ({}, from {}{}{})", text_of(row["document"]), text_of(row["summary"]),
                        day_of(row["timestamp"]), text_of(row["source"]),
                        row["expires_at"] ? ", valid until " + day_of(row["expires_at"]) : "",
                        text_of(row["trust"]) == "untrusted" ? "" : ", " + text_of(row["trust"]));
  }
  if (result["cursor"]) text += fmt::format("\nThe list continues: cursor {}", result["cursor"].source());
  return text;
}

std::string say_history(const json::Value& result) {
  std::string text = counted(result["revisions"], "text");
  for (const json::Value row : result["revisions"]) {
    const std::string ended = text_of(row["ended_by"]);
    text += fmt::format("\n{} seq {}, from {}, {}: {} [ref:{}]", day_of(row["recorded_at"]), number_of(row["seq"]),
                        text_of(row["source"]),
                        ended.empty() ? "current" : fmt::format("{} at {}", ended, number_of(row["valid_to"])),
                        text_of(row["summary"]), text_of(row[row["pointer"] ? "pointer" : "uri"]));
  }
  return text;
}

std::string say_started(const json::Value& result) {
  return fmt::format("Run {} {} at seq {}", text_of(result["run_id"]),
                     result["resumed"].as_bool().value_or(false) ? "resumed" : "started", number_of(result["seq"]));
}

std::string say_ended(const json::Value& result) {
  return fmt::format("Run {} ended at seq {}", text_of(result["run_id"]), number_of(result["seq"]));
}

std::string say_recorded(const json::Value& result) {
  if (result["receipts"]) return counted(result["receipts"], "event") + " recorded";
  return fmt::format("Recorded at seq {} (run_seq {}), event {}{}", number_of(result["seq"]),
                     number_of(result["run_seq"]), text_of(result["event_id"]),
                     result["duplicate"].as_bool().value_or(false) ? ", as before" : "");
}

std::string say_claimed(const json::Value& result) {
  return fmt::format("Claim {} recorded at seq {}", text_of(result["claim_id"]), number_of(result["seq"]));
}

std::string say_state(const json::Value& result) {
  std::string text = fmt::format("State as of run_seq {}", number_of(result["run_seq"]));
  if (const std::string artifact = text_of(result["state_artifact"]); !artifact.empty())
    text += fmt::format(", in artifact {}: it is too large to be shown", artifact);
  if (result["state"]) text += ":\n" + cut(result["state"].source(), json_bytes_max);
  return text;
}

std::string say_feedback(const json::Value& result) {
  return fmt::format("Recorded for {} at seq {}", text_of(result["pointer"]), number_of(result["seq"]));
}

std::string say_status(const json::Value& result) {
  std::string text =
      fmt::format("Muniment {}: {}", text_of(result["version"]), counted(number_of(result["log"]["size"]), "event"));
  for (const json::Value problem : result["degraded"]) text += "\ndegraded: " + text_of(problem);
  for (const json::Value note : result["notes"]) text += "\n" + text_of(note);
  return text;
}

std::string say_runs(const json::Value& result) {
  std::string text = counted(result["runs"], "run");
  for (const json::Value run : result["runs"])
    text += fmt::format("\n{} {} {}", text_of(run["run_id"]), text_of(run["status"]), text_of(run["agent"]));
  return text;
}

std::string say_events(const json::Value& result) {
  std::string text = counted(result["events"], "event");
  for (const json::Value event : result["events"]) {
    text +=
        fmt::format("\n{} {} {}", number_of(event["run_seq"]), text_of(event["recorded_at"]), text_of(event["type"]));
  }
  return text;
}

std::string say_opened(const json::Value& result) {
  const std::string task = text_of(result["task_id"]);
  return fmt::format(
      "Task {} {} at seq {}. Complete it with complete_task and the ids of its evidence. A recorded command is the "
      "strongest evidence: muniment exec --run {} --evidence test_output --task {} -- COMMAND",
      task, result["duplicate"].as_bool().value_or(false) ? "was opened before," : "opened", number_of(result["seq"]),
      text_of(result["run_id"]), task);
}

std::string say_validated(const json::Value& result) {
  const bool can_complete = result["can_complete"].as_bool().value_or(false);
  std::string text =
      fmt::format("The task {} be completed with this evidence ({}): {}", can_complete ? "can" : "cannot",
                  text_of(result["verdict"]), text_of(result["reason"]));
  return text + say_findings(result) + say_halted(result["halted"]);
}

std::string say_completed(const json::Value& result) {
  const std::string task = text_of(result["task_id"]), verdict = text_of(result["verdict"]);
  if (result["completed"].as_bool().value_or(false)) {
    return fmt::format("Task {} completed at seq {} ({}): {}", task, number_of(result["seq"]), verdict,
                       text_of(result["reason"])) +
           say_findings(result);
  }
  return fmt::format("Task {} is not completed: refused ({}): {}", task, verdict, text_of(result["reason"])) +
         say_findings(result) +
         "\nThe task is still open. Do not report it as done: take the steps above, then call "
         "complete_task with the ids of the new evidence." +
         say_halted(result["halted"]);
}

std::string say_json(const json::Value& result) { return cut(result.source(), json_bytes_max); }

}  // namespace muniment::mcp
