// pointer.resolve, pointer.validate and pointer.render: resolve pointers for a client.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/log_pointers.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/read/trace.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t resolved_text_bytes_max = limits::page_bytes_max;  // total size of the texts in a reply
constexpr std::size_t log_pages_max = 16;  // pages per reply; each page holds at least one event
constexpr std::size_t log_text_bytes_max =
    resolved_text_bytes_max / 2;  // size for log:// pointers, whose texts are lines of JSON

Result<std::vector<std::string>> pointers_of(const json::Value& params) {
  std::vector<std::string> pointers;
  for (const json::Value item : params["pointers"]) pointers.push_back(item.string_or(""));
  if (pointers.empty()) return Error(Errc::invalid_argument, "pointers: name at least one.");
  if (pointers.size() > limits::pointers_per_request_max) {
    Error error(Errc::too_large, fmt::format("{} pointers, limit {}. Send them in several requests.", pointers.size(),
                                             limits::pointers_per_request_max));
    error.limit = static_cast<std::int64_t>(limits::pointers_per_request_max);
    return error;
  }
  return pointers;
}

bool is_of_log(const evidence::Outcome::Item& item) {
  return item.resolution.ok() && item.resolution.parsed && item.resolution.parsed->kind == evidence::PointerKind::log;
}

// Drops texts beyond the limit of a reply; artifact.get reads those. Pages of log:// have a separate limit.
void bound_texts(evidence::Outcome& outcome) {
  std::size_t bytes = log_text_bytes_max;
  if (std::ranges::none_of(outcome.items, is_of_log)) bytes = 0;
  for (auto& item : outcome.items) {
    if (!item.resolution.text || is_of_log(item)) continue;
    bytes += item.resolution.text->size();
    if (bytes > resolved_text_bytes_max) item.resolution.text.reset();
  }
}

// `cursors` is parallel to the items and holds a cursor for each item whose text continues. If it is empty, there are
// no cursors.
void write_results(json::Writer& out, const evidence::Outcome& outcome, const std::vector<std::string>& cursors = {}) {
  out.key("results").begin_array();
  for (std::size_t i = 0; i < outcome.items.size(); ++i) {
    write_resolution(out, outcome.items[i].resolution, outcome.items[i].critical,
                     cursors.empty() ? std::string_view() : cursors[i]);
  }
  out.end_array();
}

// Reads one page for each log:// pointer; returns cursors parallel to the items.
Result<std::vector<std::string>> fill_log_pages(Call& call, evidence::Outcome& outcome,
                                                std::optional<std::int64_t> as_of) {
  const std::string cursor = call.params["cursor"].string_or("");
  const auto pages = static_cast<std::size_t>(std::ranges::count_if(outcome.items, is_of_log));
  if (!cursor.empty() && (pages != 1 || outcome.items.size() != 1)) {
    return Error(Errc::invalid_argument, "cursor: it belongs to one log:// pointer. Send it with that pointer alone.");
  }
  if (pages > log_pages_max) {
    Error error(Errc::too_large,
                fmt::format("{} log:// pointers, limit {}. Read them in several requests.", pages, log_pages_max));
    error.limit = static_cast<std::int64_t>(log_pages_max);
    return error;
  }
  std::vector<std::string> cursors(outcome.items.size());
  for (std::size_t i = 0; i < cursors.size(); ++i) {
    evidence::Outcome::Item& item = outcome.items[i];
    if (!is_of_log(item)) continue;
    ASSIGN_OR_RETURN(LogPage page, read_log(call, *item.resolution.parsed, cursor, log_text_bytes_max / pages, as_of));
    item.resolution.text = std::move(page.text);
    cursors[i] = std::move(page.cursor);
  }
  return cursors;
}

std::size_t bad_of(const evidence::Outcome& outcome) {
  return static_cast<std::size_t>(
      std::ranges::count_if(outcome.items, [](const auto& item) { return !item.resolution.ok(); }));
}

// The resolved pointers, which are counted and then recorded for their use.
struct Looked {
  Use use;
  Monotonic began;
  std::optional<std::int64_t> as_of{};
};

void count_pointers(Services& services, const evidence::Outcome& outcome, std::int64_t duration_us) {
  services.counters.pointers += std::ssize(outcome.items);
  for (std::size_t i = 0; i < evidence::reasons.size(); ++i) {
    services.counters.pointers_bad[i] += std::ranges::count(outcome.items, evidence::reasons[i],
                                                            [](const auto& item) { return item.resolution.reason; });
  }
  metrics::process().pointer_seconds.record(duration_us);
}

Answer recorded(Call& call, const Looked& looked, std::string_view type, const evidence::Outcome& outcome,
                std::string result) {
  const std::int64_t duration_us = call.services.clock.micros_since(looked.began);
  count_pointers(call.services, outcome, duration_us);
  // A reader that follows the log without a run must not append events, because it would never reach the end.
  if (!looked.use.run && outcome.events.empty() && !outcome.items.empty() &&
      std::ranges::all_of(outcome.items, is_of_log))
    return Reply{std::move(result), {}};
  return leave_trace(call, looked.use, type, looked_at(outcome, looked.as_of, duration_us),
                     Reply{std::move(result), {}}, outcome);
}

// Replaces every citation in the draft by its number, in order of first appearance.
std::string numbered(std::string_view draft, const std::vector<evidence::Citation>& citations,
                     const std::map<std::string, std::size_t>& numbers) {
  std::string content;
  std::size_t from = 0;
  for (const evidence::Citation& citation : citations) {
    content.append(draft.substr(from, citation.begin - from)).append(fmt::format("[{}]", numbers.at(citation.pointer)));
    from = citation.end;
  }
  return content.append(draft.substr(from));
}

void write_citation(json::Writer& out, const evidence::Resolution& found, std::size_t number) {
  out.begin_object().member("number", number).member("pointer", found.pointer).member("type", found.type());
  if (found.expected) out.member("hash", *found.expected);
  out.end_object();
}

void write_bad(json::Writer& out, const evidence::Resolution& found) {
  out.begin_object()
      .member("pointer", found.pointer)
      .member("reason", name_of(found.reason))
      .member("detail", found.detail)
      .end_object();
}

}  // namespace

Result<Answer> pointer_resolve(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  Looked looked{.use = {}, .began = call.services.clock.monotonic()};
  ASSIGN_OR_RETURN(const auto pointers, pointers_of(call.params));
  ASSIGN_OR_RETURN(looked.use, use_of(call));
  ASSIGN_OR_RETURN(looked.as_of, asof_seq(call, *call.reader));
  const bool critical = call.params["critical"].as_bool().value_or(false);
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  ASSIGN_OR_RETURN(evidence::Outcome outcome, resolve_pointers(call, pointers,
                                                               {.run = looked.use.run,
                                                                .critical = critical,
                                                                .given = true,
                                                                .with_text = true,
                                                                .run_needed = true,
                                                                .as_of = looked.as_of}));
  ASSIGN_OR_RETURN(const std::vector<std::string> cursors, fill_log_pages(call, outcome, looked.as_of));
  bound_texts(outcome);
  json::Writer out;
  write_results(out.begin_object(), outcome, cursors);
  write_halted(out, outcome);
  return recorded(call, looked, "pointer.resolved", outcome, std::move(out.end_object()).text());
}

// Validates without a second attempt, as long as no run depends on a damaged pointer.
Result<Answer> pointer_validate(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  Looked looked{.use = {}, .began = call.services.clock.monotonic()};
  ASSIGN_OR_RETURN(const auto pointers, pointers_of(call.params));
  ASSIGN_OR_RETURN(looked.use, use_of(call));
  ASSIGN_OR_RETURN(looked.as_of, asof_seq(call, *call.reader));
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  ASSIGN_OR_RETURN(evidence::Outcome outcome,
                   look_at_pointers(call, pointers, {.run = looked.use.run, .given = true, .as_of = looked.as_of}));
  for (auto& item : outcome.items) item.resolution.text.reset();  // pointer.resolve returns texts
  json::Writer out;
  write_results(out.begin_object(), outcome);
  write_halted(out.member("ok", bad_of(outcome) == 0), outcome);
  return recorded(call, looked, "pointer.validated", outcome, std::move(out.end_object()).text());
}

Result<Answer> pointer_render(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  Looked looked{.use = {}, .began = call.services.clock.monotonic()};
  ASSIGN_OR_RETURN(looked.use, use_of(call));
  const std::string draft = call.params["draft"].string_or("");
  const auto citations = evidence::find_citations(draft);
  if (citations.size() > limits::pointers_per_request_max) {
    return Error(Errc::too_large, fmt::format("{} citations, limit {}. Render the draft in parts.", citations.size(),
                                              limits::pointers_per_request_max));
  }
  std::vector<std::string> pointers;  // in order of first appearance
  std::map<std::string, std::size_t> numbers;
  for (const evidence::Citation& citation : citations) {
    if (numbers.emplace(citation.pointer, pointers.size() + 1).second) pointers.push_back(citation.pointer);
  }
  ASSIGN_OR_RETURN(const evidence::Outcome outcome,
                   look_at_pointers(call, pointers, {.run = looked.use.run, .given = true}));
  const bool ok = bad_of(outcome) == 0;
  json::Writer out;
  out.begin_object().member("ok", ok);
  if (ok) out.member("content", numbered(draft, citations, numbers));
  out.key(ok ? "citations" : "bad").begin_array();
  for (std::size_t i = 0; i < outcome.items.size(); ++i) {
    const evidence::Resolution& found = outcome.items[i].resolution;
    if (ok) write_citation(out, found, i + 1);
    if (!found.ok()) write_bad(out, found);
  }
  out.end_array();
  if (!ok) write_halted(out, outcome);
  return recorded(call, looked, "pointer.rendered", outcome, std::move(out.end_object()).text());
}

}  // namespace muniment::gateway::methods
