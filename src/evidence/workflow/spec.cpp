// Reads a specification from TOML. Debian's library throws exceptions; this file catches all of them.
#include "evidence/workflow/spec.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/config/toml_depth.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"

namespace muniment::evidence::workflow {
namespace {

constexpr std::size_t list_items_max = 256;
constexpr std::size_t text_bytes_max = 4096;
constexpr std::int64_t seconds_max = 24 * 60 * 60;
constexpr std::int64_t size_bytes_max = std::int64_t{1} << 40;
constexpr std::array<std::string_view, 3> levels{"none", "partial", "full"};

constexpr std::array<std::string_view, 7> top_names{"task",    "spec_writer", "coder",      "tester",
                                                    "compare", "isolation",   "environment"};
constexpr std::array<std::string_view, 6> step_names{"command",      "reads",      "seconds",
                                                     "output_bytes", "disk_bytes", "memory_bytes"};
constexpr std::array<std::string_view, 8> coder_names{"command",    "reads",        "seconds", "output_bytes",
                                                      "disk_bytes", "memory_bytes", "network", "start"};

Error error_at(const toml::node& node, std::string_view path, std::string_view what) {
  return Error(Errc::invalid_argument, fmt::format("line {}: {}: {}", node.source().begin.line, path, what));
}

Error unknown_member(const toml::node& node, const std::string& path, std::string_view name,
                     std::span<const std::string_view> names) {
  const std::string_view near = nearest(name, names);
  std::string what = "unknown member.";
  if (!near.empty()) what += fmt::format(" Did you mean \"{}\"?", near);
  return error_at(node, path, fmt::format("{} Expected {}", what, joined(names, ", ")));
}

Status read_text(const toml::node& node, std::string_view path, std::size_t bytes_max, std::string& into) {
  const auto* value = node.as_string();
  if (value == nullptr || value->get().empty() || value->get().size() > bytes_max ||
      value->get().find('\0') != std::string::npos)
    return error_at(node, path, fmt::format("expected a string of 1 to {} bytes without NUL", bytes_max));
  into = value->get();
  return success();
}

Status read_texts(const toml::node& node, std::string_view path, std::vector<std::string>& into) {
  const toml::array* items = node.as_array();
  if (items == nullptr || items->size() > list_items_max)
    return error_at(node, path, fmt::format("expected a list of at most {} strings", list_items_max));
  for (const toml::node& item : *items) {
    const auto* value = item.as_string();
    if (value == nullptr || value->get().size() > text_bytes_max || value->get().find('\0') != std::string::npos)
      return error_at(item, path, fmt::format("expected a string of at most {} bytes without NUL", text_bytes_max));
    into.push_back(value->get());
  }
  return success();
}

Status read_number(const toml::node& node, std::string_view path, std::int64_t most, std::int64_t& into) {
  const auto* value = node.as_integer();
  if (value == nullptr || value->get() < 1 || value->get() > most)
    return error_at(node, path, fmt::format("expected a whole number from 1 to {}", most));
  into = value->get();
  return success();
}

Status read_step(const toml::node& node, const std::string& name, Step& step, Spec* coder) {
  const toml::table* table = node.as_table();
  if (table == nullptr)
    return error_at(node, name, fmt::format("expected a table: [{}] with command = [\"PROGRAM\", …]", name));
  for (const auto& [key, member] : *table) {
    const std::string_view word = key.str();
    const std::string path = name + "." + std::string(word);
    if (word == "command") {
      RETURN_IF_ERROR(read_texts(member, path, step.command));
    } else if (word == "reads") {
      RETURN_IF_ERROR(read_texts(member, path, step.reads));
    } else if (word == "seconds") {
      RETURN_IF_ERROR(read_number(member, path, seconds_max, step.limits.seconds));
    } else if (word == "output_bytes") {
      RETURN_IF_ERROR(read_number(member, path, size_bytes_max, step.limits.output_bytes));
    } else if (word == "disk_bytes") {
      RETURN_IF_ERROR(read_number(member, path, size_bytes_max, step.limits.disk_bytes));
    } else if (word == "memory_bytes") {
      RETURN_IF_ERROR(read_number(member, path, size_bytes_max, step.limits.memory_bytes));
    } else if (coder != nullptr && word == "network") {
      const auto* value = member.as_boolean();
      if (value == nullptr) return error_at(member, path, "expected true or false");
      coder->network = value->get();
    } else if (coder != nullptr && word == "start") {
      RETURN_IF_ERROR(read_text(member, path, text_bytes_max, coder->start));
    } else {
      return unknown_member(member, path, word,
                            coder != nullptr ? std::span<const std::string_view>(coder_names) : step_names);
    }
  }
  if (step.command.empty() || step.command.front().empty())
    return error_at(node, name + ".command", "expected a list that begins with a program");
  return success();
}

Status check_relative(const toml::node& node, const std::string& path, std::string_view file) {
  if (const Status beneath = check_beneath(file); !beneath)
    return error_at(node, path, "expected a relative path without \".\" and \"..\"");
  return success();
}

Status read_pairs(const toml::node& node, Spec& spec) {
  const toml::table* table = node.as_table();
  if (table == nullptr || table->empty() || table->size() > pairs_max)
    return error_at(
        node, "compare",
        fmt::format("expected a table of 1 to {} pairs: \"GOLDEN FILE\" = \"OUTPUT FILE\" or \"stdout\"", pairs_max));
  for (const auto& [key, member] : *table) {
    Pair pair{std::string(key.str()), {}};
    const std::string path = "compare." + pair.golden;
    if (pair.golden.size() > name_bytes_max)
      return error_at(member, "compare", fmt::format("expected a path of at most {} bytes", name_bytes_max));
    RETURN_IF_ERROR(check_relative(member, path, pair.golden));
    RETURN_IF_ERROR(read_text(member, path, name_bytes_max, pair.output));
    RETURN_IF_ERROR(check_relative(member, path, pair.output));
    spec.compare.push_back(std::move(pair));
  }
  return success();
}

Status read_isolation(const toml::node& node, Spec& spec) {
  std::string level;
  RETURN_IF_ERROR(read_text(node, "isolation", text_bytes_max, level));
  if (std::find(levels.begin(), levels.end(), level) == levels.end())
    return error_at(node, "isolation", "expected \"" + joined(levels, "\", \"") + "\"");
  spec.isolation = level;
  return success();
}

Status read_environment(const toml::node& node, Spec& spec) {
  RETURN_IF_ERROR(read_texts(node, "environment", spec.environment));
  for (const std::string& name : spec.environment) {
    if (is_withheld(name) || name.empty() || name.find('=') != std::string::npos)
      return error_at(node, "environment",
                      fmt::format("\"{}\" is never passed on: expected names of variables that do not begin with "
                                  "GOLDEN, MUNIMENT or LD_",
                                  name));
  }
  return success();
}

Status read_member(std::string_view name, const toml::node& node, Spec& spec) {
  if (name == "task") return read_text(node, name, task_bytes_max, spec.task);
  if (name == "spec_writer") return read_step(node, "spec_writer", spec.spec_writer, nullptr);
  if (name == "coder") return read_step(node, "coder", spec.coder, &spec);
  if (name == "tester") return read_step(node, "tester", spec.tester, nullptr);
  if (name == "compare") return read_pairs(node, spec);
  if (name == "isolation") return read_isolation(node, spec);
  if (name == "environment") return read_environment(node, spec);
  return unknown_member(node, std::string(name), name, top_names);
}

}  // namespace

Result<Spec> parse_spec(std::string_view text, std::string_view task) {
  if (text.size() > spec_bytes_max)
    return Error(Errc::too_large, fmt::format("the specification is {} bytes, limit {}", text.size(), spec_bytes_max));
  RETURN_IF_ERROR(check_toml_depth(text));
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& failure) {
    return Error(Errc::invalid_argument,
                 fmt::format("line {}: {}", failure.source().begin.line, failure.description()));
  }
  Spec spec;
  for (const auto& [key, node] : root) RETURN_IF_ERROR(read_member(key.str(), node, spec));
  for (const std::string_view name : {"spec_writer", "coder", "tester"}) {
    if (!root.contains(name))
      return Error(Errc::invalid_argument,
                   fmt::format("[{}] is missing. Add it with command = [\"PROGRAM\", …]", name));
  }
  if (!task.empty()) spec.task = task;
  if (spec.task.empty() || spec.task.size() > task_bytes_max)
    return Error(Errc::invalid_argument, "task is missing. Add the text of the task: task = \"…\"");
  if (spec.compare.empty())
    return Error(Errc::invalid_argument,
                 "[compare] is missing. Add the pairs to compare: \"GOLDEN FILE\" = \"OUTPUT FILE\" or \"stdout\"");
  return spec;
}

bool is_withheld(std::string_view variable) {
  return variable.starts_with("GOLDEN") || variable.starts_with("MUNIMENT") || variable.starts_with("LD_");
}

}  // namespace muniment::evidence::workflow
