// run.judge: compares the agent's claims in a run with the run's events. The events are read in pages; spilled texts
// are read from their artifacts up to a limit.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/limits.hpp"
#include "evidence/run_judge/run_judge.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::gateway::methods {
namespace {

namespace judging = evidence::run_judge;

constexpr std::int64_t judged_spilled_bytes_max = 64 << 20;  // bytes per call; texts beyond it count as unread
constexpr std::int64_t judged_artifact_bytes_max = judging::output_bytes_max;
constexpr std::string_view judged_types[] = {"claim.recorded", "command.*",     "evidence.recorded",
                                             "file.changed",   "message.added", "model.answered",
                                             "plan.updated",   "run.ended",     "tool.*"};

class SpilledReader {
 public:
  SpilledReader(Call& call, const ReadRun& found) : call_(call), found_(found) {}

  // Returns the texts that the event refers to. Only artifacts of this run are read, because a client may put any id
  // into a body.
  Result<judging::Spilled> read(std::string_view type, const json::Value& body) {
    judging::Spilled texts;
    for (const Uuid& id : judging::spilled_artifacts(type, body)) {
      ASSIGN_OR_RETURN(const auto row, found_.reader->artifact(id));
      if (!row || row->run_id != found_.run->run_id || left_bytes_ <= 0) {
        ++unread_;
        continue;
      }
      auto text = read_ends(*row);
      if (!text && is_transient(text.error().code)) return text.error();
      if (!text) {  // damaged or erased, which the methods that return its bytes report
        ++unread_;
        continue;
      }
      left_bytes_ -= std::ssize(*text);
      texts.insert_or_assign(id.text(), *std::move(text));
    }
    return texts;
  }

  std::int64_t unread() const { return unread_; }

 private:
  // Reads all bytes, or the beginning and the end.
  Result<std::string> read_ends(const store::ArtifactRow& row) {
    store::ArtifactFiles& files = call_.services.files;
    const store::StoredFile file = store::file_of(row);
    if (row.size_bytes <= judged_artifact_bytes_max) return files.read(file, 0, row.size_bytes);
    constexpr std::int64_t head_bytes = judged_artifact_bytes_max / 16;
    constexpr std::int64_t tail_bytes = judged_artifact_bytes_max - head_bytes - 1;
    ASSIGN_OR_RETURN(const std::string head, files.read(file, 0, head_bytes));
    ASSIGN_OR_RETURN(const std::string tail, files.read(file, row.size_bytes - tail_bytes, tail_bytes));
    return head + "\n" + tail;
  }

  Call& call_;
  const ReadRun& found_;
  std::int64_t left_bytes_ = judged_spilled_bytes_max;
  std::int64_t unread_ = 0;
};

Status judge_event(judging::RunJudge& judge, SpilledReader& spilled, const events::Event& event) {
  if (!event.body || !judging::is_judged(event.type)) return success();
  const auto body = json::parse(std::string_view(*event.body));
  if (!body) return success();
  ASSIGN_OR_RETURN(const judging::Spilled texts, spilled.read(event.type, body->root()));
  judge.add({.seq = event.seq,
             .type = event.type,
             .body = body->root(),
             .recorded_at = event.recorded_at,
             .spilled = &texts});
  return success();
}

// Reads the current events of the run page by page.
Result<judging::Judgement> judge_events(Call& call, const ReadRun& found, SpilledReader& spilled) {
  const std::int64_t run_no = found.run->view().run_no;
  ASSIGN_OR_RETURN(const std::int64_t next_run_seq, found.reader->next_run_seq(run_no));
  store::EventFilter filter;
  filter.run_no = run_no;
  filter.from_run_seq = 0;
  filter.to_run_seq = next_run_seq - 1;
  filter.types.assign(std::begin(judged_types), std::end(judged_types));
  RETURN_IF_ERROR(found.reader->confirm_run(filter, 0, std::numeric_limits<std::int64_t>::max()));
  judging::RunJudge judge;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<events::Event> page,
                     found.reader->events(filter, limits::page_items_max, limits::page_bytes_max));
    if (page.empty()) return std::move(judge).finish();
    RETURN_IF_ERROR(found.reader->confirm(page));
    for (const events::Event& event : page) RETURN_IF_ERROR(judge_event(judge, spilled, event));
    filter.from_run_seq = page.back().run_seq + 1;
    if (call.services.clock.monotonic() >= call.deadline) {
      return Error(Errc::deadline_exceeded, "the run was judged only up to seq " + std::to_string(page.back().seq) +
                                                ". Call again with a longer deadline.");
    }
  }
}

std::string claim_json(const judging::Claim& claim) {
  json::Writer out;
  out.begin_object().member("seq", claim.seq).member("kind", claim.kind).member("quote", claim.quote);
  if (!claim.subject.empty()) out.member("subject", claim.subject);
  out.member("verdict", judging::name_of(claim.verdict));
  if (claim.evidence_seq) out.member("evidence_seq", *claim.evidence_seq);
  return std::move(out.member("why", claim.why).end_object()).text();
}

}  // namespace

Result<Answer> run_judge(Call& call) {
  ASSIGN_OR_RETURN(const ReadRun found, find_run_to_read(call, call.params["run_id"].string_or("")));
  SpilledReader spilled(call, found);
  ASSIGN_OR_RETURN(const judging::Judgement judgement, judge_events(call, found, spilled));
  const auto limit = static_cast<std::size_t>(
      call.params["limit"].as_int().value_or(static_cast<std::int64_t>(limits::page_items_default)));
  json::Writer out;
  out.begin_object().member("run_id", found.run->run_id).key("claims").begin_array();
  std::size_t shown = 0;
  for (; shown < std::min(judgement.claims.size(), limit); ++shown) {
    const std::string text = claim_json(judgement.claims[shown]);
    if (shown > 0 && out.text().size() + text.size() > limits::page_bytes_max) break;
    out.raw(text);
  }
  out.end_array().key("counts").begin_object();
  for (std::size_t i = 0; i < judging::verdicts; ++i) {
    out.member(judging::name_of(static_cast<judging::Verdict>(i)), judgement.counts[i]);
  }
  out.end_object();
  const std::int64_t left_out = std::ssize(judgement.claims) - static_cast<std::int64_t>(shown) + judgement.left_out;
  if (left_out > 0) out.member("left_out", left_out);
  if (spilled.unread() > 0) out.member("unread", spilled.unread());
  return Reply{std::move(out.end_object()).text(), {}};
}

}  // namespace muniment::gateway::methods
