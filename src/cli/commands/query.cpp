// Implements the command query, which prints the cards that match a question; with --full also their verified passages.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/show/empty_answer.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"
#include "client/output.hpp"

namespace muniment::cli {
namespace {

struct QueryOptions {
  std::vector<std::string> words;
  std::string corpus;
  std::string asof;
  std::string mode;
  std::string group;
  std::string expand;
  std::string rerank;
  std::string profile;
  std::string cursor;
  std::string run;
  std::vector<std::string> trust;
  std::size_t count = 5;
  bool explain = false;
  bool full = false;
  bool files = false;
};

void declare_query(CLI::App& command, QueryOptions& options) {
  command.add_option("TEXT", options.words, "Query with in: type: tag: run: before: after: asof:; - reads stdin")
      ->required();
  command.add_option("--corpus", options.corpus, "Search only this corpus");
  add_asof_option(command, options.asof, "State as of this event or time");
  command.add_option("-k,--count", options.count, "Maximum number of cards")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--mode", options.mode, "Search mode: hybrid, lexical or vector")
      ->check(CLI::IsMember({"hybrid", "lexical", "vector"}));
  command.add_option("--group", options.group, "Group cards by chunk, or by document to get the best of each")
      ->check(CLI::IsMember({"chunk", "document"}));
  command.add_option("--trust", options.trust, "Only this trust level (default: all but quarantined)")
      ->check(CLI::IsMember({"trusted", "untrusted", "quarantined"}))
      ->allow_extra_args(false);
  command.add_option("--expand", options.expand, "Query expansion: none, heuristic or hook")
      ->check(CLI::IsMember({"none", "heuristic", "hook"}));
  command.add_option("--rerank", options.rerank, "Reranker: none, local, hook or http")
      ->check(CLI::IsMember({"none", "local", "hook", "http"}));
  command.add_option("--profile", options.profile, "Name of a ranking profile");
  command.add_option("--cursor", options.cursor, "Cursor printed by the previous page");
  command.add_flag("--explain", options.explain, "Show how each card was found");
  auto* const full = command.add_flag("--full", options.full, "Resolve the cards and print their passages");
  command.add_flag("--files", options.files, "Print only the documents of the cards, one a line")->excludes(full);
  command.add_option("--run", options.run, "Run that records the query (default: MUNIMENT_RUN)");
}

// Returns the run that records the query, if any.
Status add_run(json::Writer& params, Session& session, const std::string& run) {
  ASSIGN_OR_RETURN(const std::string run_id, session.run_id_if_any(run));
  if (!run_id.empty()) params.member("run_id", run_id);
  return success();
}

Result<std::string> query_params(Session& session, const QueryOptions& options) {
  json::Writer out;
  out.begin_object().key("queries").begin_array().begin_object().member("query", joined(options.words, " "));
  if (!options.corpus.empty()) out.member("corpus", options.corpus);
  if (!options.cursor.empty()) out.member("cursor", options.cursor);
  out.end_object().end_array().member("topK", options.count);
  if (!options.mode.empty()) out.member("mode", options.mode);
  if (!options.group.empty()) out.member("group", options.group);
  if (!options.expand.empty()) out.member("expand", options.expand);
  if (!options.rerank.empty()) out.member("rerank", options.rerank);
  if (!options.profile.empty()) out.member("profile", options.profile);
  if (!options.trust.empty()) out.key("filters").begin_object().member("trust", options.trust).end_object();
  add_asof(out, options.asof);
  RETURN_IF_ERROR(add_run(out, session, options.run));
  if (options.explain) out.member("explain", true);
  return std::move(out.end_object()).text();
}

constexpr std::size_t summary_lines_max = 3;

// Wraps text to at most three lines of `width` columns, each after `indent`.
void print_wrapped(const Output& out, const std::string& text, const std::string& indent, std::size_t width) {
  std::string line;
  std::size_t columns = 0, printed = 0;
  const auto flush = [&] {
    if (columns > 0) out.line(indent + line);
    ++printed;
    line.clear();
    columns = 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const std::size_t wide = columns_of(word);
    const bool last = printed + 1 == summary_lines_max;
    if (columns > 0 && columns + 1 + wide + (last ? 2 : 0) > width) {
      if (last) line += " …";
      flush();
      if (last) return;
    }
    if (columns > 0) line += ' ';
    line += word;
    columns += wide + (columns > 0 ? 1 : 0);
    at = end + 1;
  }
  flush();
}

void print_passage(const Output& out, const json::Value& found) {
  if (found["text"]) {
    std::string text = found["text"].string_or("");
    text.push_back('\n');
    std::string_view rest = text;
    while (const auto line = take_line(rest)) {
      if (!rest.empty() || !line->empty())
        out.line("    " + out.tone(Tone::dim, "│ ") +
                 out.safe(line->ends_with('\n') ? line->substr(0, line->size() - 1) : *line));
    }
  }
  if (found["ok"].as_bool().value_or(false)) {
    out.line("    " + out.tone(Tone::green, "verified") + "  sha256 " +
             found["expected_hash"].string_or("").substr(0, 16));
  } else {
    out.line("    " + out.tone(Tone::red, found["reason"].string_or("?")) + "  " +
             out.one_line(found["detail"].string_or("")));
  }
}

// Returns the path of headings without a leading title.
std::string below(std::string_view title, std::string_view heading) {
  constexpr std::string_view separator = " › ";
  if (heading == title) return {};
  const bool begins = heading.starts_with(title) && heading.substr(title.size()).starts_with(separator);
  return std::string(begins ? heading.substr(title.size() + separator.size()) : heading);
}

void print_card(const Output& out, const json::Value& card, std::size_t rank, const QueryOptions& options) {
  const std::size_t width = std::min<std::size_t>(out.width() - 4, 120);
  std::string head = fmt::format("{:>2}  {}", rank, out.tone(Tone::bold, out.one_line(card["title"].string_or(""))));
  for (const json::Value anchor : card["anchors"]) {
    if (const std::string place = below(card["title"].string_or(""), anchor.string_or("")); !place.empty()) {
      head += out.tone(Tone::dim, " › " + out.one_line(place));
    }
  }
  head += out.tone(Tone::dim, fmt::format("  {:.2f}", card["confidence"].as_double().value_or(0)));
  out.line(head);
  if (!options.full) print_wrapped(out, out.one_line(card["summary"].string_or("")), "    ", width);
  std::string tail = "    " + out.tone(Tone::cyan, out.one_line(card["id"].string_or("")));
  const std::string trust = card["trust"].string_or("");
  if (trust != "untrusted") tail += "  " + out.tone(trust == "trusted" ? Tone::green : Tone::loud, out.one_line(trust));
  if (card["origin"]) tail += "  " + out.tone(Tone::dim, out.one_line(card["origin"].string_or("")));
  if (!card["current"].as_bool().value_or(true)) tail += "  " + out.tone(Tone::yellow, "no longer current");
  out.line(tail);
  if (!options.explain) return;
  std::string scores;
  for (const json::Value score : card["scores"])
    scores += fmt::format("  {} {:.4g}", out.one_line(score.key()), score.as_double().value_or(0));
  out.line(out.tone(Tone::dim, fmt::format("    score {:.4g}{}", card["score"].as_double().value_or(0), scores)));
}

// Returns the pointer to the text of a card. The card of an event with one passage points to the event itself, which
// would resolve to JSON.
std::string passage_of(const json::Value& card) {
  std::string id = card["id"].string_or("");
  const std::size_t event = id.find("#e"), version = id.find("?v=");
  if (card["origin"] && event != std::string::npos && version != std::string::npos && id.find('.', event) > version)
    id.insert(version, ".0");
  return id;
}

// Returns the passages of the cards, by pointer. Documents are resolved as of the query, so that an older revision is
// not an error.
Result<Message> resolve_cards(Session& session, const json::Value& result, const std::string& run) {
  json::Writer params;
  params.begin_object().key("pointers").begin_array();
  for (const json::Value card : result["cards"]) params.string(passage_of(card));
  params.end_array();
  if (const auto asof = result["asof"].as_int()) params.member("asof", *asof);
  RETURN_IF_ERROR(add_run(params, session, run));
  auto answer = session.call("pointer.resolve", params.end_object().text());
  if (answer) return answer;
  Error error = answer.error();  // names the option instead of the request parameter
  constexpr std::string_view parameter = "with run_id";
  if (const std::size_t at = error.message.find(parameter); at != std::string::npos)
    error.message.replace(at, parameter.size(), "with --run");
  return error;
}

// Prints the filters that the question was read as, and the words that look like a filter but have no valid date.
void print_filters(const Output& out, const json::Value& result, const QueryOptions& options) {
  std::string filters;
  for (const json::Value filter : result["filters"]) filters += "  " + out.one_line(filter.string_or(""));
  if (!filters.empty()) out.line(out.tone(Tone::dim, "filters " + filters));
  std::istringstream words(joined(options.words, " "));
  for (std::string word; words >> word;) {
    const bool dated = word.starts_with("before:") || word.starts_with("after:") || word.starts_with("asof:");
    if (dated && filters.find(word) == std::string::npos)
      out.line(out.tone(Tone::yellow, "note      ") + out.one_line(word) +
               " was searched as words. As a filter it needs a date: before:2026-01-31");
  }
}

void print_foot(const Output& out, const json::Value& result, const QueryOptions& options) {
  print_filters(out, result, options);
  for (const json::Value part : result["degraded"])
    out.line(out.tone(Tone::yellow, "degraded  ") + out.one_line(part.string_or("")));
  if (const json::Value cursor = result["cursor"])
    out.line(out.tone(Tone::dim, "more: --cursor " + out.one_line(cursor.string_or("")) +
                                     (options.asof.empty() ? "" : " --asof " + options.asof)));
  if (!options.explain) return;
  std::string lanes;
  for (const json::Value lane : result["lanes"])
    lanes += (lanes.empty() ? "" : ", ") + out.one_line(lane.string_or(""));
  out.line(out.tone(
      Tone::dim,
      fmt::format("profile {}  plan {}  index at {}", out.one_line(result["profile"].string_or("")),
                  result["plan_hash"].string_or("").substr(0, 16), result["watermark"].as_int().value_or(-1))));
  out.line(out.tone(Tone::dim, "lanes   " + lanes));
  for (const json::Value list : result["explain"]["lists"]) {
    out.line(
        out.tone(Tone::dim,
                 fmt::format("list    {}  weight {:.2f}  {} hits  {} µs  {}", out.one_line(list["lane"].string_or("")),
                             list["weight"].as_double().value_or(0), list["hits"].size(),
                             list["duration_us"].as_int().value_or(0), out.one_line(list["query"].string_or("")))));
  }
}

// Prints each document once, best first: its URI in a capsule, otherwise its corpus and id.
void print_files(const Output& out, const json::Value& result) {
  std::set<std::string> printed;
  for (const json::Value card : result["cards"]) {
    const std::string name = card["uri"].string_or(card["corpus"].string_or("") + "/" + card["document"].string_or(""));
    if (printed.insert(name).second) out.line(out.one_line(name));
  }
}

Status query(Session& session, const QueryOptions& given) {
  QueryOptions options = given;
  ASSIGN_OR_RETURN(std::string question, question_text(joined(given.words, " ")));
  options.words = {std::move(question)};
  ASSIGN_OR_RETURN(const std::string params, query_params(session, options));
  ASSIGN_OR_RETURN(const Message answer, session.call("evidence.retrieve", params));
  const json::Value result = *answer.result()["results"].begin();
  if (result["reason"].string_or("").starts_with("unknown_")) session.exit_code = exit_refused;
  if (!options.full && session.printed_json(answer)) return success();
  const Output& out = session.out();
  std::optional<Message> resolved;
  std::vector<json::Value> passages;
  if (options.full && result["cards"].size() > 0) {
    ASSIGN_OR_RETURN(resolved, resolve_cards(session, result, options.run));
    for (const json::Value found : resolved->result()["results"]) passages.push_back(found);
  }
  for (const json::Value& found : passages) {
    if (!found["ok"].as_bool().value_or(false)) session.exit_code = exit_refused;
  }
  if (session.options.json) {
    out.json_line(answer.result().source());
    if (resolved) out.json_line(resolved->result().source());
    return success();
  }
  if (options.files) {
    print_files(out, result);
    return success();
  }
  std::size_t rank = 0;
  for (const json::Value card : result["cards"]) {
    if (rank > 0) out.line("");
    print_card(out, card, rank + 1, options);
    if (rank < passages.size()) print_passage(out, passages[rank]);
    ++rank;
  }
  if (rank == 0) {
    ASSIGN_OR_RETURN(const std::string why, empty_answer(result, options.words.front(), options.corpus));
    out.line(out.one_line(out.advised(why)));
  }
  print_foot(out, result, options);
  return success();
}

}  // namespace

void add_query_command(CLI::App& app, Session& session) {
  add_command<QueryOptions>(session, app, "query", "Search the corpora and print matching cards", declare_query, query);
}

}  // namespace muniment::cli
