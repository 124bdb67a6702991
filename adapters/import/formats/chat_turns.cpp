#include "adapters/import/formats/chat_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t call_id_bytes_max = 240;  // leaves room for a suffix that makes ids unique
constexpr std::size_t file_path_bytes_max = 4'096;

std::string value_json(const json::Value& value) {
  json::Writer out;
  write_value(out, value);
  return std::move(out).text();
}

void write_content(json::Writer& body, const std::vector<std::string>& parts) {
  body.key("content").begin_array();
  for (const std::string& part : parts) body.raw(part);
  body.end_array();
}

}  // namespace

SourceRest& SourceRest::keep(const json::Value& object, std::initializer_list<std::string_view> placed,
                             std::string_view under) {
  if (object.is(json::Kind::array)) return keep_value(under.empty() ? "items" : under, object);
  for (const json::Value member : object) {
    const std::string key = member.key();
    if (member.is(json::Kind::null) || std::find(placed.begin(), placed.end(), key) != placed.end()) continue;
    add(under, key, value_json(member), false);
  }
  return *this;
}

SourceRest& SourceRest::keep_value(std::string_view name, const json::Value& value) {
  if (value && !value.is(json::Kind::null)) add({}, name, value_json(value), false);
  return *this;
}

SourceRest& SourceRest::keep_json(std::string_view name, std::string json) {
  add({}, name, std::move(json), false);
  return *this;
}

SourceRest& SourceRest::detail(std::string_view name, const json::Value& value) {
  if (value && !value.is(json::Kind::null)) add({}, name, value_json(value), true);
  return *this;
}

SourceRest& SourceRest::detail_json(std::string_view name, std::string json) {
  add({}, name, std::move(json), true);
  return *this;
}

void SourceRest::add(std::string_view under, std::string_view key, std::string json, bool is_detail) {
  std::string unused(key);
  const auto is_used = [&](const Member& member) {
    return (member.under == under && member.key == unused) || (under.empty() && member.under == unused);
  };
  while (std::ranges::any_of(members_, is_used)) unused += "_";
  std::string group(under);
  const auto is_taken = [&](const Member& member) { return member.under.empty() && member.key == group; };
  while (!group.empty() && std::ranges::any_of(members_, is_taken)) group += "_";
  members_.push_back({std::move(group), std::string(key), std::move(unused), std::move(json), is_detail});
}

void SourceRest::write(json::Writer& body, KnownMembers known) const {
  write_group(body, "x_details", known, true);
  write_group(body, "x_source", known, false);
}

void SourceRest::write_group(json::Writer& body, std::string_view name, KnownMembers known, bool details) const {
  std::vector<const Member*> members;
  for (const Member& member : members_) {
    const bool is_detail = member.is_detail || std::ranges::find(known, member.name) != known.end();
    if (is_detail == details) members.push_back(&member);
  }
  if (members.empty()) return;
  std::set<std::string_view> written;
  body.key(name).begin_object();
  for (const Member* member : members) {
    if (member->under.empty()) {
      body.raw_member(member->key, member->json);
      continue;
    }
    if (!written.insert(member->under).second) continue;
    body.key(member->under).begin_object();
    for (const Member* other : members) {
      if (other->under == member->under) body.raw_member(other->key, other->json);
    }
    body.end_object();
  }
  body.end_object();
}

void TurnWriter::begin_item(std::string occurred_at) {
  ++items_;
  kinds_.clear();
  occurred_at_ = std::move(occurred_at);
}

void TurnWriter::add(std::string_view what, std::string type, std::string body) {
  std::string kind = fmt::format("{}/{}", items_, what);
  for (std::size_t number = 2; !kinds_.insert(kind).second; ++number)
    kind = fmt::format("{}/{}-{}", items_, what, number);
  events_.push_back({std::move(kind), std::move(type), step_, std::move(body), occurred_at_});
}

void TurnWriter::begin_step() {
  if (!step_.empty()) add("step-end", "step.ended", unknown_step_end);
  step_ = fmt::format("turn-{:04}", ++steps_);
  json::Writer body;
  body.begin_object().member("name", fmt::format("turn {}", steps_)).member("kind", "turn").end_object();
  add("step", "step.started", std::move(body).text());
}

void TurnWriter::end_step() {
  if (!step_.empty()) add("end", "step.ended", unknown_step_end);
  step_.clear();
}

std::string TurnWriter::answer(const TurnAnswer& answer) {
  const std::string call_id = fmt::format("model-{:04}", steps_);
  const std::string model = name_or(answer.model, unknown_model);
  json::Writer called;
  called.begin_object().member("call_id", call_id).member("operation", "chat");
  called.member("provider", unknown_model).member("model", model);
  called.key("parameters").begin_object().end_object().end_object();
  add("model", "model.called", std::move(called).text());
  events_.back().occurred_at.clear();  // the item's time is that of the answer; that of the request is unknown
  json::Writer body;
  body.begin_object().member("call_id", call_id).member("status", answer.status).member("model", model);
  body.key("finish_reasons").begin_array();
  for (const std::string& reason : answer.finish_reasons) body.string(preview(reason, 256));
  body.end_array();
  write_content(body, answer.parts);
  if (!answer.usage.empty()) body.raw_member("usage", answer.usage);
  if (answer.duration_us) body.member("duration_us", *answer.duration_us);
  answer.rest.write(body, known_);
  add("answer", "model.answered", std::move(body.end_object()).text());
  return call_id;
}

std::string TurnWriter::new_call_id(const std::string& source_id) {
  ++calls_;
  std::string id = source_id.empty() ? fmt::format("tool-{:04}", calls_) : preview(source_id, call_id_bytes_max);
  if (!used_ids_.insert(id).second) {
    id += fmt::format("~{}", calls_);
    used_ids_.insert(id);
  }
  return id;
}

std::string TurnWriter::call(const TurnCall& call) {
  std::string call_id = new_call_id(call.source_id);
  json::Writer body;
  body.begin_object()
      .member("call_id", call_id)
      .member("name", name_or(call.name, "unknown"))
      .member("kind", call.kind);
  if (!call.server.empty()) body.member("server", preview(call.server, 256));
  if (!call.requested_by.empty()) body.member("requested_by", call.requested_by);
  if (!call.arguments.empty()) body.raw_member("arguments", call.arguments);
  call.rest.write(body, known_);
  add(fmt::format("tool-{}", calls_), "tool.called", std::move(body.end_object()).text());
  return call_id;
}

void TurnWriter::returned(const TurnReturn& result) {
  json::Writer body;
  body.begin_object().member("call_id", result.call_id).member("status", result.status);
  if (result.exit_code) body.member("exit_code", *result.exit_code);
  write_content(body, result.parts);
  if (result.duration_us) body.member("duration_us", *result.duration_us);
  result.rest.write(body, known_);
  add("returned", "tool.returned", std::move(body.end_object()).text());
  if (result.occurred_at) events_.back().occurred_at = *result.occurred_at;
}

void TurnWriter::changed(const TurnChange& file) {
  json::Writer body;
  body.begin_object().member("path", preview(file.path, file_path_bytes_max)).member("change", file.change);
  if (!file.from_path.empty()) body.member("from_path", preview(file.from_path, file_path_bytes_max));
  if (!file.diff.empty()) body.member("diff", file.diff);
  if (!file.call_id.empty()) body.member("call_id", file.call_id);
  add("file", "file.changed", std::move(body.end_object()).text());
}

void TurnWriter::message(std::string_view role, const std::vector<std::string>& parts, const SourceRest& rest) {
  json::Writer body;
  body.begin_object().member("message_id", fmt::format("m{}", items_)).member("role", role);
  write_content(body, parts);
  rest.write(body, known_);
  add("message", "message.added", std::move(body.end_object()).text());
}

void TurnWriter::source(std::string_view format, std::string_view part, const SourceRest& rest) {
  if (rest.empty()) return;
  json::Writer body;
  body.begin_object().member("part", part);
  rest.write(body, known_);
  add(part, fmt::format("x.{}.source", format), std::move(body.end_object()).text());
}

std::string text_part_json(std::string_view text) {
  json::Writer out;
  write_part(out, "text", text);
  return std::move(out).text();
}

std::string reasoning_part_json(std::string_view text) {
  json::Writer out;
  write_part(out, "reasoning", text);
  return std::move(out).text();
}

std::string tool_call_part_json(const std::string& id, std::string_view name, const json::Value& arguments) {
  json::Writer out;
  out.begin_object().member("type", "tool_call").member("name", name_or(name, "unknown"));
  if (!id.empty()) out.member("id", preview(id, 256));
  if (arguments) write_value(out.key("arguments"), arguments);
  return std::move(out.end_object()).text();
}

namespace {

std::string uri_part(std::string_view uri) {
  json::Writer out;
  out.begin_object().member("type", "uri").member("uri", uri).member("modality", "image").end_object();
  return std::move(out).text();
}

bool is_uri(const std::string& uri) {
  constexpr std::size_t uri_bytes_max = 4'096;
  return !uri.empty() && uri.size() <= uri_bytes_max;
}

// Returns whether an object has no members besides those named; null, false and empty lists are ignored.
bool has_only(const json::Value& object, std::initializer_list<std::string_view> names) {
  for (const json::Value member : object) {
    const bool is_nothing = member.is(json::Kind::null) || !member.as_bool().value_or(true) ||
                            ((member.is(json::Kind::array) || member.is(json::Kind::object)) && member.size() == 0);
    const std::string key = member.key();
    if (!is_nothing && std::find(names.begin(), names.end(), key) == names.end()) return false;
  }
  return true;
}

// Adds a part of a content list; returns false if a member of it has no place.
bool add_content_part(std::vector<std::string>& parts, const json::Value& part) {
  if (const auto text = part.as_string()) {
    parts.push_back(text_part_json(*text));
    return true;
  }
  const std::string type = part["type"].string_or("");
  const bool is_text = type.empty() || type == "text" || type == "input_text" || type == "output_text";
  if (is_text && part["text"].is(json::Kind::string)) {
    parts.push_back(text_part_json(part["text"].string_or("")));
    return has_only(part, {"type", "text"});
  }
  if (type == "thinking" && part["thinking"].is(json::Kind::string)) {
    parts.push_back(reasoning_part_json(part["thinking"].string_or("")));
    return has_only(part, {"type", "thinking"});
  }
  if (const std::string uri = part["image_url"]["url"].string_or(""); is_uri(uri)) {
    parts.push_back(uri_part(uri));
    return has_only(part, {"type", "image_url"}) && part["image_url"].size() == 1;
  }
  if (part["image_urls"].size() == 0) return false;
  bool all = has_only(part, {"type", "image_urls"});
  for (const json::Value url : part["image_urls"]) {
    const std::string uri = url.string_or("");
    all = all && is_uri(uri);
    if (all) parts.push_back(uri_part(uri));
  }
  return all;
}

// Writes an object without the members that have a place: those beside a text, such as cache_control.
void write_unplaced(json::Writer& out, const json::Value& object, std::initializer_list<std::string_view> placed) {
  out.begin_object();
  for (const json::Value member : object) {
    const std::string key = member.key();
    if (std::find(placed.begin(), placed.end(), key) == placed.end()) write_value(out.key(key), member);
  }
  out.end_object();
}

}  // namespace

std::vector<std::string> content_parts(const json::Value& content, SourceRest& rest) {
  std::vector<std::string> parts;
  if (const auto text = content.as_string()) {
    parts.push_back(text_part_json(*text));
    return parts;
  }
  const bool is_list = content.is(json::Kind::array);
  if (!is_list) {
    rest.keep_value("content", content);
    return parts;
  }
  constexpr std::size_t parts_max = 900;  // below the limit of the schema, with room for reasoning and calls
  json::Writer unplaced;
  unplaced.begin_array();
  bool all = true, is_detail = true;
  for (const json::Value part : content) {
    const std::size_t before = parts.size();
    if (before < parts_max && add_content_part(parts, part)) continue;
    all = false;
    if (parts.size() == before) {
      write_value(unplaced, part);
    } else {
      write_unplaced(unplaced, part, {"text", "thinking"});
    }
    is_detail = is_detail && parts.size() > before && has_only(part, {"type", "text", "thinking", "cache_control"});
  }
  unplaced.end_array();
  if (!all && is_detail) rest.detail_json("content", std::move(unplaced).text());
  if (!all && !is_detail) rest.keep_json("content", std::move(unplaced).text());
  return parts;
}

std::string content_text(const json::Value& content) {
  if (const auto text = content.as_string()) return *text;
  std::string all;
  for (const json::Value part : content) all += part["text"].string_or("");
  return all;
}

std::string arguments_json(const json::Value& arguments) {
  if (!arguments) return {};
  if (const auto text = arguments.as_string()) {
    const auto document = json::parse(*text);
    return document && document->root().is(json::Kind::object) ? value_json(document->root()) : json::quote(*text);
  }
  return value_json(arguments);
}

std::string source_time(const json::Value& value) {
  if (auto text = value.as_string()) {
    if (parse_time(*text)) return *text;
    if (text->size() > 10 && (*text)[10] == ' ') (*text)[10] = 'T';
    if (parse_time(*text)) return *text;
    return parse_time(*text + "Z") ? *text + "Z" : std::string();
  }
  const auto micros = microseconds_of(value);
  constexpr std::int64_t year_2000 = 946'684'800'000'000, year_2100 = 4'102'444'800'000'000;
  if (!micros || *micros < year_2000 || *micros > year_2100) return {};
  return format_time(Time{*micros});
}

std::optional<std::int64_t> microseconds_of(const json::Value& seconds) {
  const auto number = seconds.as_double();
  if (!number || !(*number >= 0) || *number > 1e12) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*number * 1e6));
}

namespace {

// A count is a number, or the text of one.
std::optional<std::int64_t> count_of(const json::Value& value) {
  constexpr std::int64_t tokens_max = 1'000'000'000'000;
  auto tokens = value.as_int();
  if (const auto text = value.as_string()) {
    const auto document = json::parse(std::string_view(*text));
    tokens = document ? document->root().as_int() : std::nullopt;
  }
  return tokens && *tokens >= 0 && *tokens <= tokens_max ? tokens : std::nullopt;
}

std::optional<std::int64_t> first_count(std::initializer_list<json::Value> values) {
  for (const json::Value& value : values) {
    if (const auto count = count_of(value)) return count;
  }
  return std::nullopt;
}

}  // namespace

std::string call_usage(const json::Value& usage, const json::Value& cost) {
  auto input = first_count({usage["prompt_tokens"], usage["input_tokens"]});
  const auto output = first_count({usage["completion_tokens"], usage["output_tokens"]});
  if (!input && !output) return {};
  const auto cached =
      first_count({usage["prompt_tokens_details"]["cached_tokens"], usage["input_tokens_details"]["cached_tokens"],
                   usage["cache_read_tokens"], usage["cache_read_input_tokens"], usage["cached_input_tokens"],
                   usage["cached_tokens"]});
  const auto written = first_count({usage["cache_creation_input_tokens"], usage["cache_write_tokens"],
                                    usage["prompt_tokens_details"]["cache_creation_tokens"]});
  const auto reasoning = first_count({usage["completion_tokens_details"]["reasoning_tokens"],
                                      usage["output_tokens_details"]["reasoning_tokens"], usage["reasoning_tokens"],
                                      usage["reasoning_output_tokens"]});
  // Anthropic counts the tokens of the cache beside input_tokens; all others count them in it.
  const bool is_beside = !usage["prompt_tokens"] && !usage["input_tokens_details"] && usage["cache_read_input_tokens"];
  if (is_beside && input) *input += cached.value_or(0) + written.value_or(0);
  json::Writer out;
  out.begin_object();
  if (input) out.member("input_tokens", *input);
  if (output) out.member("output_tokens", *output);
  if (cached) out.member("cached_input_tokens", *cached);
  if (written) out.member("cache_write_tokens", *written);
  if (reasoning) out.member("reasoning_tokens", *reasoning);
  if (const auto amount = cost.as_double(); amount && *amount >= 0) {
    out.key("cost").begin_object().raw_member("amount", cost.source()).member("currency", "USD").end_object();
  }
  return std::move(out.end_object()).text();
}

void keep_usage_rest(SourceRest& rest, const json::Value& usage) {
  rest.keep(usage,
            {"prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "cache_read_tokens",
             "cache_write_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "reasoning_tokens",
             "cached_input_tokens", "cached_tokens", "reasoning_output_tokens", "prompt_tokens_details",
             "completion_tokens_details", "input_tokens_details", "output_tokens_details"},
            "usage");
  for (const char* name :
       {"prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details"})
    rest.detail(name, usage[name]);
}

std::int64_t tokens_in(const std::string& usage, std::string_view name) {
  const auto document = json::parse(std::string_view(usage));
  return document ? document->root()[name].as_int().value_or(0) : 0;
}

std::string task_heading(std::string_view text) {
  std::size_t begin = std::string_view::npos;
  for (const std::string_view opening : {"<pr_description>", "<issue_description>", "ISSUE:\n"}) {
    const std::size_t at = text.find(opening);
    if (at == std::string_view::npos) continue;
    begin = at + opening.size();
    break;
  }
  if (begin == std::string_view::npos) return std::string(text);
  std::string_view rest = text.substr(begin);
  // Some templates have their own introduction inside the tag.
  constexpr std::string_view introduction = "Consider the following PR description:";
  const std::size_t at = rest.substr(0, rest.find("</pr_description>")).find(introduction);
  if (at != std::string_view::npos) rest.remove_prefix(at + introduction.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t\r\n")));
  rest = rest.substr(0, rest.find('\n'));
  return std::string(rest.substr(0, rest.find_last_not_of(" \t\r") + 1));
}

void StringSet::add(const json::Value& value) {
  if (auto text = value.as_string()) strings_.insert(std::move(*text));
  for (const json::Value item : value) add(item);
}

bool StringSet::has_all(const json::Value& value) const {
  if (const auto text = value.as_string()) return strings_.contains(*text);
  for (const json::Value item : value) {
    if (!has_all(item)) return false;
  }
  return true;
}

bool has_object(const json::Value& list) {
  if (!list.is(json::Kind::array)) return false;
  for (const json::Value item : list) {
    if (item.is(json::Kind::object)) return true;
  }
  return false;
}

std::string label_word(const json::Value& value) {
  if (value.is(json::Kind::number)) return std::string(value.source());
  return value.string_or("");
}

void label_run(ImportedRun& run, const char* name, const json::Value& value) {
  if (std::string word = label_word(value); !word.empty()) run.labels.emplace_back(name, std::move(word));
}

}  // namespace muniment::cli
