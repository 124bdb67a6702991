// resources/list, resources/templates/list and resources/read. The table of templates lists every form of a URI.
// pointer.resolve reads a resource and checks its hash; a long resource is described instead of sent.
#include "mcp/offer/resources.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "mcp/methods.hpp"
#include "mcp/offer/extension.hpp"
#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

constexpr Caching not_cached{};
constexpr std::int64_t page_runs = 50;

enum class Changes : std::uint8_t { never, with_log, as_run };

struct Template {
  std::string_view uri;  // RFC 6570; a URI without a variable is a resource itself
  std::string_view name;
  std::string_view description;
  std::string_view mime_type;
  Changes changes;
};

constexpr Template template_table[] = {
    {"log://validation", "validation", "Pointers that were validated, rendered and resolved", "application/jsonl",
     Changes::with_log},
    {"log://metrics", "metrics", "Counters of the daemon", "text/plain", Changes::with_log},
    {"log://runs/{run}/events", "run events", "Events of a run, one JSON object per line", "application/jsonl",
     Changes::with_log},
    {"run://{run}", "run", "A run: its agent, status and counts", "application/json", Changes::as_run},
    {"ev://{corpus}/{+document}", "evidence", "A passage of a document, as in a card", "text/plain", Changes::never},
    {"artifact://{run}/{artifact}", "artifact", "Stored bytes; #b<start>-<end> for a slice", "text/plain",
     Changes::never},
    {"snap://{run}/{seq}", "snapshot", "A run's state at a position", "application/json", Changes::never},
    {"manifest://{manifest}", "manifest", "Contents of a context window, and the reasons", "application/json",
     Changes::never},
};

bool is_template(const Template& row) { return row.uri.find('{') != std::string_view::npos; }

// Returns the row with the longest fixed prefix of the URI.
const Template* row_of(std::string_view uri) {
  const Template* best = nullptr;
  std::size_t best_size = 0;
  for (const Template& row : template_table) {
    const std::size_t fixed = std::min(row.uri.find('{'), row.uri.size());
    const bool fits =
        is_template(row) ? uri.size() > fixed && uri.starts_with(row.uri.substr(0, fixed)) : uri == row.uri;
    if (fits && fixed >= best_size) {
      best = &row;
      best_size = fixed;
    }
  }
  return best;
}

std::string_view run_of(std::string_view uri) { return uri.substr(std::string_view("run://").size()); }

void write_description(json::Writer& out, const Template& row, std::string_view key) {
  out.begin_object().member(key, row.uri).member("name", row.name).member("description", row.description);
  out.member("mimeType", row.mime_type).end_object();
}

Failure not_found(const Call& call, const std::string& uri, std::string_view why) {
  const int code = call.revision() == Revision::stateless ? invalid_params : resource_not_found;
  return {code, fmt::format("resource not found: {}. {}", uri, why),
          json::Writer().begin_object().member("uri", uri).end_object().text()};
}

// {contents: [{uri, mimeType, text}]}
std::string contents(std::string_view uri, std::string_view mime_type, std::string_view text) {
  json::Writer out;
  out.begin_object().key("contents").begin_array();
  out.begin_object().member("uri", uri).member("mimeType", mime_type).member("text", text).end_object();
  return std::move(out.end_array().end_object()).text();
}

void read_run(const CallPtr& call, const std::string& uri) {
  const std::string params = json::Writer().begin_object().member("run_id", run_of(uri)).end_object().text();
  call->native("run.get", params, [call, uri](const NativeReply& reply) {
    if (!reply.ok()) {
      const Failure failure = failure_of(reply.error);
      return call->fail(failure.code == internal_error ? failure : not_found(*call, uri, failure.message));
    }
    call->answer(contents(uri, "application/json", reply.result["run"].source()), not_cached);
  });
}

// Describes long or binary bytes; their slices can be read.
void answer_resolved(const CallPtr& call, const std::string& uri, std::string_view mime_type,
                     const NativeReply& reply) {
  if (!reply.ok()) return call->fail(failure_of(reply.error));
  const json::Value results = reply.result["results"];
  const json::Value found = results.size() > 0 ? *results.begin() : json::Value();
  if (!found["ok"].as_bool().value_or(false))
    return call->fail(not_found(*call, uri, found["reason"].string_or("") + " " + found["detail"].string_or("")));
  const auto text = found["text"].as_string();
  call->answer(text ? contents(uri, mime_type, *text) : contents(uri, "application/json", found.source()), not_cached);
}

// A critical pointer that does not resolve stops the session's run.
void read_pointer(const CallPtr& call, const std::string& uri, std::string_view mime_type) {
  call->session().run().when_started([call, uri, mime_type] {
    json::Writer params;
    params.begin_object().key("pointers").begin_array().string(uri).end_array();
    if (const std::string& run = call->session().run().id(); !run.empty()) params.member("run_id", run);
    call->native("pointer.resolve", std::move(params.end_object()).text(),
                 [call, uri, mime_type](const NativeReply& reply) { answer_resolved(call, uri, mime_type, reply); });
  });
}

}  // namespace

std::optional<std::string> follow_params(std::string_view uri) {
  const Template* row = row_of(uri);
  if (row == nullptr) return std::nullopt;
  json::Writer params;
  params.begin_object();
  switch (row->changes) {
    case Changes::never: return "";
    case Changes::with_log: params.member("pointer", uri); break;
    case Changes::as_run: params.member("run_id", run_of(uri)); break;
  }
  return std::move(params.end_object()).text();
}

// Lists the fixed resources, then the runs, newest first.
void list_resources(const CallPtr& call) {
  json::Writer params;
  params.begin_object().member("limit", page_runs);
  const auto cursor = call->params()["cursor"].as_string();
  if (cursor) params.member("cursor", *cursor);
  call->native("run.list", std::move(params.end_object()).text(), [call, first = !cursor](const NativeReply& reply) {
    if (!reply.ok()) return call->fail(failure_of(reply.error));
    json::Writer out;
    out.begin_object().key("resources").begin_array();
    for (const Template& row : template_table) {
      if (first && !is_template(row)) write_description(out, row, "uri");
    }
    const Extension* extension = call->session().server().options().extension;
    if (first && extension != nullptr) extension->write_resources(out);
    for (const json::Value run : reply.result["runs"]) {
      const std::string id = run["run_id"].string_or("");
      out.begin_object().member("uri", "run://" + id).member("name", "run " + id);
      out.member("description", fmt::format("{}, {}", run["agent"].string_or(""), run["status"].string_or("")));
      out.member("mimeType", "application/json").end_object();
    }
    out.end_array();
    if (const auto next = reply.result["cursor"].as_string()) out.member("nextCursor", *next);
    call->answer(out.end_object().text(), not_cached);
  });
}

void list_resource_templates(const CallPtr& call) {
  json::Writer out;
  out.begin_object().key("resourceTemplates").begin_array();
  for (const Template& row : template_table) {
    if (is_template(row)) write_description(out, row, "uriTemplate");
  }
  if (const Extension* extension = call->session().server().options().extension) extension->write_templates(out);
  call->answer(out.end_array().end_object().text(), cached_for_an_hour);
}

void read_resource(const CallPtr& call) {
  const std::string uri = call->params()["uri"].string_or("");
  if (uri.empty()) return call->fail({invalid_params, "uri: expected a resource's URI."});
  const Extension* extension = call->session().server().options().extension;
  if (extension != nullptr && extension->read_resource(call, uri)) return;
  const Template* row = row_of(uri);
  if (row == nullptr) return call->fail(not_found(*call, uri, "See resources/templates/list."));
  row->changes == Changes::as_run ? read_run(call, uri) : read_pointer(call, uri, row->mime_type);
}

}  // namespace muniment::mcp
