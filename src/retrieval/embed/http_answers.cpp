// Parses and checks the answers of embedding servers.
#include "retrieval/embed/http_answers.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "retrieval/embed/vectors.hpp"

namespace muniment::retrieval {
namespace {

Error wrong(std::string what) { return Error(Errc::unavailable, "the server's answer: " + std::move(what)); }

Result<json::Document> parse(std::string_view text) {
  auto document = json::parse(text);
  if (!document) return wrong(document.error().message);
  return document;
}

// `dimension` is that of the previous vectors, or 0.
Result<std::vector<float>> read_vector(const json::Value& array, std::size_t& dimension) {
  if (!array.is(json::Kind::array)) return wrong("an embedding is not an array");
  if (dimension == 0) dimension = array.size();
  if (array.size() != dimension || dimension == 0 || dimension > limits::embedding_dimension_max) {
    return wrong(fmt::format("an embedding has {} dimensions, expected {}", array.size(),
                             dimension == 0 ? "some" : std::to_string(dimension)));
  }
  std::vector<float> vector;
  vector.reserve(dimension);
  double sum = 0;
  for (const json::Value number : array) {
    const auto value = number.as_double();
    if (!value || !std::isfinite(static_cast<float>(*value))) {
      return wrong(fmt::format("{} is not a number that an embedding can hold", number.source()));
    }
    vector.push_back(static_cast<float>(*value));
    sum += *value * *value;
  }
  if (!std::isfinite(sum) || sum < 1e-12) return wrong("an embedding has no direction");
  make_unit(vector);
  return vector;
}

Result<Vectors> read_in_order(const json::Value& arrays, const Expected& expected) {
  if (!arrays.is(json::Kind::array)) return wrong("it holds no array of embeddings");
  if (arrays.size() != expected.count)
    return wrong(fmt::format("{} embeddings for {} texts", arrays.size(), expected.count));
  Vectors vectors;
  std::size_t dimension = expected.dimension;
  for (const json::Value array : arrays) {
    ASSIGN_OR_RETURN(std::vector<float> vector, read_vector(array, dimension));
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

// Each index from 0 to count - 1 must occur once.
Result<std::size_t> read_index(const json::Value& item, std::vector<bool>& seen) {
  const auto index = item["index"].as_int();
  if (!index) return wrong("an item has no index");
  if (*index < 0 || static_cast<std::size_t>(*index) >= seen.size())
    return wrong(fmt::format("index {} is out of range", *index));
  const auto place = static_cast<std::size_t>(*index);
  if (seen[place]) return wrong(fmt::format("text {} occurs twice", place));
  seen[place] = true;
  return place;
}

}  // namespace

Result<Vectors> read_openai_answer(std::string_view json, const Expected& expected) {
  ASSIGN_OR_RETURN(const json::Document document, parse(json));
  const json::Value data = document.root()["data"];
  if (!data.is(json::Kind::array)) return wrong("it holds no array of embeddings");
  if (data.size() != expected.count)
    return wrong(fmt::format("{} embeddings for {} texts", data.size(), expected.count));
  Vectors vectors(expected.count);
  std::vector<bool> seen(expected.count);
  std::size_t dimension = expected.dimension;
  for (const json::Value item : data) {
    ASSIGN_OR_RETURN(const std::size_t place, read_index(item, seen));
    ASSIGN_OR_RETURN(vectors[place], read_vector(item["embedding"], dimension));
  }
  return vectors;
}

Result<Vectors> read_ollama_answer(std::string_view json, const Expected& expected) {
  ASSIGN_OR_RETURN(const json::Document document, parse(json));
  return read_in_order(document.root()["embeddings"], expected);
}

Result<Vectors> read_tei_answer(std::string_view json, const Expected& expected) {
  ASSIGN_OR_RETURN(const json::Document document, parse(json));
  return read_in_order(document.root(), expected);
}

Result<std::vector<double>> read_rerank_answer(std::string_view json, std::size_t count) {
  ASSIGN_OR_RETURN(const json::Document document, parse(json));
  if (!document.root().is(json::Kind::array)) return wrong("it is not an array of scores");
  if (document.root().size() != count)
    return wrong(fmt::format("{} scores for {} texts", document.root().size(), count));
  std::vector<double> scores(count);
  std::vector<bool> seen(count);
  for (const json::Value item : document.root()) {
    ASSIGN_OR_RETURN(const std::size_t place, read_index(item, seen));
    const auto score = item["score"].as_double();
    if (!score || !std::isfinite(*score)) return wrong(fmt::format("text {} has no score", place));
    scores[place] = *score;
  }
  return scores;
}

}  // namespace muniment::retrieval
