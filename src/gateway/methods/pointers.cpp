// pointer.resolve, pointer.validate, pointer.render.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/metrics.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/pointing.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t resolved_text_bytes_max = limits::page_bytes_max;  // of all texts of a reply

Result<std::vector<std::string>> pointers_of(const json::Value& params) {
  std::vector<std::string> pointers;
  for (const json::Value item : params["pointers"]) pointers.push_back(item.string_or(""));
  if (pointers.empty()) return Error(Errc::invalid_argument, "pointers: name at least one.");
  if (pointers.size() > limits::pointers_per_request_max) {
    Error error(Errc::too_large, fmt::format("{} pointers, limit {}. Send them in several requests.", pointers.size(), limits::pointers_per_request_max));
    error.limit = static_cast<std::int64_t>(limits::pointers_per_request_max);
    return error;
  }
  return pointers;
}

// Texts go with the reply until it is large enough; the others are read by artifact.get.
void bound_texts(evidence::Outcome& outcome) {
  std::size_t bytes = 0;
  for (auto& item : outcome.items) {
    if (!item.resolution.text) continue;
    bytes += item.resolution.text->size();
    if (bytes > resolved_text_bytes_max) item.resolution.text.reset();
  }
}

std::string results_json(const evidence::Outcome& outcome) {
  json::Writer out;
  out.begin_object().key("results").begin_array();
  for (const auto& item : outcome.items) write_resolution(out, item.resolution, item.critical);
  out.end_array();
  out.key("halted").begin_array();
  for (const evidence::PendingHalt& halt : outcome.halts) {
    out.begin_object()
        .member("run_id", halt.run_id)
        .member("code", halt.halt.code)
        .member("pointer", halt.halt.pointer)
        .member("reason", halt.halt.reason)
        .end_object();
  }
  out.end_array().end_object();
  return std::move(out).text();
}

struct Bad {
  std::string pointer;
  evidence::Reason reason;
  std::string detail;
};

void write_bad(json::Writer& out, const std::vector<Bad>& bad) {
  out.key("bad").begin_array();
  for (const Bad& item : bad) {
    out.begin_object().member("pointer", item.pointer).member("reason", name_of(item.reason)).member("detail", item.detail).end_object();
  }
  out.end_array();
}

void count_pointers(Services& services, std::size_t pointers, std::size_t bad, Time began) {
  services.counters.pointers += static_cast<std::int64_t>(pointers);
  services.counters.pointers_bad += static_cast<std::int64_t>(bad);
  metrics::process().pointer_seconds.record(services.clock.now().micros - began.micros);
}

// The draft with every citation replaced by its number, in order of first appearance.
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

}  // namespace

Result<Answer> pointer_resolve(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const Time began = call.services.clock.now();
  ASSIGN_OR_RETURN(const auto pointers, pointers_of(call.params));
  std::shared_ptr<store::Run> run;
  if (const auto run_id = call.params["run_id"].as_string()) {
    ASSIGN_OR_RETURN(run, find_run(call, *run_id));
  }
  const bool critical = call.params["critical"].as_bool().value_or(false);
  ASSIGN_OR_RETURN(const auto as_of, asof_seq(call));
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  ASSIGN_OR_RETURN(evidence::Outcome outcome, resolve_pointers(call, pointers, run, critical, true, as_of));
  count_pointers(call.services, pointers.size(),
                 static_cast<std::size_t>(std::ranges::count_if(outcome.items, [](const auto& item) { return !item.resolution.ok(); })), began);
  bound_texts(outcome);
  std::string results = results_json(outcome);
  if (outcome.events.empty()) return Answer(Reply{std::move(results), {}});
  return Answer(append_outcome(outcome, [results] { return Result<Reply>(Reply{results, {}}); }));
}

// Looks, and changes nothing: neither a retry nor a halt.
Result<Answer> pointer_validate(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const Time began = call.services.clock.now();
  ASSIGN_OR_RETURN(const auto pointers, pointers_of(call.params));
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  evidence::Sight sight = sight_of(call);
  ASSIGN_OR_RETURN(sight.as_of, asof_seq(call));
  sight.known = &call.services.retrieval.documents().chunk_rows();
  evidence::Resolver resolver(*call.reader, call.services.files, std::move(sight));
  RETURN_IF_ERROR(resolver.read_ahead(pointers));
  json::Writer out;
  out.begin_object().key("results").begin_array();
  std::size_t bad = 0;
  for (const std::string& pointer : pointers) {
    ASSIGN_OR_RETURN(evidence::Resolution found, resolver.resolve(pointer, evidence::Depth::span));
    found.text.reset();  // whoever wants to read it resolves it
    if (!found.ok()) ++bad;
    write_resolution(out, found, false);
  }
  count_pointers(call.services, pointers.size(), bad, began);
  out.end_array().member("ok", bad == 0).end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

Result<Answer> pointer_render(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const std::string draft = call.params["draft"].string_or("");
  const auto citations = evidence::find_citations(draft);
  if (citations.size() > limits::pointers_per_request_max) {
    return Error(Errc::too_large, fmt::format("{} citations, limit {}. Render the draft in parts.", citations.size(), limits::pointers_per_request_max));
  }
  evidence::Resolver resolver(*call.reader, call.services.files, sight_of(call));
  std::vector<std::string> pointers;
  for (const evidence::Citation& citation : citations) pointers.push_back(citation.pointer);
  RETURN_IF_ERROR(resolver.read_ahead(pointers));
  std::map<std::string, std::size_t> numbers;
  std::vector<Bad> bad;
  json::Writer cited;
  cited.begin_array();
  for (const evidence::Citation& citation : citations) {
    if (!numbers.emplace(citation.pointer, numbers.size() + 1).second) continue;
    ASSIGN_OR_RETURN(const evidence::Resolution found, resolver.resolve(citation.pointer, evidence::Depth::span));
    if (!found.ok()) {
      bad.push_back({found.pointer, found.reason, found.detail});
      continue;
    }
    cited.begin_object().member("number", numbers.size()).member("pointer", found.pointer).member("type", found.type());
    if (found.expected) cited.member("hash", *found.expected);
    cited.end_object();
  }
  cited.end_array();
  json::Writer out;
  out.begin_object().member("ok", bad.empty());
  if (bad.empty()) {
    out.member("content", numbered(draft, citations, numbers)).raw_member("citations", cited.text());
  } else {
    write_bad(out, bad);
  }
  return Answer(Reply{out.end_object().text(), {}});
}

}  // namespace muniment::gateway::methods
