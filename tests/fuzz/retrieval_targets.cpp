// Targets of retrieval: models from artifacts, answers of servers, arbitrary text, messages of child processes.
#include <algorithm>
#include <cmath>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "fuzz/target.hpp"
#include "retrieval/answer/statement.hpp"
#include "retrieval/child/embed_messages.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/messages.hpp"
#include "retrieval/child/tool_child.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/embed/encoder/wordpiece.hpp"
#include "retrieval/embed/http_answers.hpp"
#include "retrieval/embed/lsa_model.hpp"
#include "retrieval/embed/words.hpp"
#include "retrieval/plan/markup.hpp"

namespace muniment::fuzz {
namespace {

void require_unit_or_zero(const std::vector<float>& vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * static_cast<double>(x);
  require(sum == 0 || std::abs(sum - 1) < 1e-5, "a vector is neither zero nor of length 1");
}

void try_lsa_bytes(const std::string& bytes) {
  const auto model = retrieval::decode_lsa(bytes);
  if (!model) {
    require(model.error().code == Errc::corrupt, "a model is refused as something else than corrupt");
    return;
  }
  require(retrieval::encode_lsa(*model) == bytes, "a model has two ways to be written");
  auto embedder = retrieval::open_lsa(bytes);
  require(embedder.ok(), "a model that decodes does not open");
  const std::string first = model->terms.front() + " " + model->terms.back();
  const std::string_view texts[] = {first, bytes};
  const auto vectors = (*embedder)->embed(texts, retrieval::TextKind::query);
  for (const auto& vector : *vectors) require_unit_or_zero(vector);
}

// Tries the bytes as they are, and with a correct checksum: otherwise, every mutation would fail at the checksum.
void try_lsa(const std::string& bytes) {
  try_lsa_bytes(bytes);
  if (bytes.size() < 32) return;
  const std::string_view hashed = std::string_view(bytes).substr(0, bytes.size() - 32);
  try_lsa_bytes(std::string(hashed) + std::string(view(sha256(hashed))));
}

void try_tokenizer(const std::string& text) {
  const auto tokenizer = retrieval::WordPiece::read(text);
  if (!tokenizer) return require(tokenizer.error().code == Errc::corrupt, "a tokenizer is refused as something else");
  (void)tokenizer->split(text, 64);
}

void try_answers(const std::string& text) {
  for (const auto read : {retrieval::read_openai_answer, retrieval::read_ollama_answer, retrieval::read_tei_answer}) {
    for (const retrieval::Expected expected :
         {retrieval::Expected{2, 0}, retrieval::Expected{2, 3}, retrieval::Expected{0, 0}}) {
      const auto vectors = read(text, expected);
      if (!vectors) continue;
      require(vectors->size() == expected.count, "other vectors than texts");
      for (const auto& vector : *vectors) {
        require(
            vector.size() == (*vectors)[0].size() && (expected.dimension == 0 || vector.size() == expected.dimension),
            "a vector of another dimension");
        require_unit_or_zero(vector);
      }
    }
  }
  if (const auto scores = retrieval::read_rerank_answer(text, 2)) {
    for (const double score : *scores) require(std::isfinite(score), "a score is not finite");
  }
}

void try_words(const std::string& text) {
  retrieval::WordReader reader;
  for (const retrieval::WordReader::Word& word : reader.read(text)) {
    require(!word.text.empty() && word.text.size() <= retrieval::word_bytes_max, "a word is empty or too long");
    require(first_invalid_utf8(word.text) == std::string::npos, "a word is not UTF-8");
  }
  static const auto hash = retrieval::make_hash_embedder();
  const std::string_view texts[] = {text};
  require_unit_or_zero((*hash->embed(texts, retrieval::TextKind::document))[0]);
  static const auto pieces = retrieval::WordPiece::read(
      R"({"normalizer":{"type":"BertNormalizer","lowercase":true},"model":{"continuing_subword_prefix":"##","vocab":)"
      R"({"[UNK]":0,"[CLS]":1,"[SEP]":2,"b":3,"##b":4,"c":5,"##d":6,"re":7,"##ad":8,"a":9,"字":10,",":11}}})");
  constexpr std::size_t pieces_max = 64;
  const retrieval::WordPiece::Pieces split = pieces->split(text, pieces_max);
  require(split.ids.size() <= pieces_max && split.ids.size() == split.begins_word.size(), "a text has too many pieces");
  for (const std::int64_t id : split.ids) require(id >= 0 && id <= 11, "a piece that is not in the vocabulary");
}

template <typename Message>
void try_message(const std::string& bytes) {
  const auto message = retrieval::from_wire<Message>(bytes);
  if (message) require(retrieval::to_wire(*message) == bytes, "a message has two ways to be written");
}

// The input is an answer with two vectors of three numbers, valid or not.
void try_vectors(const std::string& bytes) {
  const auto answer = retrieval::from_wire<retrieval::EmbeddedTexts>(bytes);
  if (!answer) return;
  const auto vectors = retrieval::unpacked(*answer, 2, 3);
  if (!vectors) return;
  require(vectors->size() == 2, "another number of vectors than was asked for");
  for (const auto& vector : *vectors) require_unit_or_zero(vector);
}

// Tries messages that a compromised child may send to the daemon, and messages of the daemon. The first byte selects
// the message type, so that mutations keep it.
void try_messages(const std::string& bytes) {
  if (bytes.empty()) return;
  const std::string rest = bytes.substr(1);
  switch (bytes[0]) {
    case 'a': return try_message<retrieval::LaneAnswer>(rest);
    case 'q': return try_message<retrieval::LaneQuery>(rest);
    case 'b': return try_message<retrieval::EngineBatch>(rest);
    case 'h': return try_message<retrieval::SearchHello>(rest);
    case 't': return try_message<retrieval::EmbedTask>(rest);
    case 'v': return try_vectors(rest);
    case 'e': (void)retrieval::error_from_wire(rest); return;
    case 'f': {
      const auto header = retrieval::read_header(rest, 100);
      if (header)
        require(header->length <= 100 && header->kind <= static_cast<std::uint32_t>(retrieval::last_message_kind),
                "a header that cannot be");
      return;
    }
    case 'd': break;
    default: return;
  }
  const auto document = retrieval::from_wire<retrieval::DocumentText>(rest);
  if (!document || !retrieval::check_document(*document, document->text)) return;
  for (const retrieval::Chunk& chunk : document->chunks) {
    const auto start = static_cast<std::size_t>(chunk.start), end = static_cast<std::size_t>(chunk.end);
    require(start < end && end <= document->text.size(), "a chunk outside its text is believed");
  }
}

std::vector<std::string> message_seeds() {
  using namespace retrieval;
  LaneAnswer answer;
  answer.candidates = {{9, 0.25, {{"lexical", -1.5}}, 4}};
  answer.lists = {{"lsa", "text", false, 0.35, {{9, 0.5}}, 1}};
  answer.degraded = {"encoder: bge-small-en-v1.5 is not installed"};
  LaneQuery query{"text", {"a phrase"}, {"lex"}, {"vec"}, {"notes"}, Mode::vector, {{{"a"}}, {"d"}, 1, -2, 3}, 17,
                  7,      "muniment-1", true,    true};
  EngineBatch batch;
  batch.add = {{7, "notes", "text", "title", "heading", "en", {{"corpus:notes"}, -5, 3, still_valid}}};
  batch.close = {{3, 41}};
  batch.remove = {1};
  SearchHello hello{{1, 2, 3, {"x"}, {"lexical"}, {"encoder"}, 4, {"encoder: behind"}, {{"notes", "lsa/1", true}}},
                    {"Landlock: no"}};
  DocumentText document;
  document.text = "some text";
  document.chunks = {{0, 4, "h"}, {5, 9, ""}};
  const FrameHeader header{0x3143534d, 2, 1, 100};
  const EmbedTask task{TextKind::query, {"text", ""}};
  return {"t" + to_wire(task),
          "v" + to_wire(packed({{0.6F, 0, 0.8F}, {0, 0, 0}}, 3)),
          "a" + to_wire(answer),
          "q" + to_wire(query),
          "b" + to_wire(batch),
          "h" + to_wire(hello),
          "e" + to_wire(Error(Errc::corrupt, "x")),
          "d" + to_wire(document),
          "f" + std::string(reinterpret_cast<const char*>(&header), sizeof header)};
}

// Every query is accepted; its text and its filters are substrings of it.
void try_markup(const std::string& text) {
  const retrieval::Markup markup = retrieval::parse_markup(text);
  require(markup.text.size() <= text.size(), "a query grows");
  for (const auto& phrase : markup.phrases)
    require(text.find('"' + phrase + '"') != std::string::npos, "a phrase was not in the query");
  if (markup.before) require(text.find("before:") != std::string::npos, "a date comes from nowhere");
  const auto filter = retrieval::filter_of(markup);
  require(filter.all_of.size() <= limits::query_filters_max, "more filters than a query may have");
  for (const auto& group : filter.all_of) require(!group.empty(), "a filter that nothing passes");
}

// Reads each line as a fact. They are reordered and none is lost; a fact that may replace another precedes it.
void try_statements(const std::string& text) {
  std::vector<retrieval::DatedStatement> facts;
  std::vector<std::string> times;
  std::string_view rest = text;
  const retrieval::Statement question = retrieval::statement_of(text.substr(0, text.find('\n')), "en");
  while (const auto line = take_line(rest)) times.push_back(std::to_string(10 + facts.size())), facts.emplace_back();
  facts.resize(std::min<std::size_t>(facts.size(), 20));
  rest = text;
  for (std::size_t i = 0; i < facts.size(); ++i)
    facts[i] = {retrieval::statement_of(*take_line(rest), "none"), question.words, "memory", times[i]};
  std::vector<bool> placed(facts.size());
  for (const retrieval::PlacedStatement& one : retrieval::newer_first(facts, question.names)) {
    require(!placed.at(one.index), "a fact is placed twice");
    require(!one.newer || placed.at(*one.newer), "a newer fact follows the older one");
    placed[one.index] = true;
  }
  require(std::ranges::count(placed, false) == 0, "a fact is lost");
}

}  // namespace

std::vector<Target> retrieval_targets() {
  const std::string_view corpus[] = {"the pilot lands the aircraft", "a database makes a query fast",
                                     "the pilot makes a query", "fast aircraft land"};
  return {
      {"lsa_model", try_lsa, {retrieval::train_lsa(corpus, {3, 1})->bytes}},
      {"embedding_answers",
       try_answers,
       {R"({"data":[{"index":1,"embedding":[1,-0.5e3,2]},{"index":0,"embedding":[0.25,1,0]}]})",
        R"({"embeddings":[[1,2,3],[4,5,-6e-2]]})", "[[1,2,3],[4,5,6]]",
        R"([{"index":1,"score":0.5},{"index":0,"score":-3}])"}},
      {"tokenizer",
       try_tokenizer,
       {R"({"normalizer":{"type":"BertNormalizer","lowercase":true},"model":{"continuing_subword_prefix":"##",)"
        R"("vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"un":3,"##able":4}}})"}},
      {"child_messages", try_messages, message_seeds()},
      {"markup",
       try_markup,
       {"in:notes port type:markdown tag:\"two words\" run:r1 \"exact words\" before:2026-01-02 after:2026-01-01T10:00:00Z asof:2026-01-10 std::vector"}},
      {"statements",
       try_statements,
       {"Which Postgres does production use\nProduction uses Postgres 13.\nProduction was moved to Postgres 16.\n"}},
      {"words",
       try_words,
       {"readConfigFile in src/base/files/file.hpp, Crème 東京都 ab a\xff", "ﬁ Ａ e\xcc\x81 x::y_z"}},
  };
}

}  // namespace muniment::fuzz
