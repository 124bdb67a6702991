// Builds plans from questions, and encodes cursors.
#include "retrieval/query/query_plan.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "evidence/sample_set.hpp"
#include "retrieval/rerank/local_reranker.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::retrieval {
namespace {

std::vector<std::string> labels(std::string_view kind, const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) out.push_back(std::string(kind) + ":" + value);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Everything that the answer depends on, except the positions of log and indexes.
std::string plan_text(const QueryPlan& plan, const Scope& scope, const Hooks& hooks) {
  const Question& question = plan.question;
  json::Writer out;
  out.begin_object().member("query", plan.markup.text);
  out.member("phrases", plan.markup.phrases);
  out.member("mode", name_of(question.mode))
      .member("top_k", question.top_k)
      .member("by_document", question.by_document ? 1 : 0);
  out.member("expand", name_of(question.expand)).member("rerank", name_of(question.rerank));
  if (question.expand == Expand::hook) out.member("expansion_hook", hooks.expansion_identity());
  if (question.rerank == Rerank::local) out.member("rerank_rules", local_reranker_identity);
  if (question.rerank == Rerank::hook) out.member("rerank_hook", hooks.rerank_identity());
  if (question.rerank == Rerank::http) out.member("rerank_url", hooks.server_identity());
  out.member("profile", plan.profile->name)
      .member("exact", question.exact ? 1 : 0)
      .member("principal", scope.principal);
  out.member("unknown_corpus", plan.unknown_corpus ? 1 : 0);
  if (plan.unknown_run) out.member("unknown_run", 1);
  if (question.after_questions) out.member("after_questions", 1);
  out.key("filter");
  write_filter(out, filter_of(plan));
  return std::move(out.end_object()).text();
}

Error not_there(const char* field, const char* setting) {
  return Error(Errc::invalid_argument,
               fmt::format("{}: the configuration has no {} (docs/retrieval.md, \"Hooks\").", field, setting));
}

Status settle_helpers(Question& question, const Hooks& hooks) {
  if (question.expand == Expand::unsaid) question.expand = hooks.can_expand() ? Expand::hook : Expand::none;
  if (question.rerank == Rerank::unsaid)
    question.rerank = hooks.can_rerank() ? Rerank::hook : hooks.has_server() ? Rerank::http : Rerank::none;
  if (question.expand == Expand::hook && !hooks.can_expand()) return not_there("expand", "expansion_hook");
  if (question.rerank == Rerank::hook && !hooks.can_rerank()) return not_there("rerank", "rerank_hook");
  if (question.rerank == Rerank::http && !hooks.has_server()) return not_there("rerank", "rerank_url");
  return success();
}

void choose_corpora(QueryPlan& plan, const Scope& scope) {
  const Question& question = plan.question;
  std::vector<std::string> wanted = question.corpora;
  if (wanted.empty()) {
    wanted = plan.markup.corpora;
  } else if (!plan.markup.corpora.empty()) {  // with both, only corpora that both allow
    std::erase_if(wanted, [&](const std::string& name) {
      return std::ranges::find(plan.markup.corpora, name) == plan.markup.corpora.end();
    });
  }
  // The corpus run is searched only on request: it is large and would displace what an agent chose to remember.
  if (wanted.empty() && !plan.markup.runs.empty() && question.corpora.empty()) wanted.emplace_back(store::run_corpus);
  const bool named = !wanted.empty() || !question.corpora.empty();
  plan.samples = wanted.size() == 1 &&
                 wanted.front() == evidence::sample_corpus;  // searched alone: never mixed with ingested documents
  if (plan.samples) plan.corpora = wanted;
  for (const std::string& corpus : named ? wanted : scope.corpora) {
    const bool seen = std::ranges::find(scope.corpora, corpus) != scope.corpora.end();
    if (seen || corpus == store::run_corpus) plan.corpora.push_back(corpus);
  }
  std::ranges::sort(plan.corpora);
  if (!scope.sees_all) plan.owner = scope.principal;
  plan.unknown_corpus = named && plan.corpora.size() < wanted.size();
}

}  // namespace

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::hybrid: return "hybrid";
    case Mode::lexical: return "lexical";
    case Mode::vector: return "vector";
  }
  return "";
}

std::string_view name_of(Expand expand) {
  switch (expand) {
    case Expand::unsaid: return "";
    case Expand::none: return "none";
    case Expand::heuristic: return "heuristic";
    case Expand::hook: return "hook";
  }
  return "";
}

std::string_view name_of(Rerank rerank) {
  switch (rerank) {
    case Rerank::unsaid: return "";
    case Rerank::none: return "none";
    case Rerank::local: return "local";
    case Rerank::hook: return "hook";
    case Rerank::http: return "http";
  }
  return "";
}

Expand expand_named(std::string_view name) {
  for (const Expand expand : {Expand::none, Expand::heuristic, Expand::hook}) {
    if (name == name_of(expand)) return expand;
  }
  return Expand::unsaid;
}

Rerank rerank_named(std::string_view name) {
  for (const Rerank rerank : {Rerank::none, Rerank::local, Rerank::hook, Rerank::http}) {
    if (name == name_of(rerank)) return rerank;
  }
  return Rerank::unsaid;
}

void require_any(Filter& filter, std::string_view kind, const std::vector<std::string>& values) {
  if (!values.empty()) filter.all_of.push_back(labels(kind, values));
}

void write_filter(json::Writer& out, const Filter& filter) {
  out.begin_object().key("all_of").begin_array();
  for (const auto& group : filter.all_of) {
    out.begin_array();
    for (const std::string& label : group) out.string(label);
    out.end_array();
  }
  out.end_array();
  out.member("none_of", filter.none_of);
  if (filter.after_us) out.member("after_us", *filter.after_us);
  if (filter.before_us) out.member("before_us", *filter.before_us);
  if (filter.as_of) out.member("as_of", *filter.as_of);
  out.end_object();
}

namespace {

// Restricts the filter to the corpora and, in the corpus run, to the principal's runs.
void require_scope(Filter& filter, const QueryPlan& plan) {
  require_any(filter, "corpus", plan.corpora);
  if (plan.owner.empty() || !std::ranges::binary_search(plan.corpora, store::run_corpus)) return;
  std::vector<std::string> group{"owner:" + plan.owner};
  for (const std::string& corpus : plan.corpora) {
    if (corpus != store::run_corpus) group.push_back("corpus:" + corpus);
  }
  std::ranges::sort(group);
  filter.all_of.push_back(std::move(group));
}

}  // namespace

Filter scope_filter(const QueryPlan& plan) {
  Filter filter;
  require_scope(filter, plan);
  filter.as_of = plan.as_of;
  return filter;
}

Filter filter_of(const QueryPlan& plan) {
  Filter filter = filter_of(plan.markup);
  const Wishes& wishes = plan.question.wishes;
  std::erase_if(filter.all_of,
                [](const auto& group) { return !group.empty() && group.front().starts_with("corpus:"); });
  require_scope(filter, plan);
  require_any(filter, "type", wishes.types);
  require_any(filter, "source", wishes.sources);
  require_any(filter, "trust", wishes.trust);
  require_any(filter, "document", wishes.documents);
  for (const std::string& tag : wishes.tags) filter.all_of.push_back({"tag:" + tag});
  if (wishes.trust.empty()) filter.none_of.push_back("trust:quarantined");
  if (wishes.after) filter.after_us = std::max(filter.after_us.value_or(wishes.after->micros), wishes.after->micros);
  if (wishes.before)
    filter.before_us = std::min(filter.before_us.value_or(wishes.before->micros), wishes.before->micros);
  std::ranges::sort(filter.all_of);
  filter.as_of = plan.as_of;
  return filter;
}

std::string text_of(const Cursor& cursor) {
  return fmt::format("{}.{}.{}.{}", cursor.from, cursor.watermark, cursor.hash.substr(0, hash_digits), cursor.ranking);
}

Result<Cursor> parse_cursor(std::string_view text) {
  const Error bad(Errc::invalid_argument, "cursor: not from evidence.retrieve. Omit it to start again.");
  const std::size_t first = text.find('.'), second = text.find('.', first + 1), third = text.find('.', second + 1);
  if (first == std::string_view::npos || second == std::string_view::npos || third == std::string_view::npos)
    return bad;
  Cursor out;
  const auto from = std::from_chars(text.data(), text.data() + first, out.from);
  const auto mark = std::from_chars(text.data() + first + 1, text.data() + second, out.watermark);
  if (from.ec != std::errc{} || mark.ec != std::errc{} || from.ptr != text.data() + first ||
      mark.ptr != text.data() + second)
    return bad;
  out.hash = text.substr(second + 1, third - second - 1);
  out.ranking = text.substr(third + 1);
  return out;
}

Result<QueryPlan> begin_plan(const Question& question, const Scope& scope, const Hooks& hooks) {
  QueryPlan plan;
  plan.question = question;
  RETURN_IF_ERROR(settle_helpers(plan.question, hooks));
  plan.markup = parse_markup(question.text);
  ASSIGN_OR_RETURN(plan.profile, find_profile(question.profile));
  choose_corpora(plan, scope);
  plan.as_of = question.as_of;
  return plan;
}

void end_plan(QueryPlan& plan, const Scope& scope, const Hooks& hooks) {
  plan.hash = to_hex(sha256(plan_text(plan, scope, hooks)));
}

}  // namespace muniment::retrieval
