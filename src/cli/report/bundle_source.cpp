// Reads a run from a bundle for its report, after muniment-verify has verified the bundle.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/bundle/rows.hpp"
#include "cli/report/source.hpp"
#include "cli/verifier.hpp"
#include "events/state.hpp"

namespace muniment::cli {
namespace {

// Members of a line that hold JSON as text. The line's text itself is one level above them.
constexpr std::string_view json_members[] = {"body", "content", "pointers", "metadata"};
constexpr std::size_t line_depth_max = limits::json_depth_max + 1;

// Returns a line of a bundle in the form in which the daemon returns the event or the row. Errors: corrupt.
Result<std::string> daemon_form(std::string_view line, const std::string& run_id) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(line));
  json::Writer out;
  out.begin_object().member("run_id", run_id);
  for (const json::Value member : document.root()) {
    const std::string name = member.key();
    if (name == "run_id" || member.is(json::Kind::null)) continue;
    if (name == "origin") {
      out.member(name, name_of(static_cast<events::Origin>(member.as_int().value_or(0))));
    } else if (std::ranges::find(json_members, name) == std::end(json_members)) {
      out.raw_member(name, member.source());
    } else {
      const std::string text = member.string_or("");
      RETURN_IF_ERROR(json::parse(text));
      out.raw_member(name, text);
    }
  }
  if (document.root()["run_hash"] && document.root()["salt"].is(json::Kind::null)) out.member("redacted", true);
  return out.end_object().text();
}

class BundleReport : public ReportSource {
 public:
  BundleReport(std::string bundle, std::string verdict) : bundle_(std::move(bundle)), verdict_(std::move(verdict)) {}

  Status read_run(ReportData& data) override {
    ASSIGN_OR_RETURN(const json::Document verdict, json::parse(verdict_));
    data.from_bundle = true;
    data.run_id = run_id_ = verdict.root()["run_id"].string_or("");
    data.log_id = verdict.root()["log_id"].string_or("");
    RETURN_IF_ERROR(read_custody_members(data.custody));
    RETURN_IF_ERROR(each("events.jsonl", [&](const json::Value& event) { fold(data, event); }));
    ASSIGN_OR_RETURN(const json::Document state, json::parse(state_text_ = state_.document()));
    for (const json::Value member : state.root()["run"]) data.run[member.key()] = spelled_value(member);
    data.run["halt"] = spelled_value(state.root()["halt"]);
    for (const json::Value label : state.root()["run"]["labels"])
      data.labels.emplace_back(label.key(), shown_value(label));
    data.chain.emplace(parse_uuid(data.log_id).value_or(Uuid{}), run_no_);
    return success();
  }

  Estimates estimates() override { return {}; }

  Status each_event(const Take& take) override { return each("events.jsonl", take); }
  Status each_claim(const Take& take) override { return each("claims.jsonl", take); }
  Status each_evidence(const Take& take) override { return each("evidence.jsonl", take); }

  Status read_custody(ReportData& data) override {
    ReportCustody& custody = data.custody;
    ASSIGN_OR_RETURN(const json::Document document, json::parse(verdict_));
    const json::Value verdict = document.root();
    custody.root = verdict["root"].string_or("");
    custody.is_signed = verdict["verdict"].string_or("") == "verified";
    if (const std::string keys = verdict["wrong_key"].string_or(""); !keys.empty())
      custody.unproven = "none of the given keys signed the checkpoint: " + keys;
    if (!custody.is_signed) return success();
    for (const json::Value key : verdict["keys"]) custody.signed_by.push_back(key["key"].string_or(""));
    return success();
  }

  Result<std::string> pending() override {
    ASSIGN_OR_RETURN(const json::Document state, json::parse(state_text_));
    return std::string(state.root()["pending"].source());
  }

  Status read_clock_steps(ReportData& data) override {
    data.clock_steps_unknown = "a bundle has no events of the log's own run, which would name the steps";
    return success();
  }

 private:
  Status each(std::string_view member, const Take& take) {
    ASSIGN_OR_RETURN(MemberLines lines, MemberLines::open(bundle_, member));
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, lines.next());
      if (!line) return success();
      if (member == "events.jsonl" && run_no_ < 0) {
        ASSIGN_OR_RETURN(const json::Document first, json::parse(*line));
        run_no_ = first.root()["run_no"].as_int().value_or(-1);
      }
      auto text = daemon_form(*line, run_id_);
      if (!text) return std::move(text).error().within(member);
      ASSIGN_OR_RETURN(const json::Document document, json::parse(*text, line_depth_max));
      take(document.root());
    }
  }

  void fold(ReportData& data, const json::Value& event) {
    const std::string type = event["type"].string_or("");
    if (type == "run.started") {
      data.run["owner"] = event["actor"].string_or("");
      data.run["external_id"] = shown_value(event["body"]["external_id"]);
    }
    if (type == "run.resumed") data.run["ended_at"] = "";
    if (type == "run.ended") data.run["ended_at"] = event["recorded_at"].string_or("");
    if (const auto parsed = event_of_answer(event, run_no_)) state_.apply(*parsed);
  }

  Status read_custody_members(ReportCustody& custody) {
    ASSIGN_OR_RETURN(MemberLines note, MemberLines::open(bundle_, "checkpoint"));
    ASSIGN_OR_RETURN(MemberLines keys, MemberLines::open(bundle_, "keys"));
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, note.next());
      if (!line) break;
      custody.note += *line + '\n';
    }
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, keys.next());
      if (!line) break;
      if (!line->starts_with('#')) custody.keys.push_back(*line);
    }
    ASSIGN_OR_RETURN(const BundleCheckpoint checkpoint, read_bundle_checkpoint(custody.note));
    custody.origin_line = checkpoint.origin;
    custody.size = checkpoint.size;
    custody.unsigned_why = checkpoint.is_signed
                               ? "no key was given to check the signature of the checkpoint (--key FILE)"
                               : "the checkpoint is not signed";
    return success();
  }

  const std::string bundle_, verdict_;
  std::string run_id_, state_text_;
  std::int64_t run_no_ = -1;
  events::State state_;
};

}  // namespace

Result<std::unique_ptr<ReportSource>> bundle_report_source(const std::string& bundle, const std::string& key) {
  ASSIGN_OR_RETURN(BundleVerdict verdict, verify_bundle(bundle, key));
  if (!verdict.verified() && !verdict.is_unsigned()) {
    return Error(verdict.exit_code == 1 ? Errc::corrupt : Errc::invalid_argument,
                 fmt::format("no report was written: muniment-verify reports: {}", verdict_words(verdict)));
  }
  const auto report = json::parse(verdict.report);
  if (report && report->root()["run_id"].string_or("") == "_log")
    return Error(Errc::invalid_argument, "the bundle is that of _log, the log's own run, which has no report");
  return std::unique_ptr<ReportSource>(std::make_unique<BundleReport>(bundle, std::move(verdict.report)));
}

}  // namespace muniment::cli
