#include "adapters/import/otlp/otlp_conventional.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "adapters/import/events.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t spread_levels_max = 16;  // deeper names remain one name

// Orders indexes by number, before names.
struct ByIndex {
  static bool is_index(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  bool operator()(const std::string& a, const std::string& b) const {
    const bool a_index = is_index(a), b_index = is_index(b);
    if (a_index != b_index) return a_index;
    if (a_index && a.size() != b.size()) return a.size() < b.size();
    return a < b;
  }
};

// The tree of a list that is spread over attributes.
struct Spread {
  std::map<std::string, std::unique_ptr<Spread>, ByIndex> parts;
  json::Value value;

  void put(std::string_view path, const json::Value& any);
  void write(json::Writer& out) const;
};

// OpenInference names the type of each item after its index: "0.message.role".
bool is_item_type(std::string_view name) {
  return name == "message" || name == "tool_call" || name == "message_content" || name == "prompt" ||
         name == "completion" || name == "tool";
}

void Spread::put(std::string_view path, const json::Value& any) {
  Spread* at = this;
  bool after_index = false;
  for (std::size_t level = 0; !path.empty(); ++level) {
    const std::size_t dot = level < spread_levels_max ? path.find('.') : std::string_view::npos;
    const std::string_view name = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const bool is_type = after_index && !path.empty() && is_item_type(name);
    after_index = ByIndex::is_index(name);
    if (is_type) continue;
    std::unique_ptr<Spread>& next = at->parts[std::string(name)];
    if (!next) next = std::make_unique<Spread>();
    at = next.get();
  }
  at->value = any;
}

void Spread::write(json::Writer& out) const {
  if (parts.empty()) return write_any(out, value);
  const bool is_list =
      !value && std::all_of(parts.begin(), parts.end(), [](const auto& part) { return ByIndex::is_index(part.first); });
  if (is_list) {
    out.begin_array();
    for (const auto& [name, part] : parts) part->write(out);
    out.end_array();
    return;
  }
  out.begin_object();
  for (const auto& [name, part] : parts) part->write(out.key(name));
  if (value && !parts.contains("value")) write_any(out.key("value"), value);
  out.end_object();
}

struct SpanAttribute {
  std::string name;
  json::Value value;
  json::Value whole;      // the original list element; absent if the attribute was created here
  std::string made = {};  // JSON of a created value
};

class SpanRewriter {
 public:
  SpanRewriter(const json::Value& span, OtlpKind kind) : span_(span), kind_(kind) {
    for (const json::Value pair : span["attributes"]) {
      // Anything but a plain attribute remains as it is.
      push({pair.size() == 2 ? pair["key"].string_or("") : std::string(), pair["value"], pair});
    }
  }

  std::optional<std::string> run(std::span<OtlpDetails> details) {
    if (!span_["attributes"].is(json::Kind::array) && span_["attributes"].present()) return std::nullopt;
    take_details(details);
    if (kind_ == OtlpKind::model || kind_ == OtlpKind::tool || kind_ == OtlpKind::agent) {
      join_spread();
      join_answer();
      rename();
      name_operation();
      name_agent();
      take_parameters();
    }
    if (!changed_) return std::nullopt;
    return text();
  }

 private:
  bool has(std::string_view name) const { return index_.contains(std::string(name)); }
  const SpanAttribute* find(std::string_view name) const {
    const auto found = index_.find(std::string(name));
    return found == index_.end() ? nullptr : &attributes_[found->second];
  }
  void push(SpanAttribute attribute) {
    if (!attribute.name.empty()) index_.emplace(attribute.name, attributes_.size());
    attributes_.push_back(std::move(attribute));
  }
  void add(std::string_view name, std::string any) {
    push({std::string(name), {}, {}, std::move(any)});
    changed_ = true;
  }
  template <typename Wanted>
  void erase(const Wanted& wanted) {
    std::vector<SpanAttribute> kept;
    for (SpanAttribute& one : attributes_) {
      if (!wanted(one)) kept.push_back(std::move(one));
    }
    attributes_.clear();
    index_.clear();
    for (SpanAttribute& one : kept) push(std::move(one));
  }
  void add_text(std::string_view name, std::string_view text) {
    json::Writer any;
    any.begin_object().member("stringValue", text).end_object();
    add(name, std::move(any).text());
  }

  void take_details(std::span<OtlpDetails> logs) {
    if (kind_ != OtlpKind::model) return;
    for (OtlpDetails& log : logs) take_from(log.attributes, log.moved);
    for (const json::Value event : span_["events"]) {
      if (event["name"].string_or("") != otlp_details_event) continue;
      OtlpDetails& details = events_.emplace_back(OtlpDetails{event["attributes"]});
      take_from(details.attributes, details.moved);
      changed_ = changed_ || !details.moved.empty();
    }
  }

  void take_from(const json::Value& list, std::set<std::string>& moved) {
    for (const json::Value pair : list) {
      const std::string name = pair["key"].string_or("");
      if (!name.starts_with("gen_ai.") || pair.size() != 2 || moved.contains(name)) continue;
      const SpanAttribute* const known = find(name);
      if (known != nullptr && any_json(known->value) != any_json(pair["value"])) continue;
      moved.insert(name);
      if (known != nullptr) continue;
      push({name, pair["value"], pair});
      changed_ = true;
    }
  }

  // Joins the items of each spread list into one attribute, unless the span has the whole list.
  void join_spread() {
    std::map<std::string_view, std::map<std::size_t, Spread>> lists;
    for (const SpanAttribute& one : attributes_) {
      const OtlpSpread spread = otlp_spread(one.name);
      if (!spread.attribute.empty() && !has(spread.attribute))
        lists[spread.attribute][spread.rank].put(spread.path, one.value);
    }
    for (const auto& [attribute, ranks] : lists) {
      json::Writer list;
      ranks.begin()->second.write(list);
      erase([&, name = attribute, rank = ranks.begin()->first](const SpanAttribute& one) {
        const OtlpSpread spread = otlp_spread(one.name);
        return spread.attribute == name && spread.rank == rank;
      });
      add_text(attribute, list.text());
    }
  }

  // The AI SDK of Vercel records the parts of an answer in attributes of their own.
  void join_answer() {
    constexpr std::string_view parts[][2] = {{"ai.response.reasoning", "reasoning"},
                                             {"ai.response.text", "content"},
                                             {"ai.response.object", "content"},
                                             {"ai.response.toolCalls", "tool_calls"}};
    if (has(otlp_output_messages)) return;
    json::Writer message;
    message.begin_array().begin_object().member("role", "assistant");
    std::vector<std::string_view> joined;
    bool has_content = false;
    for (const auto& [name, member] : parts) {
      const SpanAttribute* const one = find(name);
      if (one == nullptr || (member == "content" && has_content)) continue;
      has_content = has_content || member == "content";
      const std::string text = any_text(one->value);
      const auto calls = json::parse(text);
      if (member == "tool_calls" && (!calls || !calls->root().is(json::Kind::array))) continue;
      joined.push_back(name);
      if (member != "tool_calls")
        message.member(member, text);
      else
        write_value(message.key(member), calls->root());
    }
    if (joined.empty()) return;
    erase([&](const SpanAttribute& one) { return std::ranges::find(joined, one.name) != joined.end(); });
    add_text(otlp_output_messages, message.end_object().end_array().text());
  }

  void rename() {
    std::map<std::string_view, std::pair<std::size_t, std::size_t>> best;  // attribute → rank and index
    for (std::size_t i = 0; i < attributes_.size(); ++i) {
      const OtlpMeaning meaning = otlp_meaning(attributes_[i].name, kind_);
      if (meaning.attribute.empty() || any_text(attributes_[i].value).empty()) continue;
      const auto [known, is_new] = best.emplace(meaning.attribute, std::pair(meaning.rank, i));
      if (!is_new) known->second = std::min(known->second, std::pair(meaning.rank, i));
    }
    for (const auto& [attribute, place] : best) {
      if (has(attribute)) continue;
      SpanAttribute& one = attributes_[place.second];
      index_.erase(one.name);
      one.name = attribute;
      one.whole = {};
      index_.emplace(one.name, place.second);
      changed_ = true;
    }
  }

  void name_operation() {
    const std::string operation = otlp_operation(OtlpAttributes(span_["attributes"]));
    const SpanAttribute* const said = find("gen_ai.operation.name");
    if (said == nullptr && !operation.empty()) add_text("gen_ai.operation.name", operation);
  }

  // The conventions name an agent in an attribute, OpenInference and Traceloop in the name of its span.
  void name_agent() {
    const bool is_foreign = has("openinference.span.kind") || has("traceloop.span.kind");
    if (kind_ != OtlpKind::agent || !is_foreign || has("gen_ai.agent.name")) return;
    if (const std::string name = span_["name"].string_or(""); !name.empty()) add_text("gen_ai.agent.name", name);
  }

  // OpenInference holds the parameters of a request as JSON in one attribute.
  void take_parameters() {
    const SpanAttribute* const one = find("llm.invocation_parameters");
    if (kind_ != OtlpKind::model || one == nullptr) return;
    const std::string text = any_text(one->value);
    const auto document = json::parse(text);
    if (!document || !document->root().is(json::Kind::object)) return;
    for (const json::Value member : document->root()) {
      const std::string name = "gen_ai.request." + member.key();
      json::Writer any;
      any.begin_object();
      if (member.is(json::Kind::number)) {
        any.raw_member(member.as_int() ? "intValue" : "doubleValue", member.source());
      } else if (member.is(json::Kind::boolean)) {
        any.raw_member("boolValue", member.source());
      } else if (const auto words = member.as_string()) {
        any.member("stringValue", *words);
      } else {
        continue;  // it remains in the attribute
      }
      if (!has(name)) add(name, std::move(any.end_object()).text());
    }
  }

  std::string text() const {
    json::Writer out;
    out.begin_object();
    for (const json::Value member : span_) {
      const std::string key = member.key();
      if (key == "attributes") continue;
      if (key == "events" && !events_.empty())
        write_events(out.key(key), member);
      else
        out.key(key).raw(one_line_json(member));
    }
    out.key("attributes").begin_array();
    for (const SpanAttribute& one : attributes_) {
      if (one.whole) {
        out.raw(one_line_json(one.whole));
        continue;
      }
      out.begin_object().member("key", one.name).key("value");
      out.raw(one.made.empty() ? one_line_json(one.value) : one.made).end_object();
    }
    return std::move(out.end_array().end_object()).text();
  }

  void write_events(json::Writer& out, const json::Value& events) const {
    std::size_t index = 0;
    out.begin_array();
    for (const json::Value event : events) {
      if (event["name"].string_or("") != otlp_details_event) {
        out.raw(one_line_json(event));
        continue;
      }
      const std::set<std::string>& moved = events_[index++].moved;
      out.begin_object();
      for (const json::Value member : event) {
        if (member.key() != "attributes") {
          out.key(member.key()).raw(one_line_json(member));
          continue;
        }
        out.key("attributes").begin_array();
        for (const json::Value pair : member) {
          if (!moved.contains(pair["key"].string_or(""))) out.raw(one_line_json(pair));
        }
        out.end_array();
      }
      out.end_object();
    }
    out.end_array();
  }

  const json::Value span_;
  const OtlpKind kind_;
  std::vector<SpanAttribute> attributes_;
  std::unordered_map<std::string, std::size_t> index_;  // first attribute of each name
  std::vector<OtlpDetails> events_;                     // details events of the span, in order
  bool changed_ = false;
};

}  // namespace

std::optional<std::string> otlp_conventional(const json::Value& span, OtlpKind kind, std::span<OtlpDetails> details) {
  return SpanRewriter(span, kind).run(details);
}

}  // namespace muniment::cli
