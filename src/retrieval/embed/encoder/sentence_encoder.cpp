// Splits texts into pieces, has the model compute them, and scales its vectors to unit length.
#include "retrieval/embed/encoder/sentence_encoder.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "retrieval/embed/vectors.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::size_t part_pieces_max = 254;  // with [CLS] and [SEP], 256 tokens
constexpr std::size_t threads_max = 2;        // for documents; they have a low priority

// The models were trained on English. Their vocabulary has single letters of other scripts, whose vectors say nothing.
bool is_readable(const WordPiece::Pieces& pieces) {
  return pieces.words > 0 && 2 * pieces.unknown < pieces.words && 2 * pieces.latin >= pieces.letters;
}

// Runs `work(0)` … `work(count - 1)`, each once, on several threads, with the priority of the caller.
template <typename Work>
void share_out(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const std::size_t threads = std::min<std::size_t>({threads_max, std::thread::hardware_concurrency(), count});
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, take));
  take();
  for (auto& other : others) other.get();
}

}  // namespace

SentenceEncoder::SentenceEncoder(const ModelSpec& spec, WordPiece pieces, std::unique_ptr<TokenModel> model,
                                 std::shared_ptr<const void> keeps)
    : spec_(spec), pieces_(std::move(pieces)), keeps_(std::move(keeps)), model_(std::move(model)) {
  identity_ = {"encoder", version_of(spec_), spec_.dimension, std::string(spec_.model_hash)};
}

Result<std::vector<float>> SentenceEncoder::vector_of(std::span<const std::int64_t> ids) const {
  std::vector<std::int64_t> framed = {pieces_.begin_id()};
  framed.insert(framed.end(), ids.begin(), ids.end());
  framed.push_back(pieces_.end_id());
  ASSIGN_OR_RETURN(std::vector<float> vector, model_->run(framed));
  vector.resize(spec_.dimension);  // that of [CLS]
  if (!std::all_of(vector.begin(), vector.end(), [](float x) { return std::isfinite(x); }))
    return Error(Errc::invalid_argument, "the model returned a number that is not finite");
  make_unit(vector);
  return vector;
}

// Cuts the pieces into parts of about equal size, before a word where that is near.
std::vector<std::vector<std::int64_t>> SentenceEncoder::parts_of(std::string_view document) const {
  const WordPiece::Pieces pieces = pieces_.split(document, part_pieces_max * limits::encoder_parts_max);
  std::vector<std::vector<std::int64_t>> parts;
  if (!is_readable(pieces)) return parts;
  const std::size_t size = pieces.ids.size();
  std::size_t begin = 0;
  for (std::size_t left = (size + part_pieces_max - 1) / part_pieces_max; left > 0; --left) {
    std::size_t end = begin + (size - begin + left - 1) / left;
    // A cut that moves back leaves more to the later parts, which may be full.
    const std::size_t earliest = std::max(begin + 1, size - std::min(size, (left - 1) * part_pieces_max));
    std::size_t cut = end;
    while (left > 1 && cut > earliest && !pieces.begins_word[cut]) --cut;
    if (left > 1 && pieces.begins_word[cut]) end = cut;
    parts.emplace_back(pieces.ids.begin() + static_cast<std::ptrdiff_t>(begin),
                       pieces.ids.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return parts;
}

Result<std::vector<Vectors>> SentenceEncoder::embed_parts(std::span<const std::string_view> documents) {
  struct Part {
    std::size_t document = 0, place = 0;
    std::vector<std::int64_t> ids;
  };
  std::vector<Part> parts;
  std::vector<Vectors> vectors(documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    for (auto& ids : parts_of(documents[i])) {
      parts.push_back({i, vectors[i].size(), std::move(ids)});
      vectors[i].emplace_back(spec_.dimension, 0.0F);
    }
    if (vectors[i].empty()) vectors[i].emplace_back(spec_.dimension, 0.0F);
  }
  std::vector<Status> failures(parts.size(), success());
  share_out(parts.size(), [&](std::size_t i) {
    auto vector = vector_of(parts[i].ids);
    if (vector)
      vectors[parts[i].document][parts[i].place] = *std::move(vector);
    else
      failures[i] = std::move(vector).error();
  });
  for (const Status& failed : failures) {
    if (failed) continue;
    if (failed.error().code != Errc::invalid_argument) return failed.error();
    log_warning("a passage has no vector", {{"model", spec_.name}, {"error", failed.error().message}});
  }
  return vectors;
}

Result<Vectors> SentenceEncoder::embed(std::span<const std::string_view> texts, TextKind kind) {
  Vectors vectors;
  if (kind == TextKind::document) {
    ASSIGN_OR_RETURN(const auto of_parts, embed_parts(texts));
    for (const Vectors& parts : of_parts) {
      std::vector<float>& sum = vectors.emplace_back(spec_.dimension, 0.0F);
      for (const std::vector<float>& part : parts) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      make_unit(sum);
    }
    return vectors;
  }
  for (const std::string_view text : texts) {
    vectors.emplace_back(spec_.dimension, 0.0F);
    if (!is_readable(pieces_.split(text, part_pieces_max))) continue;
    const auto pieces = pieces_.split(std::string(spec_.query_prefix).append(text), part_pieces_max);
    auto vector = vector_of(pieces.ids);
    if (!vector) return Error(Errc::unavailable, vector.error().message);
    vectors.back() = *std::move(vector);
  }
  return vectors;
}

Result<std::unique_ptr<Embedder>> open_encoder(const std::string& models_folder, const ModelSpec& spec) {
  const auto missing = [](const Error& error, const std::string& what) {
    return error.code == Errc::not_found ? Error(Errc::not_found, what + " is not installed") : error;
  };
  auto files = read_model(models_folder, spec);
  if (!files) return missing(files.error(), std::string(spec.name));
  auto runtime = OnnxRuntime::load(runtime_library(models_folder));
  if (!runtime) return missing(runtime.error(), "ONNX Runtime " + std::string(onnx_runtime_version));
  ASSIGN_OR_RETURN(auto model, (*runtime)->open(files->model, spec.dimension));
  ASSIGN_OR_RETURN(WordPiece pieces, WordPiece::read(files->tokenizer));
  return std::unique_ptr<Embedder>(
      std::make_unique<SentenceEncoder>(spec, std::move(pieces), std::move(model), *std::move(runtime)));
}

}  // namespace muniment::retrieval
