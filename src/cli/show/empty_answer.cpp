#include "cli/show/empty_answer.hpp"

#include <sstream>

#include <fmt/format.h>

#include "base/text.hpp"

namespace muniment::cli {

namespace {

std::string nothing_indexed(const std::string& question, const std::string& corpus) {
  bool runs = corpus == "run";
  std::istringstream words(question);
  for (std::string word; words >> word;) runs = runs || word == "in:run" || word.starts_with("run:");
  if (runs)
    return "no match: no event of these runs is indexed. A run is indexed from its start (--indexed yes, or index_runs = true). "
           "To search an existing run: muniment run grep RUN PATTERN";
  return "no match: nothing is indexed" + (corpus.empty() ? "" : " in corpus " + corpus) +
         ". Add documents: muniment ingest FOLDER --corpus " + (corpus.empty() ? "NAME" : corpus);
}

}  // namespace

Result<std::string> empty_answer(const json::Value& result, const std::string& question, const std::string& corpus) {
  const std::string reason = result["reason"].string_or("");
  const std::string count = grouped(static_cast<std::uint64_t>(result["count"].as_int().value_or(0)));
  if (reason == "unknown_corpus")
    return Error(Errc::not_found,
                 "no such corpus" + (corpus.empty() ? "" : ": " + corpus) + ". See: muniment corpus list");
  if (reason == "unknown_run")
    return Error(Errc::not_found, "no such run (run: in the question). See: muniment run list");
  if (reason == "nothing_indexed") return nothing_indexed(question, corpus);
  if (reason == "filtered_out") return std::string("no match passes the filters");
  if (reason == "all_quarantined")
    return "all matches are quarantined" + (result["count"] ? " (" + count + ")" : "") +
           ". To see them: muniment query --trust quarantined, or muniment memory review";
  if (reason == "low_confidence")
    return "the passages found hold the answer with a probability of " +
           fmt::format("{:.2f}", result["confidence"].as_double().value_or(0));
  if (reason == "expired") return "all matches have expired (" + count + ")";
  if (reason == "index_behind") return "the index is behind by " + count + " events; retry";
  if (reason == "budget_too_small") return std::string("no passage fits into the budget. Increase --budget");
  return reason.empty() || reason == "no_match" ? "no match" : reason;
}

}  // namespace muniment::cli
