// ask: answers a question with sentences of the evidence. It builds a context pack, drafts the answer from its passages
// (retrieval/answer/), and records both in one commit: the manifest has the passages and the signals of the confidence,
// question.answered the answer with its citations. The reply is returned after the commit. If the request permits it,
// and the confidence is low, a cloud service is asked before (cloud.hpp).
#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/cloud.hpp"
#include "gateway/methods/knowledge/packs.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/log/manifest_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/index_wait.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"
#include "retrieval/answer/asked_question.hpp"
#include "retrieval/answer/support.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

struct Asking : retrieval::AskedQuestion {
  CloudWish wish;
  CloudOutcome cloud;
};

Result<Asking> asking_of(Call& call) {
  if (call.params["corpus"].string_or("") == cloud_corpus)
    return Error(Errc::invalid_argument,
                 "corpus: replies of cloud services are no evidence. Search them with evidence.retrieve.");
  ASSIGN_OR_RETURN(retrieval::Question question, common_question(call));
  ASSIGN_OR_RETURN(retrieval::AskedQuestion asked,
                   retrieval::asked_question_of(call.params, std::move(question), call.services.clock.now()));
  Asking asking{std::move(asked), {}, {}};
  asking.building.left_out_corpus = cloud_corpus;
  const json::Value settings = call.params["settings"];
  asking.wish = {.question_id = asking.id,
                 .query = retrieval::words_of_question(asking.question),
                 .allowed = settings["cloud_allowed"].as_bool().value_or(false),
                 .always = settings["cloud_mode"].string_or("auto") == "always",
                 .by_caller = settings["cloud_by"].string_or("daemon") == "caller"};
  return asking;
}

// Returns the part of the reply's sentences that a passage of the pack carries. The comparison takes time, so that a
// service does not decide how many are compared: those after the first limits::model_sentences_max count as not
// carried.
double carried_part(const Asking& asking) {
  const auto sentences = retrieval::cited_sentences(asking.cloud.reply->text, 0);
  const auto sources = sources_of(asking.building, asking.building.pack.passages.size());
  const auto compared = std::span(sentences).first(std::min(sentences.size(), limits::model_sentences_max));
  const auto carried = std::ranges::count_if(compared, [&](const auto& sentence) {
    return std::ranges::any_of(sources,
                               [&](const auto& source) { return carried_by(sentence.first, source).has_value(); });
  });
  return sentences.empty() ? 0 : static_cast<double>(carried) / static_cast<double>(sentences.size());
}

json::Writer reply_begun(const Asking& asking, const Uuid& manifest_id) {
  retrieval::OtherAnswer other;
  if (asking.cloud.reply) {
    other.text = "\n" + asking.cloud.reply->text + " [cloud 1]";
    other.carried = carried_part(asking);
  }
  other.write = [&asking](json::Writer& out) { write_cloud(out, asking.cloud); };
  return answer_reply(asking, "manifest://" + manifest_id.text(), other);
}

std::string answered_body(const Call& call, const Asking& asking, const Uuid& manifest_id, std::int64_t duration_us) {
  json::Writer out;
  out.begin_object().member("id", asking.id.text()).member("manifest_id", manifest_id.text());
  if (const auto branch = call.params["branch"].as_string()) out.member("branch", *branch);
  write_questions(out, asking.building, limits::ask_question_bytes_max);
  out.member("drafter", asking.drafter).member("prompt_hash", asking.prompt_hash);
  if (!asking.model.empty()) out.member("model", asking.model);
  if (!asking.building.degraded.empty()) out.member("degraded", asking.building.degraded);
  write_answer(out, asking);
  out.member("passages", asking.building.pack.passages.size());
  if (!asking.cloud.call_id.empty()) out.member("cloud_call_id", asking.cloud.call_id);
  if (!asking.cloud.reason.empty()) out.member("cloud_reason", asking.cloud.reason);
  out.member("confidence", asking.confidence).member("duration_us", duration_us);
  return std::move(out.end_object()).text();
}

// The consultation of a cloud service, which a retry of the append does not repeat.
struct Consulted {
  Uuid question_id;
  CloudOutcome outcome;
};

Result<Answer> answer_question(Call& call, std::shared_ptr<const Consulted> consulted) {
  const Monotonic began = call.services.clock.monotonic();
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, run_of_pack(call));
  ASSIGN_OR_RETURN(Asking asking, asking_of(call));
  if (consulted) asking.id = consulted->question_id;
  RETURN_IF_ERROR(wait_for_min_seq(call));
  RETURN_IF_ERROR(begin_referring(call));
  retrieval::PackBuilding& building = asking.building;
  RETURN_IF_ERROR(find_candidates(call, building));
  evidence::Outcome outcome;
  if (!building.unverified.empty()) {
    ASSIGN_OR_RETURN(outcome,
                     resolve_pointers(call, building.unverified, {.run = run, .depth = evidence::Depth::whole}));
    if (!outcome.halts.empty()) return stop(outcome, run);
  }
  RETURN_IF_ERROR(draft_answer(asking, call.services.retrieval.answer_model(), call.deadline));
  if (!consulted) {
    asking.wish.confidence = asking.confidence;
    ASSIGN_OR_RETURN(CloudOutcome cloud, consult_cloud(call, run, asking.wish));
    consulted = std::make_shared<const Consulted>(Consulted{asking.id, std::move(cloud)});
  }
  asking.cloud = consulted->outcome;
  if (!asking.cloud.degraded.empty()) building.degraded.push_back(asking.cloud.degraded);

  const store::ManifestRow row =
      make_manifest(make_uuid_v7(call.services.clock.now()), run->run_id, answer_manifest(asking));
  const std::int64_t duration_us = call.services.clock.micros_since(began);
  PendingAppend append =
      record_pack(call, run, row, "question.answered", answered_body(call, asking, row.manifest_id, duration_us));
  if (const std::string& refused = asking.cloud.refused_body; !refused.empty()) {
    append.request.events.insert(
        append.request.events.begin() + 1,  // the answer remains the last event
        {run, make_event(call, *run, "cloud.refused", refused, call.params["step_id"].string_or("")), false});
  }
  log_outcome(outcome, append.request);
  append.even_if_answered = !asking.cloud.call_id.empty();
  append.again = [consulted](Call& again) { return answer_question(again, consulted); };
  append.finish = [reply = reply_begun(asking, row.manifest_id), named = run->run_id != log_run_id](
                      Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    json::Writer out = reply;
    out.member("seq", receipts.back().seq);
    if (named) out.member("run_seq", receipts.back().run_seq);
    return Reply{std::move(out.end_object()).text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace

Result<Answer> ask(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  return answer_question(call, nullptr);
}

}  // namespace muniment::gateway::methods
