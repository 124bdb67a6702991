#include "adapters/import/events.hpp"

#include <algorithm>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

// Nesting of a value that is kept as it is. The translation and the request add levels around it; a request has at most
// limits::json_depth_max.
constexpr std::size_t raw_levels_max = 48;
constexpr std::size_t imported_name_bytes_max = 256;
constexpr std::size_t goal_bytes_max = 1'000;
constexpr std::size_t label_text_bytes_max = 256;
constexpr std::size_t external_id_bytes_max = 1'024;

std::size_t levels_of(const json::Value& value, std::size_t above = 0) {
  if (!value.is(json::Kind::object) && !value.is(json::Kind::array)) return above;
  std::size_t deepest = above + 1;
  for (const json::Value part : value) deepest = std::max(deepest, levels_of(part, above + 1));
  return deepest;
}

}  // namespace

std::string imported_run_id(const SourceFile& file) {
  constexpr std::size_t hash_digits = 12;
  std::string id;
  for (char c : file.name) {
    const bool allowed =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    id.push_back(allowed ? c : '-');
  }
  const bool starts_well = !id.empty() && id[0] != '.' && id[0] != '_' && id[0] != '-';
  if (!starts_well) id.insert(0, "run");
  id.resize(std::min(id.size(), limits::run_id_bytes_max - hash_digits - 1));
  return id + "-" + (file.session.empty() ? file.sha256 : file.session).substr(0, hash_digits);
}

std::string session_key(std::string_view format, std::string_view external_id) {
  return to_hex(sha256({"session", format, std::string_view("\0", 1), external_id}));
}

std::string start_params(const ImportedRun& run, const SourceFile& source, std::string_view format) {
  json::Writer params;
  params.begin_object().member("run_id", imported_run_id(source));
  params.key("agent").begin_object().member("name", name_or(run.agent, "unknown")).end_object();
  if (!run.goal.empty()) params.member("goal", preview(run.goal, goal_bytes_max));
  params.key("labels").begin_object();
  for (const auto& [name, value] : run.labels) params.member(name, preview(value, label_text_bytes_max));
  params.end_object();
  if (!run.external_id.empty()) params.member("external_id", preview(run.external_id, external_id_bytes_max));
  params.key("import").begin_object().member("format", format).member("sha256", source.sha256);
  params.member("importer", importer_name).end_object().end_object();
  return std::move(params).text();
}

std::string one_line_json(const json::Value& value) {
  std::string text(value.source());
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

void write_value(json::Writer& body, const json::Value& value) {
  if (levels_of(value) > raw_levels_max) {
    body.string(value.source());
  } else {
    body.raw(one_line_json(value));
  }
}

bool write_rest(json::Writer& body, const json::Value& object, std::span<const std::string_view> placed) {
  bool any = false;
  if (object.is(json::Kind::array)) {
    write_value(body.key("x_source").begin_object().key("items"), object);
    body.end_object();
    return true;
  }
  for (const json::Value member : object) {
    const std::string key = member.key();
    if (member.is(json::Kind::null) || std::find(placed.begin(), placed.end(), key) != placed.end()) continue;
    if (!any) body.key("x_source").begin_object();
    any = true;
    write_value(body.key(key), member);
  }
  if (any) body.end_object();
  return any;
}

void write_part(json::Writer& body, std::string_view type, std::string_view text) {
  body.begin_object().member("type", type).member("content", text).end_object();
}

std::string name_or(std::string_view name, std::string_view fallback) {
  return name.empty() ? std::string(fallback) : preview(name, imported_name_bytes_max);
}

void write_arguments(json::Writer& body, const json::Value& arguments) {
  const auto text = arguments.as_string();
  if (!text) {
    body.key("arguments");
    write_value(body, arguments);
    return;
  }
  const auto document = json::parse(*text);
  body.key("arguments");
  if (document && document->root().is(json::Kind::object)) {
    write_value(body, document->root());
  } else {
    body.string(*text);
  }
}

}  // namespace muniment::cli
