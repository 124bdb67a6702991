#include "base/config/command_tree.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include "base/json/json.hpp"

namespace muniment {
namespace {

// CLI11 encodes the permitted values in the type's name: "TEXT:{block,stop}", "INT:INT in [1 - 64]".
void write_value(json::Writer& out, const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool flag = option.get_items_expected_max() == 0;
  const std::size_t colon = type.find(':');
  const std::string_view rule =
      colon == std::string::npos ? std::string_view() : std::string_view(type).substr(colon + 1);
  out.member("value", flag ? std::string_view() : std::string_view(type).substr(0, colon));
  out.key("choices").begin_array();
  std::string_view words =
      rule.starts_with('{') && rule.ends_with('}') ? rule.substr(1, rule.size() - 2) : std::string_view();
  while (!words.empty()) {
    const std::size_t comma = words.find(',');
    out.string(words.substr(0, comma));
    words = comma == std::string_view::npos ? std::string_view() : words.substr(comma + 1);
  }
  out.end_array();
  const std::size_t bounds = rule.find("in [");
  out.member("bounds",
             bounds == std::string_view::npos ? std::string_view() : rule.substr(bounds + 4, rule.size() - bounds - 5));
}

void write_option(json::Writer& out, const CLI::Option& option) {
  out.begin_object().key("names").begin_array();
  for (const std::string& name : option.get_snames()) out.string("-" + name);
  for (const std::string& name : option.get_lnames()) out.string("--" + name);
  out.end_array();
  out.member("positional", option.get_positional() ? option.get_name(true, false) : std::string());
  out.member("text", option.get_description());
  write_value(out, option);
  out.member("default", option.get_default_str()).member("required", option.get_required());
  out.member("many", option.get_items_expected_max() > 1).end_object();
}

// `others`: the trees of programs that have some of the commands.
void write_command(json::Writer& out, const CLI::App& app, std::span<const json::Document> others) {
  out.begin_object().member("name", app.get_name()).member("text", app.get_description());
  out.key("options").begin_array();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty() && option != app.get_help_ptr()) write_option(out, *option);
  }
  out.end_array().key("commands").begin_array();
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    json::Value there;
    for (const json::Document& other : others) {
      for (const json::Value one : other.root()["commands"]) {
        if (one["name"].string_or("") == command->get_name()) there = one;
      }
    }
    if (there) {
      out.raw(there.source());
    } else {
      write_command(out, *command, {});
    }
  }
  out.end_array().end_object();
}

}  // namespace

void offer_command_tree(CLI::App& app, std::function<std::vector<std::string>()> others) {
  const auto print = [&app, others = std::move(others)] {
    const std::vector<std::string> texts = others ? others() : std::vector<std::string>();
    std::vector<json::Document> trees;
    for (const std::string& text : texts) {
      if (auto tree = json::parse(text)) trees.push_back(*std::move(tree));
    }
    json::Writer out;
    write_command(out, app, trees);
    std::puts(std::move(out).text().c_str());
    throw CLI::Success();
  };
  app.add_flag_callback("--command-tree", print)->group("");
}

}  // namespace muniment
