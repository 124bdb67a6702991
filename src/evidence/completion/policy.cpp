// Reads policies from TOML. Debian's library throws exceptions; this file catches all of them.
#include "evidence/completion/policy.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/config/toml_depth.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "evidence/completion/checks.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::string_view default_section = "default";
constexpr std::size_t policy_bytes_max = 1 << 20;
constexpr std::size_t sections_max = 256;
constexpr std::size_t list_items_max = 64;
constexpr std::size_t text_bytes_max = 1024;
constexpr std::int64_t seconds_max = 366LL * 24 * 60 * 60;
constexpr std::int64_t limit_ms_max = 600'000;

Error error_at(const toml::node& node, std::string_view path, std::string_view what) {
  return Error(Errc::invalid_argument, fmt::format("policy line {}: {}: {}", node.source().begin.line, path, what));
}

Status read_boolean(const toml::node& node, const std::string& path, bool& into) {
  const auto* value = node.as_boolean();
  if (value == nullptr) return error_at(node, path, "expected true or false");
  into = value->get();
  return success();
}

Status read_text(const toml::node& node, const std::string& path, std::string& into) {
  const auto* value = node.as_string();
  if (value == nullptr || value->get().size() > text_bytes_max) {
    return error_at(node, path, fmt::format("expected a string of at most {} bytes", text_bytes_max));
  }
  into = value->get();
  return success();
}

Result<std::int64_t> whole_number(const toml::node& node, const std::string& path, std::int64_t least,
                                  std::int64_t most) {
  const auto* value = node.as_integer();
  if (value == nullptr || value->get() < least || value->get() > most) {
    return error_at(node, path, fmt::format("expected a whole number from {} to {}", least, most));
  }
  return value->get();
}

Status read_seconds(const toml::node& node, const std::string& path, std::int64_t least, std::chrono::seconds& into) {
  ASSIGN_OR_RETURN(const std::int64_t seconds, whole_number(node, path, least, seconds_max));
  into = std::chrono::seconds(seconds);
  return success();
}

Status read_texts(const toml::node& node, const std::string& path, std::vector<std::string>& into) {
  const toml::array* items = node.as_array();
  if (items == nullptr || items->size() > list_items_max) {
    return error_at(node, path, fmt::format("expected a list of at most {} strings", list_items_max));
  }
  into.clear();
  for (const toml::node& item : *items) {
    std::string text;
    RETURN_IF_ERROR(read_text(item, path, text));
    if (text.empty()) return error_at(item, path, "expected a non-empty string");
    into.push_back(std::move(text));
  }
  return success();
}

// Rejects unknown codes, and codes of findings that cannot be allowed, such as tampering or missing evidence.
Status check_allowed(const toml::node& node, const std::string& path, const std::vector<std::string>& allowed) {
  for (const std::string& name : allowed) {
    const auto known = code_rows();
    const auto row = std::find_if(known.begin(), known.end(), [&](const CodeRow& one) { return one.name == name; });
    if (row == known.end()) return error_at(node, path, fmt::format("\"{}\" is not the code of a finding", name));
    const bool fixed =
        row->code == Code::forged_identity || row->code == Code::forged_record || row->check == "existence" ||
        row->check == "integrity" || (row->check == "dependencies" && row->code != Code::dependency_stale) ||
        row->code == Code::self_reported || row->code == Code::other_workflow || row->code == Code::imported_command;
    if (fixed) return error_at(node, path, fmt::format("\"{}\" cannot be allowed", name));
  }
  return success();
}

Status read_policy_key(std::string_view key, const toml::node& node, const std::string& path, Policy& policy) {
  if (key == "required_type") return read_text(node, path, policy.required_type);
  if (key == "fresh_for_seconds") return read_seconds(node, path, 1, policy.fresh_for);
  if (key == "at_least_seconds") return read_seconds(node, path, 0, policy.at_least);
  if (key == "other_actor") return read_boolean(node, path, policy.other_actor);
  if (key == "same_run") return read_boolean(node, path, policy.same_run);
  if (key == "strict") return read_boolean(node, path, policy.strict);
  if (key == "runners") return read_texts(node, path, policy.runners);
  if (key == "validators") return read_texts(node, path, policy.validators);
  if (key == "text") {
    std::string rule;
    RETURN_IF_ERROR(read_text(node, path, rule));
    if (rule != "refuse" && rule != "weak" && rule != "accept")
      return error_at(node, path, "expected \"refuse\", \"weak\" or \"accept\"");
    policy.text = rule == "refuse" ? TextRule::refuse : rule == "weak" ? TextRule::weak : TextRule::accept;
    return success();
  }
  if (key == "isolation") {
    RETURN_IF_ERROR(read_text(node, path, policy.isolation));
    if (isolation_rank(policy.isolation) == 0) return error_at(node, path, "expected \"partial\" or \"full\"");
    return success();
  }
  if (key == "workflows") {
    RETURN_IF_ERROR(read_texts(node, path, policy.workflows));
    for (const std::string& digest : policy.workflows) {
      if (!hash_from_hex(digest))
        return error_at(node, path, "expected digests that `muniment workflow digest` prints");
    }
    return success();
  }
  if (key == "allow") {
    RETURN_IF_ERROR(read_texts(node, path, policy.allowed));
    return check_allowed(node, path, policy.allowed);
  }
  return error_at(
      node, path,
      "unknown key; expected required_type, fresh_for_seconds, at_least_seconds, other_actor, same_run, strict, "
      "isolation, workflows, allow, runners, validators, text");
}

Status read_policy(const toml::table& table, const std::string& path, Policy& policy) {
  for (const auto& [key, node] : table) {
    RETURN_IF_ERROR(read_policy_key(key.str(), node, path + "." + std::string(key.str()), policy));
  }
  return success();
}

Result<Validator> read_validator(const toml::table& table, const std::string& path, std::string name) {
  Validator validator;
  validator.name = std::move(name);
  for (const auto& [key, node] : table) {
    const std::string member = path + "." + std::string(key.str());
    if (key.str() == "command") {
      RETURN_IF_ERROR(read_texts(node, member, validator.argv));
    } else if (key.str() == "limit_ms") {
      ASSIGN_OR_RETURN(const std::int64_t limit, whole_number(node, member, 1, limit_ms_max));
      validator.limit = std::chrono::milliseconds(limit);
    } else {
      return error_at(node, member, "unknown key; expected command, limit_ms");
    }
  }
  if (validator.argv.empty() || validator.argv[0][0] != '/') {
    return error_at(table, path + ".command", "expected a list that begins with an absolute path");
  }
  return validator;
}

Result<const toml::table*> table_of(const toml::node& node, const std::string& path) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return error_at(node, path, "expected a table");
  if (table->size() > sections_max) return error_at(node, path, fmt::format("at most {} sections", sections_max));
  return table;
}

}  // namespace

bool Policy::demands_evidence() const {
  return strict || text == TextRule::refuse || !required_type.empty() || fresh_for < Policy().fresh_for ||
         other_actor || same_run || !isolation.empty() || !validators.empty();
}

int isolation_rank(std::string_view level) { return level == "full" ? 2 : level == "partial" ? 1 : 0; }

Result<Policies> Policies::read(const std::string& path) {
  if (path.empty()) return Policies();
  auto text = read_trusted(path, policy_bytes_max);
  if (!text) return std::move(text).error().within("completion_policy");
  auto policies = parse(*text);
  if (!policies) return std::move(policies).error().within("completion_policy " + path);
  return policies;
}

Policies::Policies() { by_type_.emplace(default_section, Policy{}); }

Result<Policies> Policies::parse(std::string_view text) {
  if (text.size() > policy_bytes_max) {
    return Error(Errc::too_large, fmt::format("the policy is {} bytes, limit {}", text.size(), policy_bytes_max));
  }
  if (Status shallow = check_toml_depth(text); !shallow) return std::move(shallow).error().within("policy");
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& failure) {
    const toml::source_position at = failure.source().begin;
    return Error(Errc::invalid_argument, fmt::format("policy line {}: {}", at.line, failure.description()));
  }
  Policies made;
  Policy& base = made.by_type_.find(default_section)->second;
  const toml::table* tasks = nullptr;
  for (const auto& [key, node] : root) {
    const std::string name(key.str());
    if (name == "policy") {
      std::string which;
      RETURN_IF_ERROR(read_text(node, name, which));
      if (which != "default" && which != "strict") return error_at(node, name, "expected \"default\" or \"strict\"");
      base.strict = which == "strict";
    } else if (name == "task") {
      ASSIGN_OR_RETURN(tasks, table_of(node, name));
    } else if (name == "validator") {
      ASSIGN_OR_RETURN(const toml::table* const validators, table_of(node, name));
      for (const auto& [validator, entry] : *validators) {
        const std::string path = "validator." + std::string(validator.str());
        ASSIGN_OR_RETURN(const toml::table* const table, table_of(entry, path));
        ASSIGN_OR_RETURN(Validator one, read_validator(*table, path, std::string(validator.str())));
        made.validators_.emplace(std::string(validator.str()), std::move(one));
      }
    } else {
      return error_at(node, name, "unknown key; expected policy, task, validator");
    }
  }
  if (tasks != nullptr) RETURN_IF_ERROR(made.read_tasks(tasks));
  return made;
}

// Reads the default section first, because the others inherit from it. `tasks` is a toml::table, a type that the header
// must not name.
Status Policies::read_tasks(const void* tasks) {
  const auto& sections = *static_cast<const toml::table*>(tasks);
  Policy& base = by_type_.find(default_section)->second;
  if (const toml::node* node = sections.get(default_section)) {
    ASSIGN_OR_RETURN(const toml::table* const table, table_of(*node, "task.default"));
    RETURN_IF_ERROR(read_policy(*table, "task.default", base));
  }
  for (const auto& [type, node] : sections) {
    if (type.str() == default_section) continue;
    const std::string path = "task." + std::string(type.str());
    ASSIGN_OR_RETURN(const toml::table* const table, table_of(node, path));
    Policy policy = base;
    RETURN_IF_ERROR(read_policy(*table, path, policy));
    by_type_.emplace(std::string(type.str()), std::move(policy));
  }
  for (const auto& [type, policy] : by_type_) {
    for (const std::string& name : policy.validators) {
      if (validators_.contains(name)) continue;
      const toml::node* const node = sections.get(type);
      const std::string path = "task." + type + ".validators";
      const std::string what = fmt::format("no section [validator.{}]", name);
      return node != nullptr ? error_at(*node, path, what)
                             : Error(Errc::invalid_argument, "policy: " + path + ": " + what);
    }
  }
  return success();
}

Policy Policies::of_type(std::string_view task_type, bool strict) const {
  auto found = by_type_.find(task_type);
  if (found == by_type_.end()) found = by_type_.find(default_section);
  Policy policy = found->second;
  policy.strict = policy.strict || strict;
  return policy;
}

const Validator* Policies::validator(std::string_view name) const {
  const auto found = validators_.find(name);
  return found == validators_.end() ? nullptr : &found->second;
}

}  // namespace muniment::evidence::completion
