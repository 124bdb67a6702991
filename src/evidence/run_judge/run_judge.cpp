// Feeds a run's events to the history, and collects and rules on its claims.
#include "evidence/run_judge/run_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "evidence/run_judge/actions/ledger.hpp"
#include "evidence/run_judge/history.hpp"
#include "evidence/run_judge/kinds.hpp"
#include "evidence/run_judge/sentences.hpp"
#include "evidence/run_judge/tool_calls.hpp"
#include "evidence/run_judge/words.hpp"

namespace muniment::evidence::run_judge {
namespace {

constexpr std::size_t calls_pending_max = 1'000;  // tools and commands without an end; the oldest is dropped
constexpr std::size_t claims_open_max = 256;      // claims that a later event may decide; the oldest keeps its verdict
constexpr std::size_t acts_judged_max = 2'000;    // claims of actions of a run; later ones are counted, not kept
constexpr std::size_t sentences_compared_max = 64;  // sentences of the last message
constexpr std::size_t texts_remembered = 16;        // to detect an answer that is also recorded as a message
constexpr std::size_t claims_remembered = 1'000;    // claims since the newest fact, to detect repetitions
constexpr std::size_t items_max = 10'000;           // completed plan items

constexpr std::string_view judged_types[] = {
    "claim.recorded", "command.ended", "command.started", "evidence.recorded", "file.changed",  "message.added",
    "model.answered", "plan.updated",  "run.ended",       "tool.called",       "tool.returned",
};

void add_artifact(std::vector<Uuid>& artifacts, const json::Value& ref) {
  if (const auto id = parse_uuid(ref["artifact_id"].string_or(""))) artifacts.push_back(*id);
}

// Appends text, and keeps only the beginning and the end of a long output: a summary is at the end.
void append_output(std::string& output, std::string_view text) {
  if (text.size() <= output_bytes_max) {
    output += text;
  } else {
    constexpr std::size_t head = output_bytes_max / 16;
    output += text.substr(0, head);
    output += '\n';
    output += text.substr(text.size() - (output_bytes_max - head));
  }
}

void append_ref(std::string& text, const json::Value& ref, const Spilled* spilled) {
  if (spilled == nullptr || !ref) return;
  const auto found = spilled->find(ref["artifact_id"].string_or(""));
  if (found == spilled->end()) return;
  if (!text.empty()) text += '\n';
  append_output(text, found->second);
}

bool is_ref(const json::Value& part) { return part["artifact_id"].present(); }

// Returns the text parts of content. Reasoning contains no claims; the type of a spilled part shows whether it was
// reasoning.
std::string content_text(const json::Value& content, const Spilled* spilled) {
  std::string text;
  for (const json::Value part : content) {
    const std::string type = part["type"].string_or("");
    if (is_ref(part)) {
      if (type.empty() || type == "text") append_ref(text, part, spilled);
    } else if (type == "text") {
      if (!text.empty()) text += '\n';
      append_output(text, part["content"].string_or(""));
    }
  }
  return text;
}

bool is_done(std::string_view status) {
  return status == "done" || status == "completed" || status == "complete" || status == "finished" ||
         status == "closed";
}

}  // namespace

struct RunJudge::State {
  struct Open {
    std::size_t index = 0;
    Said said;
  };

  void add(const Event& event);
  void add_text(std::int64_t seq, std::string_view text);
  void add_claim(std::int64_t seq, std::string_view quote, const Said& said);
  bool is_repeated(std::string_view quote, const Said& said);
  void add_plan(const Event& event);
  void add_run_end(const Event& event);
  void remember(const Event& event, CallEffects call);
  void end_tool(const Event& event);
  void end_command(const Event& event);
  void apply(std::int64_t seq, const CallEffects& call, const Ending& ending);
  void add_changed_file(const Event& event);
  void add_evidence(const Event& event);
  void judge_open();
  Ruling rule(const Said& said);
  void add_action(std::int64_t seq, CallEffects& call, const ToolResult& result, const Ending& ending);
  void settle();
  void judge_last_text();

  History history;
  Ledger ledger;
  std::vector<Claim> claims;
  std::int64_t left_out = 0;
  std::deque<Open> open;
  std::map<std::string, CallEffects, std::less<>> calls;
  std::deque<std::string> call_order;
  std::deque<std::size_t> texts;  // hashes of the newest texts
  std::set<std::string, std::less<>> done_items;
  std::set<std::string, std::less<>> said_since;  // claims since the newest fact
  std::string last_text;                          // the newest message of the agent
  std::int64_t last_seq = 0;
  std::vector<Open> absent;      // claims without an event that concerns them
  std::size_t acts = 0;          // number of claims of actions
  std::uint64_t facts_said = 0;  // number of the history's facts at that time
};

// Rules by the checks and files, and on actions by the ledger of calls. A claim of a commit or the like must agree with
// both.
Ruling RunJudge::State::rule(const Said& said) {
  Ruling ruling = history.judge(said);
  const bool deed = said.kind == Kind::deployed || said.kind == Kind::committed || said.kind == Kind::pushed ||
                    said.kind == Kind::installed;
  const bool unseen = ruling.verdict == Verdict::unsupported;
  if (said.service && unseen && !ledger.is_empty()) return ledger.judge_service("the checks");
  if (!said.act) {
    const bool check = said.kind == Kind::tests_pass || said.kind == Kind::tests_run ||
                       said.kind == Kind::build_succeeds || said.kind == Kind::lint_clean ||
                       said.kind == Kind::types_check;
    // Without an edit or a check, the words of other work are no claims about code.
    const bool of_code = ledger.is_empty() || history.last_edit() || history.has_checks();
    ruling.no_claim = unseen && !of_code &&
                      (said.kind == Kind::verified || said.kind == Kind::completed || said.kind == Kind::tests_fail);
    ruling.absent = unseen && check && !ruling.seq && !ledger.has_opaque();
    return ruling;
  }
  if (said.kind == Kind::file_written || said.kind == Kind::file_deleted) {
    ruling.absent = unseen && !said.subject.empty() && !ledger.has_opaque() && !history.changes_unnamed();
    return ruling;
  }
  const bool unedited = said.kind == Kind::fixed && !history.last_edit();
  if (said.kind != Kind::action && !deed && !unedited) return ruling;
  Ruling acted = ledger.judge(*said.act);
  const bool edited = acted.absent && history.last_edit() && (said.act->effects & (creates | updates | cancels)) != 0 &&
                      said.kind == Kind::action && said.act->nouns.empty();
  if (edited) return {Verdict::supported, history.last_edit(), "the tree was edited", false, false};
  if (deed && ruling.verdict != Verdict::unsupported && acted.absent && ledger.has_actions()) {
    acted.verdict = Verdict::contradicted;
    return acted;
  }
  if (deed && ruling.verdict != Verdict::unsupported && acted.verdict != Verdict::contradicted) {
    if (ruling.verdict != Verdict::inconclusive || acted.verdict != Verdict::supported || ruling.seq != acted.seq)
      return ruling;
  }
  return {acted.verdict, acted.seq, std::move(acted.why), acted.absent, acted.no_claim};
}

// Returns whether the same claim was made since the newest fact, as by an answer that also passes its text to a tool.
bool RunJudge::State::is_repeated(std::string_view quote, const Said& said) {
  if (history.facts() != facts_said) said_since.clear();
  facts_said = history.facts();
  std::string key =
      std::string(name_of(said.kind)) + '\n' + said.subject + '\n' + (said.act ? said.act->verb : "") + '\n';
  std::copy_if(quote.begin(), quote.end(), std::back_inserter(key), [](char c) { return c != '"' && c != ' '; });
  return said_since.size() < claims_remembered && !said_since.insert(std::move(key)).second;
}

void RunJudge::State::add_claim(std::int64_t seq, std::string_view quote, const Said& said) {
  if (is_repeated(quote, said)) return;
  if (claims.size() >= claims_max || (said.act && acts >= acts_judged_max)) {
    ++left_out;
    return;
  }
  acts += said.act ? 1U : 0U;
  Ruling ruling = rule(said);
  if (ruling.no_claim) return;
  if (ruling.absent) absent.push_back({claims.size(), said});
  claims.push_back({.seq = seq,
                    .quote = preview(quote, quote_bytes_max),
                    .kind = name_of(said.kind),
                    .subject = said.subject,
                    .verdict = ruling.verdict,
                    .evidence_seq = ruling.seq,
                    .why = std::move(ruling.why)});
  if (ruling.verdict != Verdict::unsupported && ruling.verdict != Verdict::inconclusive) return;
  if (open.size() >= claims_open_max) open.pop_front();
  open.push_back({claims.size() - 1, said});
}

// Returns the lines with a label that follow a sentence.
std::string details_after(const std::vector<Sentence>& sentences, std::size_t at) {
  static const Pattern label(
      R"(^\W*[A-Z][\w /-]{1,24}\W{0,4}:\W{0,4}\s*\S|^\W*(?:The|Your|Its)\s+(?:new\s+)?(?:confirmation|reference|booking|ticket|order|tracking)(?:\s+(?:number|code|id|ID|reference))?\s+is\b)",
      false);
  constexpr std::size_t lines_max = 12, line_bytes_max = 120;
  std::string lines;
  for (std::size_t i = at + 1; i < sentences.size() && i <= at + lines_max; ++i) {
    if (sentences[i].text.size() > line_bytes_max || !label.in(sentences[i].text)) break;
    lines += sentences[i].text + ". ";
  }
  return lines;
}

void RunJudge::State::add_text(std::int64_t seq, std::string_view text) {
  if (text.empty()) return;
  const std::size_t hash = std::hash<std::string_view>()(text);
  if (std::find(texts.begin(), texts.end(), hash) != texts.end()) return;
  texts.push_back(hash);
  if (texts.size() > texts_remembered) texts.pop_front();
  last_text = std::string(text.substr(0, text_bytes_max));
  last_seq = seq;
  // A later message refers to later files.
  std::erase_if(
      open, [](const Open& one) { return one.said.kind == Kind::file_written || one.said.kind == Kind::file_deleted; });
  const std::vector<Sentence> sentences = sentences_of(text.substr(0, text_bytes_max));
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const Sentence& sentence = sentences[i];
    const std::string details = details_after(sentences, i);
    for (Said& said : claims_in(sentence)) {
      if (said.act) add_details(*said.act, details);
      if (said.act) add_context(*said.act, text.substr(0, text_bytes_max));
      add_claim(seq, sentence.text, said);
    }
  }
}

void RunJudge::State::add_plan(const Event& event) {
  for (const json::Value item : event.body["items"]) {
    const std::string id = item["id"].string_or("");
    if (!is_done(item["status"].string_or("")) || done_items.size() >= items_max || !done_items.insert(id).second)
      continue;
    const std::string text = item["text"].string_or("");
    if (const auto said = claim_of_item(text)) add_claim(event.seq, text, *said);
  }
}

void RunJudge::State::add_run_end(const Event& event) {
  const std::string summary = event.body["summary"].string_or("");
  add_text(event.seq, summary);
  // Without an edit or a check, the success of a run is that of its actions, which are claims of their own.
  const bool of_code = ledger.is_empty() || history.last_edit() || history.has_checks();
  if (event.body["outcome"].string_or("") == "success" && of_code) {
    add_claim(event.seq, "outcome: success", {.kind = Kind::completed, .subject = {}, .count = std::nullopt});
  }
}

void RunJudge::State::remember(const Event& event, CallEffects call) {
  std::string id = event.body["call_id"].string_or("");
  if (call_order.size() >= 2 * calls_pending_max) {
    std::erase_if(call_order, [this](const std::string& known) { return !calls.contains(known); });
  }
  while (calls.size() >= calls_pending_max && !call_order.empty()) {
    calls.erase(call_order.front());
    call_order.pop_front();
  }
  call_order.push_back(id);
  calls.insert_or_assign(std::move(id), std::move(call));
}

// File changes precede checks: a line that writes a file and runs the tests has tested the new file.
void RunJudge::State::apply(std::int64_t seq, const CallEffects& call, const Ending& ending) {
  const bool exit_bad = ending.failed || ending.exit_code.value_or(0) != 0;
  const bool exit_known = ending.failed || ending.succeeded || ending.exit_code;
  const bool refused = call.edits && (exit_bad || is_refused_edit(ending.output));
  const bool doubtful = !call.edits && (exit_bad || (!exit_known && shows_error(ending.output)));
  constexpr std::size_t answer_bytes = 200;
  const bool created = ending.output.substr(0, answer_bytes).find("created successfully") != std::string_view::npos;
  for (const FileEffect& file : call.effects.files) history.add_file(seq, file, refused, doubtful, created);
  if (call.effects.changes_tree && !refused) history.add_unnamed_edit(seq);
  for (const CheckRun& run : call.effects.checks) history.add_check(seq, run, end_of(run, ending));
}

// Adds the call to the ledger. The exit status of a shell precedes the words of its output.
void RunJudge::State::add_action(std::int64_t seq, CallEffects& call, const ToolResult& result, const Ending& ending) {
  Action action{.seq = seq,
                .call = std::move(call.call),
                .receipt = result.receipt,
                .status = result.status,
                .scalars = result.scalars,
                .records = result.records,
                .slots = {},
                .pool = result.output};
  if (!call.line.empty()) {
    const ToolResult inner = result_of(ending.output);
    const bool status = ending.exit_code.has_value();
    const bool bad = status ? *ending.exit_code != 0 : shows_error(ending.output);
    action.receipt = bad ? Receipt::failed : inner.json ? inner.receipt : result.json ? result.receipt : Receipt::done;
    action.status = bad ? (status ? fmt::format("exit code {}", *ending.exit_code) : preview(ending.output, 80))
                    : inner.json  ? inner.status
                    : result.json ? result.status
                                  : "";
    if (!bad && !inner.json && inner.receipt != Receipt::done &&
        (action.call.effects & (deploys | sends | pays | pushes)) != 0) {
      action.receipt = inner.receipt;
      action.status = inner.status;
    }
    if (inner.json) {
      action.scalars = inner.scalars;
      action.records = inner.records;
    } else if (!result.json) {
      action.scalars.clear();
    }
  }
  if (ending.failed && action.receipt != Receipt::failed) {
    action.receipt = Receipt::failed;
    action.status = preview(ending.output, 80);
  }
  if (ending.cut_short) action.receipt = Receipt::unknown;
  ledger.add(std::move(action));
}

void RunJudge::State::end_tool(const Event& event) {
  const auto call = calls.find(event.body["call_id"].string_or(""));
  if (call == calls.end()) return;
  std::string output = content_text(event.body["content"], event.spilled);
  if (const json::Value error = event.body["error"]) append_output(output, "\n" + error["message"].string_or(""));
  const std::string status = event.body["status"].string_or("");
  Ending ending;
  const ToolResult result = result_of(output);
  ending.output = result.json ? std::string_view(result.output) : std::string_view(output);
  ending.exit_code = event.body["exit_code"].as_int();
  if (!ending.exit_code || (*ending.exit_code == 0 && result.exit_code)) ending.exit_code = result.exit_code;
  if (!ending.exit_code) ending.exit_code = event.body["exit_code"].as_int();
  if (!ending.exit_code) ending.exit_code = exit_code_in(ending.output);
  if (call->second.line.empty()) ending.counts = result.counts;
  ending.failed = status == "error" || status == "denied";
  ending.succeeded = status == "ok";
  ending.cut_short = status == "timeout" || status == "cancelled" || status == "interrupted";
  // A tool reports its failure in its result.
  const bool judged = call->second.line.empty() || result.json;
  if (judged && result.receipt == Receipt::failed && !ending.exit_code &&
      (call->second.edits || !call->second.effects.checks.empty()))
    ending.failed = true;
  if (call->second.line.empty() && result.receipt == Receipt::pending) ending.succeeded = false;
  // A denied call has no effects.
  add_action(event.seq, call->second, result, ending);
  if (status != "denied") apply(event.seq, call->second, ending);
  calls.erase(call);
}

void RunJudge::State::end_command(const Event& event) {
  const auto call = calls.find(event.body["call_id"].string_or(""));
  if (call == calls.end()) return;
  std::string output;
  append_ref(output, event.body["stdout"], event.spilled);
  append_ref(output, event.body["stderr"], event.spilled);
  const ToolResult result = result_of(output);
  Ending ending;
  ending.output = output;
  ending.exit_code = event.body["exit_code"].as_int();
  ending.failed = event.body["signal"].present();
  ending.cut_short = event.body["interrupted"].as_bool().value_or(false);
  add_action(event.seq, call->second, result, ending);
  apply(event.seq, call->second, ending);
  calls.erase(call);
}

void RunJudge::State::add_changed_file(const Event& event) {
  const std::string path = event.body["path"].string_or("");
  const std::string change = event.body["change"].string_or("");
  if (const auto from = event.body["from_path"].as_string(); from && change == "renamed") {
    history.add_file(event.seq, {*from, true}, false, false, false);
  }
  history.add_file(event.seq, {path, change == "deleted"}, false, false, change == "created");
}

void RunJudge::State::add_evidence(const Event& event) {
  const json::Value content = event.body["content"];
  const std::string text = content["text"].string_or("");
  const auto passed = content["passed"].as_bool();
  CheckRun run{
      .check = Check::test, .command = event.body["type"].string_or(""), .targets = {}, .status_speaks = false};
  CheckEnd end{.outcome = Outcome::unknown, .counts = test_counts_in(text)};
  if (!end.counts && !passed) return;
  const bool good = end.counts ? end.counts->failed == 0 && passed.value_or(true) : *passed;
  const bool empty = end.counts && end.counts->failed == 0 && end.counts->passed == 0;
  end.outcome = !good ? Outcome::failed : empty ? Outcome::no_tests : Outcome::passed;
  // The daemon's evidence of a recorded command is equivalent to the command's own events.
  std::vector<std::string> argv;
  for (const json::Value word : content["command"]["argv"]) argv.push_back(word.string_or(""));
  const CommandEffects effects = effects_of_argv(argv);
  const bool speaks = std::all_of(effects.checks.begin(), effects.checks.end(),
                                  [](const CheckRun& one) { return one.output_speaks || one.status_speaks; });
  if (end.outcome == Outcome::passed && !speaks) end.outcome = Outcome::unknown;
  history.add_check(event.seq, run, end);
}

// Rules again on open claims: a check after a claim, without an edit between them, concerns the same state.
void RunJudge::State::judge_open() {
  std::deque<Open> still;
  for (Open& one : open) {
    // Claims of actions are judged again at the end of the run.
    if (one.said.kind == Kind::action) continue;
    Ruling ruling = history.judge(one.said);
    if (ruling.verdict == Verdict::supported || ruling.verdict == Verdict::contradicted) {
      Claim& claim = claims[one.index];
      claim.verdict = ruling.verdict;
      claim.evidence_seq = ruling.seq;
      claim.why = ruling.why + ", after the claim";
    } else {
      still.push_back(std::move(one));
    }
  }
  open = std::move(still);
}

void RunJudge::State::add(const Event& event) {
  const std::optional<std::int64_t> edit = history.last_edit();
  const std::string_view type = event.type;
  if (type == "message.added") {
    const std::string text = content_text(event.body["content"], event.spilled);
    if (event.body["role"].string_or("") == "assistant") return add_text(event.seq, text);
    return ledger.add_user_text(text);
  }
  if (type == "model.answered") return add_text(event.seq, content_text(event.body["content"], event.spilled));
  if (type == "claim.recorded") return add_text(event.seq, event.body["text"].string_or(""));
  if (type == "plan.updated") return add_plan(event);
  if (type == "run.ended") return add_run_end(event);
  if (type == "command.started") {
    CallEffects call;
    std::vector<std::string> argv;
    for (const json::Value word : event.body["argv"]) argv.push_back(word.string_or(""));
    call.effects = effects_of_argv(argv);
    call.line = joined(argv, " ");
    call.call = tool_call(argv.empty() ? "command" : argv.front(), event.body["cwd"]["none"], call.line, false);
    return remember(event, std::move(call));
  }
  if (type == "tool.called") {
    std::string text;
    append_ref(text, event.body["ref"], event.spilled);
    CallEffects call = effects_of_call(event.body["name"].string_or(""), event.body["kind"].string_or(""),
                                       event.body["arguments"], text);
    const json::Value arguments = event.body["arguments"];
    call.call =
        tool_call(event.body["name"].string_or(""), arguments, call.line, call.edits && !call.effects.files.empty());
    add_text(event.seq, call.said);
    return remember(event, std::move(call));
  }
  if (type == "tool.returned") end_tool(event);
  if (type == "command.ended") end_command(event);
  if (type == "file.changed") add_changed_file(event);
  if (type == "evidence.recorded") add_evidence(event);
  // After an edit, later events show nothing about the earlier state. Only a claim about an announced file stays open,
  // because this edit may write it.
  if (history.last_edit() != edit) {
    std::erase_if(open, [](const Open& one) {
      return one.said.kind != Kind::file_written && one.said.kind != Kind::file_deleted &&
             one.said.kind != Kind::action;
    });
  }
  judge_open();
}

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view names[verdicts] = {"supported", "unsupported", "contradicted", "inconclusive"};
  return names[static_cast<std::size_t>(verdict)];
}

bool is_judged(std::string_view type) {
  return std::find(std::begin(judged_types), std::end(judged_types), type) != std::end(judged_types);
}

std::vector<Uuid> spilled_artifacts(std::string_view type, const json::Value& body) {
  std::vector<Uuid> artifacts;
  if (type == "command.ended") {
    add_artifact(artifacts, body["stdout"]);
    add_artifact(artifacts, body["stderr"]);
  } else if (type == "tool.called") {
    add_artifact(artifacts, body["ref"]);
  } else if (type == "message.added" || type == "model.answered" || type == "tool.returned") {
    if (type == "message.added" && body["role"].string_or("") != "assistant") return artifacts;
    for (const json::Value part : body["content"]) {
      const std::string part_type = part["type"].string_or("");
      if (is_ref(part) && (part_type.empty() || part_type == "text")) add_artifact(artifacts, part);
    }
  }
  return artifacts;
}

RunJudge::RunJudge() : state_(std::make_unique<State>()) {}
RunJudge::~RunJudge() = default;
RunJudge::RunJudge(RunJudge&&) noexcept = default;

void RunJudge::add(const Event& event) { state_->add(event); }

// The last message must not pass over a failure: a sentence that names the target of a failed call as if it were done
// is a claim, whatever its verb.
void RunJudge::State::judge_last_text() {
  static const Pattern told(
      R"(\b(?:not|no|cannot|fail\w*|unable|unfortunately|however|declined|rejected|error\w*|sorry|refused|denied|pending|request\w*|submitted|queued|waiting|awaiting|review|approval|draft\w*|accept\w*|hold|progress|still|yet|unavailable|taken|full|sold|conflict\w*|instead|dry|late|stays?|remains?|unchanged)\b|n't\b)");
  static const Pattern open_mood(
      R"(\?|\b(?:will|would|should|shall|could|might|can|if|once|please|let me|try|trying|want|like to|need|available|going to)\b|'ll\b)");
  const bool contradicted = std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
    return claim.seq == last_seq && claim.verdict == Verdict::contradicted;
  });
  if (contradicted || claims.size() >= claims_max || told.in(last_text)) return;
  std::size_t left = sentences_compared_max;
  for (const Sentence& sentence : sentences_of(last_text)) {
    if (left-- == 0) return;
    if (sentence.question || open_mood.in(sentence.masked)) continue;
    const auto ruling = ledger.hidden_failure(sentence.text);
    if (!ruling) continue;
    claims.push_back({.seq = last_seq,
                      .quote = preview(sentence.text, quote_bytes_max),
                      .kind = name_of(Kind::action),
                      .subject = {},
                      .verdict = ruling->verdict,
                      .evidence_seq = ruling->seq,
                      .why = ruling->why});
    return;
  }
}

// A run that records its calls shows that an action without a call was not carried out.
void RunJudge::State::settle() {
  if (ledger.is_empty()) return;
  judge_last_text();
  for (const Open& one : absent) {
    Claim& claim = claims[one.index];
    if (claim.verdict != Verdict::unsupported) continue;
    // The call may follow the sentence that announces it as done.
    const Ruling ruling = one.said.kind == Kind::action ? rule(one.said) : Ruling{};
    claim.verdict = ruling.verdict == Verdict::supported ? Verdict::supported : Verdict::contradicted;
    if (ruling.verdict != Verdict::supported) continue;
    claim.evidence_seq = ruling.seq;
    claim.why = ruling.why + ", after the claim";
  }
}

Judgement RunJudge::finish() && {
  state_->settle();
  Judgement judgement;
  judgement.claims = std::move(state_->claims);
  judgement.left_out = state_->left_out;
  for (const Claim& claim : judgement.claims) ++judgement.counts[static_cast<std::size_t>(claim.verdict)];
  return judgement;
}

}  // namespace muniment::evidence::run_judge
