// completion/complete: suggests values for the arguments of prompts and resource templates, from the existing runs and
// corpora.
#include <fmt/format.h>

#include "mcp/methods.hpp"
#include "mcp/session.hpp"

namespace muniment::mcp {
namespace {

constexpr std::size_t values_max = 100;  // limit of the MCP specification

// Source of the values of an argument.
struct Source {
  std::string_view argument;
  std::string_view method;
  std::string_view params;
  std::string_view list;
  std::string_view field;
};

constexpr Source sources[] = {
    {"run", "run.list", R"({"limit":1000})", "runs", "run_id"},
    {"corpus", "corpus.list", "{}", "corpora", "corpus"},
};

void answer_values(const CallPtr& call, const std::vector<std::string>& values) {
  json::Writer out;
  out.begin_object().key("completion").begin_object().key("values").begin_array();
  for (std::size_t i = 0; i < std::min(values.size(), values_max); ++i) out.string(values[i]);
  out.end_array().member("total", values.size()).member("hasMore", values.size() > values_max);
  call->answer(out.end_object().end_object().text());
}

}  // namespace

void complete(const CallPtr& call) {
  const json::Value reference = call->params()["ref"];
  const json::Value argument = call->params()["argument"];
  if (!reference.is(json::Kind::object) || !argument["name"].is(json::Kind::string))
    return call->fail({invalid_params, "ref and argument: expected objects."});
  const std::string name = argument["name"].string_or(""), begun = argument["value"].string_or("");
  for (const Source& source : sources) {
    if (source.argument != name) continue;
    return call->native(source.method, std::string(source.params), [call, &source, begun](const NativeReply& reply) {
      if (!reply.ok()) return call->fail(failure_of(reply.error));
      std::vector<std::string> values;
      for (const json::Value item : reply.result[source.list]) {
        std::string value = item[source.field].string_or("");
        if (value.starts_with(begun)) values.push_back(std::move(value));
      }
      answer_values(call, values);
    });
  }
  answer_values(call, {});
}

}  // namespace muniment::mcp
