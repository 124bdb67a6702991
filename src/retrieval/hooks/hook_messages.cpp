// Writes requests to hooks, and checks their answers.
#include "retrieval/hooks/hook_messages.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::retrieval {
namespace {

Error wrong(std::string what) { return Error(Errc::unavailable, "its answer: " + std::move(what)); }

// Returns the root, which must be an object.
Result<json::Value> object_of(const Result<json::Document>& document) {
  if (!document) return wrong(document.error().message);
  if (!document->root().is(json::Kind::object)) return wrong("it is not a JSON object");
  return document->root();
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
  return text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

Result<std::vector<std::string>> texts_of(const json::Value& root, std::string_view name) {
  std::vector<std::string> texts;
  const json::Value list = root[name];
  if (!list || list.is(json::Kind::null)) return texts;
  if (!list.is(json::Kind::array)) return wrong(fmt::format("{} is not an array", name));
  for (const json::Value item : list) {
    auto text = item.as_string();
    if (!text) return wrong(fmt::format("{} contains an item that is not a string", name));
    texts.push_back(*std::move(text));
  }
  return texts;
}

Result<std::vector<std::string>> warnings_of(const json::Value& root) {
  ASSIGN_OR_RETURN(auto warnings, texts_of(root, "warnings"));
  if (warnings.size() > limits::hook_warnings_max) warnings.resize(limits::hook_warnings_max);
  for (std::string& warning : warnings) warning = preview(warning, limits::hook_warning_bytes_max);
  return warnings;
}

Result<std::vector<std::string>> expansions_of(const json::Value& root, std::string_view name,
                                               const ExpansionRequest& request) {
  ASSIGN_OR_RETURN(const auto texts, texts_of(root, name));
  if (texts.size() > request.max_expansions)
    return wrong(fmt::format("{} has {} texts, limit {}", name, texts.size(), request.max_expansions));
  std::vector<std::string> kept;
  for (const std::string& text : texts) {
    if (text.size() > limits::hook_expansion_bytes_max) {
      return wrong(
          fmt::format("a text of {} has {} bytes, limit {}", name, text.size(), limits::hook_expansion_bytes_max));
    }
    std::string inner(trimmed(text));
    if (inner.empty() || inner == trimmed(request.query) || std::ranges::find(kept, inner) != kept.end()) continue;
    kept.push_back(std::move(inner));
  }
  return kept;
}

using Places = std::unordered_map<std::string_view, std::size_t>;

Result<std::size_t> place_of(const json::Value& member, const Places& places) {
  const std::string key = member.key();
  const auto found = places.find(key);
  if (found == places.end()) return wrong(fmt::format("there is no candidate \"{}\"", preview(key, 60)));
  return found->second;
}

Status read_scores(const json::Value& scores, const Places& places, RerankAnswer& answer) {
  if (!scores.is(json::Kind::object)) return wrong("scores is not an object");
  for (const json::Value member : scores) {
    ASSIGN_OR_RETURN(const std::size_t place, place_of(member, places));
    const auto score = member.as_double();
    if (!score || !std::isfinite(*score))
      return wrong(fmt::format("the score of \"{}\" is not a number", member.key()));
    answer.scores[place] = *score;
  }
  if (scores.size() == 0) return wrong("it scores no candidate");
  return success();
}

Status read_snippets(const json::Value& snippets, const Places& places, RerankAnswer& answer) {
  if (!snippets || snippets.is(json::Kind::null)) return success();
  if (!snippets.is(json::Kind::object)) return wrong("snippets is not an object");
  for (const json::Value member : snippets) {
    ASSIGN_OR_RETURN(const std::size_t place, place_of(member, places));
    auto text = member.as_string();
    if (!text) return wrong(fmt::format("the snippet of \"{}\" is not a string", member.key()));
    answer.snippets.emplace(place, *std::move(text));
  }
  return success();
}

}  // namespace

std::string expansion_request_json(const ExpansionRequest& request) {
  json::Writer out;
  out.begin_object().member("query", request.query).member("max_expansions", request.max_expansions).key("scope");
  request.scope.empty() ? out.null() : out.string(request.scope);
  out.key("temporal");
  if (request.after || request.before || request.as_of) {
    out.begin_object();
    if (request.after) out.member("after", *request.after);
    if (request.before) out.member("before", *request.before);
    if (request.as_of) out.member("asof", *request.as_of);
    out.end_object();
  } else {
    out.null();
  }
  return std::move(out.end_object()).text();
}

std::string rerank_request_json(std::string_view query, std::span<const RerankCandidate> candidates) {
  json::Writer out;
  out.begin_object().member("query", query).key("candidates").begin_array();
  for (const RerankCandidate& candidate : candidates) {
    out.begin_object()
        .member("key", candidate.key)
        .member("uri", candidate.uri)
        .member("snippet", candidate.snippet)
        .end_object();
  }
  return std::move(out.end_array().end_object()).text();
}

Result<ExpansionAnswer> expansion_answer_of(std::string_view json, const ExpansionRequest& request) {
  const auto document = json::parse(json);
  ASSIGN_OR_RETURN(const json::Value root, object_of(document));
  ExpansionAnswer answer;
  ASSIGN_OR_RETURN(answer.lexical, expansions_of(root, "lex", request));
  ASSIGN_OR_RETURN(answer.vector, expansions_of(root, "vec", request));
  ASSIGN_OR_RETURN(answer.warnings, warnings_of(root));
  return answer;
}

Result<RerankAnswer> rerank_answer_of(std::string_view json, std::span<const RerankCandidate> candidates) {
  const auto document = json::parse(json);
  ASSIGN_OR_RETURN(const json::Value root, object_of(document));
  Places places;
  for (std::size_t i = 0; i < candidates.size(); ++i) places.emplace(candidates[i].key, i);
  RerankAnswer answer;
  answer.scores.resize(candidates.size());
  RETURN_IF_ERROR(read_scores(root["scores"], places, answer));
  RETURN_IF_ERROR(read_snippets(root["snippets"], places, answer));
  ASSIGN_OR_RETURN(answer.warnings, warnings_of(root));
  into_unit_range(answer.scores);
  return answer;
}

void into_unit_range(std::vector<std::optional<double>>& scores) {
  const bool inside =
      std::ranges::all_of(scores, [](const auto& score) { return !score || (*score >= 0 && *score <= 1); });
  if (inside) return;
  for (auto& score : scores) {
    if (score) score = 1 / (1 + std::exp(-*score));
  }
}

}  // namespace muniment::retrieval
