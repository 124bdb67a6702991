// Parses TOML; no other file does. Values are passed on as text, so that the same rules apply to flags, the environment
// and the file. Exceptions of Debian's library are caught here.
#include <toml++/toml.h>

#include <fmt/format.h>

#include <cmath>

#include "base/config/config.hpp"
#include "base/config/toml_depth.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment {
namespace {

Result<std::string> text_of_node(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  if (const auto* items = node.as_array()) {
    std::string joined;
    for (const toml::node& item : *items) {
      if (item.is_array()) break;
      ASSIGN_OR_RETURN(std::string text, text_of_node(item));
      joined += joined.empty() ? text : "," + text;
    }
    return joined;
  }
  return Error(Errc::invalid_argument, "the value must be a text, a whole number, true, false or a list");
}

// Formats a list as JSON, as it is written outside TOML, so that one rule parses both.
Result<std::string> json_of_list(const toml::array& items) {
  json::Writer list;
  list.begin_array();
  for (const toml::node& item : items) {
    const auto* text = item.as_string();
    if (text == nullptr) return Error(Errc::invalid_argument, "a list of texts must hold only texts");
    list.string(text->get());
  }
  return std::move(list.end_array()).text();
}

// Texts, finite numbers and lists of texts keep their value. Any other value becomes null, which the reader of the
// setting refuses with the name of its table.
void write_value(json::Writer& out, const toml::node& node) {
  if (const auto* text = node.as_string()) {
    out.string(text->get());
  } else if (const auto number = node.value<double>(); number && node.is_number() && std::isfinite(*number)) {
    out.raw(fmt::format("{}", *number));
  } else if (const toml::array* const items = node.as_array()) {
    const auto list = json_of_list(*items);
    out.raw(list ? *list : "null");
  } else {
    out.null();
  }
}

std::string json_of_tables(const toml::table& tables) {
  json::Writer out;
  out.begin_object();
  for (const auto& [name, node] : tables) {
    out.key(name.str());
    const toml::table* const members = node.as_table();
    if (members == nullptr) {
      out.null();
      continue;
    }
    out.begin_object();
    for (const auto& [key, value] : *members) {
      out.key(key.str());
      write_value(out, value);
    }
    out.end_object();
  }
  return std::move(out.end_object()).text();
}

Result<std::string> text_of_entry(std::string_view key, const toml::node& node) {
  if (const toml::array* const list = is_list_of_texts(key) ? node.as_array() : nullptr) return json_of_list(*list);
  if (const toml::table* const tables = is_table_of_tables(key) ? node.as_table() : nullptr)
    return json_of_tables(*tables);
  return text_of_node(node);
}

}  // namespace

Status read_config_file(const std::string& path,
                        const std::function<void(std::string_view, Result<std::string>)>& take) {
  const auto text = read_input(path, limits::config_file_bytes_max);
  if (!text) {
    Error error = text.error();
    if (is_halting(error.code)) error.code = Errc::invalid_argument;  // an error in the configuration never halts a run
    return std::move(error).within("the configuration file");
  }
  if (const Status shallow = check_toml_depth(*text); !shallow)
    return Error(shallow.error().code, path + ": " + shallow.error().message);
  try {
    const toml::table parsed = toml::parse(*text, path);
    for (const auto& [key, node] : parsed) {
      take(key.str(), text_of_entry(key.str(), node));
    }
    return success();
  } catch (const toml::parse_error& failure) {
    const toml::source_position at = failure.source().begin;
    return Error(Errc::invalid_argument, fmt::format("{}:{}:{}: {}", path, at.line, at.column, failure.description()));
  }
}

}  // namespace muniment
