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
#include "retrieval/answer/confidence.hpp"
#include "retrieval/answer/extractive.hpp"
#include "retrieval/answer/support.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::string_view no_evidence = "Not in the evidence.";

struct Asking {
  Uuid id;
  std::string question;
  retrieval::PackBuilding building;
  std::string drafter;
  std::string model;        // of the drafter; empty: none
  std::string prompt_hash;  // of what the drafter read
  retrieval::Draft draft;
  retrieval::Signals signals;
  double confidence = 0;
  CloudWish wish;
  CloudOutcome cloud;
  double cloud_confidence = 0;

  const retrieval::Packed& packed(const retrieval::SentenceCitation& citation) const {
    return building.pack.passages[citation.source];
  }
  const retrieval::Passage& passage(const retrieval::SentenceCitation& citation) const {
    return building.candidates[packed(citation).candidate];
  }
};

Status check_request(const json::Value& params) {
  const std::string question = params["query"].string_or("");
  if (params["mode"].string_or("ask") == "ingest")
    return Error(Errc::invalid_argument, "mode ingest: documents are stored with corpus.ingest (muniment ingest).");
  if (params["corpus"].string_or("") == cloud_corpus)
    return Error(Errc::invalid_argument,
                 "corpus: replies of cloud services are no evidence. Search them with evidence.retrieve.");
  if (retrieval::trimmed(question).empty())
    return Error(Errc::invalid_argument, "query: the question is empty. Send its text.");
  if (question.size() <= limits::ask_question_bytes_max) return success();
  Error error(Errc::too_large, fmt::format("query is {} bytes, limit {}. Shorten the question, or store the text as a "
                                           "document and ask about it.",
                                           grouped(question.size()), grouped(limits::ask_question_bytes_max)));
  error.limit = static_cast<std::int64_t>(limits::ask_question_bytes_max);
  return error;
}

// Documents by id, or sources by URI.
Status take_files(const json::Value& params, retrieval::Wishes& wishes) {
  const std::string corpus = params["corpus"].string_or("");
  for (const json::Value item : params["context"]["files"]) {
    const std::string file = item.string_or("");
    if (file.find("://") != std::string::npos) {
      wishes.sources.push_back(file);
    } else {
      wishes.documents.push_back(corpus.empty() || file.starts_with(corpus + "/") ? file : corpus + "/" + file);
    }
  }
  if (wishes.sources.empty() || wishes.documents.empty()) return success();
  return Error(
      Errc::invalid_argument,
      "context.files: documents (<corpus>/<id>) and sources (URIs) cannot be combined. Name files of one kind.");
}

Result<Asking> asking_of(Call& call) {
  const json::Value& params = call.params;
  RETURN_IF_ERROR(check_request(params));
  Asking asking;
  const auto id = params["id"].as_string();
  asking.id = id ? *parse_uuid(*id) : make_uuid_v7(call.services.clock.now());
  asking.question = params["query"].string_or("");
  const json::Value settings = params["settings"];
  asking.wish = {.question_id = asking.id,
                 .query = retrieval::words_of_question(asking.question),
                 .allowed = settings["cloud_allowed"].as_bool().value_or(false),
                 .always = settings["cloud_mode"].string_or("auto") == "always",
                 .by_caller = settings["cloud_by"].string_or("daemon") == "caller"};
  ASSIGN_OR_RETURN(retrieval::Question question, common_question(call));
  const auto passages = static_cast<std::size_t>(
      params["settings"]["k"].as_int().value_or(static_cast<std::int64_t>(limits::ask_passages_default)));
  question.text = asking.question;
  question.top_k = std::max(passages, limits::ask_candidates_min);
  question.after_questions = true;
  for (const json::Value tag : params["context"]["tags"]) question.wishes.tags.push_back(tag.string_or(""));
  RETURN_IF_ERROR(take_files(params, question.wishes));
  if (const auto corpus = params["corpus"].as_string()) question.corpora = {*corpus};
  asking.building.left_out_corpus = cloud_corpus;
  asking.building.questions = {std::move(question)};
  asking.building.budget = {retrieval::BudgetUnit::bytes, limits::pack_bytes_max, passages};
  return asking;
}

// Drafts with the configured model; without one, or if it fails, with sentences of the passages. The confidence depends
// on the passages alone.
Status draft(Call& call, Asking& asking) {
  retrieval::PackBuilding& building = asking.building;
  const std::vector<retrieval::AnswerSource> sources = sources_of(building, building.pack.passages.size());
  const std::string question = retrieval::words_of_question(asking.question);
  const retrieval::DraftRequest request{
      question, sources, building.pack.text + "Question: " + retrieval::quote_for_prompt(asking.question) + "\n"};
  asking.prompt_hash = to_hex(sha256(request.prompt));
  asking.drafter = retrieval::ExtractiveDrafter().name();
  ASSIGN_OR_RETURN(retrieval::JudgedPack judged, judge_passages(building, request, call.deadline));
  asking.draft = std::move(judged.draft);
  asking.signals = judged.signals;
  asking.confidence = judged.confidence;

  const retrieval::ModelDrafter* const model = call.services.retrieval.answer_model();
  if (model == nullptr || sources.empty()) return success();
  Result<retrieval::Draft> drafted = model->draft(request, call.deadline);
  if (!drafted) {
    building.degraded.push_back(
        preview(fmt::format("{}: {}", model->name(), drafted.error().message), limits::preview_bytes_max));
    return success();
  }
  asking.draft = *std::move(drafted);
  asking.drafter = model->name();
  asking.model = model->model();
  return success();
}

// Returns the number of the first citation of the newer fact that may replace the one cited; 0: none is cited.
std::size_t number_of_newer(const Asking& asking, const retrieval::SentenceCitation& citation) {
  const std::string& newer = asking.passage(citation).newer;
  std::size_t number = 0;
  for (const retrieval::AnswerSentence& sentence : asking.draft.sentences) {
    for (const retrieval::SentenceCitation& other : sentence.citations) {
      ++number;
      if (!newer.empty() && asking.passage(other).pointer == newer) return number;
    }
  }
  return 0;
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

// The sentences, each with the numbers of its citations in provenance.local.
std::string answer_text(const Asking& asking) {
  if (asking.draft.sentences.empty()) return std::string(no_evidence);
  std::string text;
  std::size_t number = 0;
  for (const retrieval::AnswerSentence& sentence : asking.draft.sentences) {
    text += (text.empty() ? "" : "\n") + sentence.text;
    for (std::size_t i = 0; i < sentence.citations.size(); ++i) text += fmt::format(" [{}]", ++number);
    if (!sentence.supported) text += " [unsupported]";
    const std::size_t newer = sentence.citations.size() == 1 ? number_of_newer(asking, sentence.citations.front()) : 0;
    if (newer > 0) text += fmt::format(" [older than {}]", newer);
  }
  return text;
}

// The reason of an empty answer: the retrieval's, or no_match if no sentence of its passages answers.
std::string reason_of(const Asking& asking) {
  if (!asking.draft.sentences.empty()) return {};
  return asking.building.reason.empty() ? "no_match" : asking.building.reason;
}

void write_span(json::Writer& out, const Asking& asking, const retrieval::SentenceCitation& citation) {
  out.key("span")
      .begin_object()
      .member("offset", asking.passage(citation).start + static_cast<std::int64_t>(citation.span.start))
      .member("length", citation.span.size())
      .end_object();
}

void write_local(json::Writer& out, const Asking& asking) {
  out.key("local").begin_array();
  std::size_t number = 0;
  for (const retrieval::AnswerSentence& sentence : asking.draft.sentences) {
    for (const retrieval::SentenceCitation& citation : sentence.citations) {
      const retrieval::Passage& passage = asking.passage(citation);
      out.begin_object().member("n", ++number).member("pointer", passage.pointer);
      out.member("corpus", passage.corpus).member("document", passage.document).member("title", passage.title);
      out.member("trust", passage.trust);
      if (!passage.origin.empty()) out.member("origin", passage.origin);
      if (const std::size_t newer = number_of_newer(asking, citation); newer > 0) out.member("older_than", newer);
      write_span(out, asking, citation);
      out.member("hash", to_hex(asking.packed(citation).hash))
          .member("sentence", piece_of(passage.text, citation.span));
      out.end_object();
    }
  }
  out.end_array();
}

// Writes the reply except for its last members, which the commit supplies.
json::Writer reply_begun(const Asking& asking, const Uuid& manifest_id) {
  json::Writer out;
  std::string answer = answer_text(asking);
  if (asking.cloud.reply) answer += "\n" + asking.cloud.reply->text + " [cloud 1]";
  out.begin_object().member("id", asking.id.text()).member("answer", answer).key("provenance");
  out.begin_object();
  write_local(out, asking);
  write_cloud(out, asking.cloud);
  out.end_object().key("confidence").begin_object();
  out.member("local", asking.confidence).member("cloud", asking.cloud.reply ? carried_part(asking) : 0.0).end_object();
  out.member("logs_ref", "manifest://" + manifest_id.text()).member("drafter", asking.drafter);
  if (!asking.model.empty()) out.member("model", asking.model);
  const retrieval::PackBuilding& building = asking.building;
  if (const std::string reason = reason_of(asking); !reason.empty()) out.member("reason", reason);
  if (asking.draft.sentences.empty() && building.candidates.empty() && building.count > 0)
    out.member("count", building.count);
  if (!building.degraded.empty()) out.member("degraded", building.degraded);
  return out;
}

std::string manifest_text(const Asking& asking) {
  json::Writer out;
  out.begin_object().member("kind", "answer").member("id", asking.id.text());
  out.member("confidence", asking.confidence).key("signals").begin_object();
  const auto values = retrieval::values_of(asking.signals);
  for (std::size_t i = 0; i < values.size(); ++i) out.member(retrieval::signal_names[i], values[i]);
  out.end_object();
  write_selection(out, asking.building);
  return std::move(out.end_object()).text();
}

std::string answered_body(const Call& call, const Asking& asking, const Uuid& manifest_id, std::int64_t duration_us) {
  json::Writer out;
  out.begin_object().member("id", asking.id.text()).member("manifest_id", manifest_id.text());
  if (const auto branch = call.params["branch"].as_string()) out.member("branch", *branch);
  write_questions(out, asking.building, limits::ask_question_bytes_max);
  out.member("drafter", asking.drafter).member("prompt_hash", asking.prompt_hash);
  if (!asking.model.empty()) out.member("model", asking.model);
  if (!asking.building.degraded.empty()) out.member("degraded", asking.building.degraded);
  out.member("answer", answer_text(asking));
  if (const std::string reason = reason_of(asking); !reason.empty()) out.member("reason", reason);
  out.key("citations").begin_array();
  for (const retrieval::AnswerSentence& sentence : asking.draft.sentences) {
    for (const retrieval::SentenceCitation& citation : sentence.citations) {
      out.begin_object().member("pointer", asking.passage(citation).pointer);
      write_span(out, asking, citation);
      out.member("hash", to_hex(asking.packed(citation).hash)).end_object();
    }
  }
  out.end_array().member("passages", asking.building.pack.passages.size());
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
  building.pack = retrieval::make_pack(building.candidates, building.budget);
  RETURN_IF_ERROR(draft(call, asking));
  if (!consulted) {
    asking.wish.confidence = asking.confidence;
    ASSIGN_OR_RETURN(CloudOutcome cloud, consult_cloud(call, run, asking.wish));
    consulted = std::make_shared<const Consulted>(Consulted{asking.id, std::move(cloud)});
  }
  asking.cloud = consulted->outcome;
  if (!asking.cloud.degraded.empty()) building.degraded.push_back(asking.cloud.degraded);

  const store::ManifestRow row =
      make_manifest(make_uuid_v7(call.services.clock.now()), run->run_id, manifest_text(asking));
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
