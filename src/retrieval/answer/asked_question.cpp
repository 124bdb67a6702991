// Reads the parameters of ask, drafts its answer, and writes the reply and the manifest.
#include "retrieval/answer/asked_question.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "retrieval/answer/extractive.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view no_evidence = "Not in the evidence.";

const Packed& packed_of(const AskedQuestion& asked, const SentenceCitation& citation) {
  return asked.building.pack.passages[citation.source];
}

const Passage& passage_of(const AskedQuestion& asked, const SentenceCitation& citation) {
  return asked.building.candidates[packed_of(asked, citation).candidate];
}

Status check_request(const json::Value& params) {
  const std::string question = params["query"].string_or("");
  if (params["mode"].string_or("ask") == "ingest")
    return Error(Errc::invalid_argument, "mode ingest: documents are stored with corpus.ingest (muniment ingest).");
  if (trimmed(question).empty()) return Error(Errc::invalid_argument, "query: the question is empty. Send its text.");
  if (question.size() <= limits::ask_question_bytes_max) return success();
  Error error(Errc::too_large, fmt::format("query is {} bytes, limit {}. Shorten the question, or store the text as a "
                                           "document and ask about it.",
                                           grouped(question.size()), grouped(limits::ask_question_bytes_max)));
  error.limit = static_cast<std::int64_t>(limits::ask_question_bytes_max);
  return error;
}

// Documents by id, or sources by URI.
Status take_files(const json::Value& params, Wishes& wishes) {
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

// Returns the number of the first citation of the newer fact that may replace the one cited; 0: none is cited.
std::size_t number_of_newer(const AskedQuestion& asked, const SentenceCitation& citation) {
  const std::string& newer = passage_of(asked, citation).newer;
  std::size_t number = 0;
  for (const AnswerSentence& sentence : asked.draft.sentences) {
    for (const SentenceCitation& other : sentence.citations) {
      ++number;
      if (!newer.empty() && passage_of(asked, other).pointer == newer) return number;
    }
  }
  return 0;
}

void write_span(json::Writer& out, const AskedQuestion& asked, const SentenceCitation& citation) {
  out.key("span")
      .begin_object()
      .member("offset", passage_of(asked, citation).start + static_cast<std::int64_t>(citation.span.start))
      .member("length", citation.span.size())
      .end_object();
}

void write_local(json::Writer& out, const AskedQuestion& asked) {
  out.key("local").begin_array();
  std::size_t number = 0;
  for (const AnswerSentence& sentence : asked.draft.sentences) {
    for (const SentenceCitation& citation : sentence.citations) {
      const Passage& passage = passage_of(asked, citation);
      out.begin_object().member("n", ++number).member("pointer", passage.pointer);
      out.member("corpus", passage.corpus).member("document", passage.document).member("title", passage.title);
      out.member("trust", passage.trust);
      if (!passage.origin.empty()) out.member("origin", passage.origin);
      if (const std::size_t newer = number_of_newer(asked, citation); newer > 0) out.member("older_than", newer);
      write_span(out, asked, citation);
      out.member("hash", to_hex(packed_of(asked, citation).hash))
          .member("sentence", piece_of(passage.text, citation.span));
      out.end_object();
    }
  }
  out.end_array();
}

}  // namespace

Result<AskedQuestion> asked_question_of(const json::Value& params, Question common, Time now) {
  RETURN_IF_ERROR(check_request(params));
  AskedQuestion asked;
  const auto id = params["id"].as_string();
  asked.id = id ? *parse_uuid(*id) : make_uuid_v7(now);
  asked.question = params["query"].string_or("");
  const auto passages = static_cast<std::size_t>(
      params["settings"]["k"].as_int().value_or(static_cast<std::int64_t>(limits::ask_passages_default)));
  common.text = asked.question;
  common.top_k = std::max(passages, limits::ask_candidates_min);
  common.after_questions = true;
  for (const json::Value tag : params["context"]["tags"]) common.wishes.tags.push_back(tag.string_or(""));
  RETURN_IF_ERROR(take_files(params, common.wishes));
  if (const auto corpus = params["corpus"].as_string()) common.corpora = {*corpus};
  asked.building.questions = {std::move(common)};
  asked.building.budget = {BudgetUnit::bytes, limits::pack_bytes_max, passages};
  return asked;
}

Status draft_answer(AskedQuestion& asked, const ModelDrafter* model, Deadline deadline) {
  PackBuilding& building = asked.building;
  building.pack = make_pack(building.candidates, building.budget);
  const std::vector<AnswerSource> sources = sources_of(building, building.pack.passages.size());
  const std::string question = words_of_question(asked.question);
  const DraftRequest request{question, sources,
                             building.pack.text + "Question: " + quote_for_prompt(asked.question) + "\n"};
  asked.prompt_hash = to_hex(sha256(request.prompt));
  asked.drafter = ExtractiveDrafter().name();
  ASSIGN_OR_RETURN(JudgedPack judged, judge_passages(building, request, deadline));
  asked.draft = std::move(judged.draft);
  asked.signals = judged.signals;
  asked.confidence = judged.confidence;

  if (model == nullptr || sources.empty()) return success();
  Result<Draft> drafted = model->draft(request, deadline);
  if (!drafted) {
    building.degraded.push_back(
        preview(fmt::format("{}: {}", model->name(), drafted.error().message), limits::preview_bytes_max));
    return success();
  }
  asked.draft = *std::move(drafted);
  asked.drafter = model->name();
  asked.model = model->model();
  return success();
}

std::string answer_text(const AskedQuestion& asked) {
  if (asked.draft.sentences.empty()) return std::string(no_evidence);
  std::string text;
  std::size_t number = 0;
  for (const AnswerSentence& sentence : asked.draft.sentences) {
    text += (text.empty() ? "" : "\n") + sentence.text;
    for (std::size_t i = 0; i < sentence.citations.size(); ++i) text += fmt::format(" [{}]", ++number);
    if (!sentence.supported) text += " [unsupported]";
    const std::size_t newer = sentence.citations.size() == 1 ? number_of_newer(asked, sentence.citations.front()) : 0;
    if (newer > 0) text += fmt::format(" [older than {}]", newer);
  }
  return text;
}

std::string reason_of(const AskedQuestion& asked) {
  if (!asked.draft.sentences.empty()) return {};
  return asked.building.reason.empty() ? "no_match" : asked.building.reason;
}

json::Writer answer_reply(const AskedQuestion& asked, std::string_view logs_ref, const OtherAnswer& other) {
  json::Writer out;
  out.begin_object().member("id", asked.id.text()).member("answer", answer_text(asked) + other.text);
  out.key("provenance").begin_object();
  write_local(out, asked);
  if (other.write) {
    other.write(out);
  } else {
    out.key("cloud").begin_array().end_array();
  }
  out.end_object().key("confidence").begin_object();
  out.member("local", asked.confidence).member("cloud", other.carried).end_object();
  out.member("logs_ref", logs_ref).member("drafter", asked.drafter);
  if (!asked.model.empty()) out.member("model", asked.model);
  const PackBuilding& building = asked.building;
  if (const std::string reason = reason_of(asked); !reason.empty()) out.member("reason", reason);
  if (asked.draft.sentences.empty() && building.candidates.empty() && building.count > 0)
    out.member("count", building.count);
  if (!building.degraded.empty()) out.member("degraded", building.degraded);
  return out;
}

void write_answer(json::Writer& out, const AskedQuestion& asked) {
  out.member("answer", answer_text(asked));
  if (const std::string reason = reason_of(asked); !reason.empty()) out.member("reason", reason);
  out.key("citations").begin_array();
  for (const AnswerSentence& sentence : asked.draft.sentences) {
    for (const SentenceCitation& citation : sentence.citations) {
      out.begin_object().member("pointer", passage_of(asked, citation).pointer);
      write_span(out, asked, citation);
      out.member("hash", to_hex(packed_of(asked, citation).hash)).end_object();
    }
  }
  out.end_array();
}

std::string answer_manifest(const AskedQuestion& asked) {
  json::Writer out;
  out.begin_object().member("kind", "answer").member("id", asked.id.text());
  out.member("confidence", asked.confidence).key("signals").begin_object();
  const auto values = values_of(asked.signals);
  for (std::size_t i = 0; i < values.size(); ++i) out.member(signal_names[i], values[i]);
  out.end_object();
  write_selection(out, asked.building);
  return std::move(out.end_object()).text();
}

}  // namespace muniment::retrieval
