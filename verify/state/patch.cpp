#include "verify/state/patch.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace muniment::verify {
namespace {

// Source: docs/format.md, Working.
constexpr std::size_t working_bytes_max = 4'194'304;
constexpr std::size_t working_levels_max = 60;

using Tokens = std::vector<std::string>;

void merge(Changeable& target, const Changeable& patch) {
  if (patch.kind != json::Kind::object) {
    target = patch;
    return;
  }
  if (target.kind != json::Kind::object) target = Changeable::object();
  for (const auto& [name, value] : patch.members) {
    if (value.kind == json::Kind::null) {
      target.members.erase(name);
    } else {
      merge(target.members[name], value);
    }
  }
}

// Parses a pointer of RFC 6901; nullopt if it is malformed.
std::optional<Tokens> tokens_of(const json::Value& pointer) {
  if (!pointer.is(json::Kind::string)) return std::nullopt;
  const std::string text = pointer.string_or("");
  Tokens tokens;
  if (text.empty()) return tokens;
  if (text[0] != '/') return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') {
      tokens.emplace_back();
    } else if (text[i] != '~') {
      tokens.back() += text[i];
    } else if (i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
      tokens.back() += text[++i] == '0' ? '~' : '/';
    } else {
      return std::nullopt;
    }
  }
  return tokens;
}

// Parses an index in 0 … last.
std::optional<std::size_t> index_of(const std::string& token, std::size_t last) {
  if (token.empty() || token.size() > 18 || (token[0] == '0' && token.size() > 1)) return std::nullopt;
  if (token.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  std::size_t index = 0;
  std::from_chars(token.data(), token.data() + token.size(), index);
  if (index > last) return std::nullopt;
  return index;
}

Changeable* find(Changeable& document, const Tokens& tokens, std::size_t count) {
  Changeable* at = &document;
  for (std::size_t i = 0; i < count; ++i) {
    if (at->kind == json::Kind::object) {
      const auto member = at->members.find(tokens[i]);
      if (member == at->members.end()) return nullptr;
      at = &member->second;
    } else if (at->kind == json::Kind::array && !at->items.empty()) {
      const auto index = index_of(tokens[i], at->items.size() - 1);
      if (!index) return nullptr;
      at = &at->items[*index];
    } else {
      return nullptr;
    }
  }
  return at;
}

Changeable* find(Changeable& document, const Tokens& tokens) { return find(document, tokens, tokens.size()); }

bool put(Changeable& document, const Tokens& tokens, Changeable value) {
  if (tokens.size() + value.levels() > working_levels_max) return false;
  if (tokens.empty()) {
    document = std::move(value);
    return true;
  }
  Changeable* const parent = find(document, tokens, tokens.size() - 1);
  if (parent == nullptr) return false;
  if (parent->kind == json::Kind::object) {
    parent->members.insert_or_assign(tokens.back(), std::move(value));
    return true;
  }
  if (parent->kind != json::Kind::array) return false;
  const auto end = parent->items.size();
  const auto index = tokens.back() == "-" ? std::optional(end) : index_of(tokens.back(), end);
  if (!index) return false;
  parent->items.insert(parent->items.begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
  return true;
}

// Removes a value and returns it. The whole document cannot be removed.
std::optional<Changeable> take(Changeable& document, const Tokens& tokens) {
  Changeable* const value = tokens.empty() ? nullptr : find(document, tokens);
  if (value == nullptr) return std::nullopt;
  Changeable taken = std::move(*value);
  Changeable* const parent = find(document, tokens, tokens.size() - 1);
  if (parent->kind == json::Kind::object) {
    parent->members.erase(tokens.back());
  } else {
    const std::size_t index = *index_of(tokens.back(), parent->items.size() - 1);
    parent->items.erase(parent->items.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return taken;
}

bool replace(Changeable& document, const Tokens& path, Changeable value) {
  if (path.size() + value.levels() > working_levels_max) return false;
  Changeable* const place = find(document, path);
  if (place == nullptr) return false;
  *place = std::move(value);
  return true;
}

bool copy(Changeable& document, const Tokens& from, const Tokens& path, std::size_t& copied) {
  const Changeable* const source = find(document, from);
  if (source == nullptr) return false;
  copied += source->canonical().size();
  return copied <= working_bytes_max && put(document, path, *source);
}

bool move(Changeable& document, const Tokens& from, const Tokens& path) {
  if (find(document, from) == nullptr) return false;
  if (from == path) return true;
  const bool inside = path.size() > from.size() && std::equal(from.begin(), from.end(), path.begin());
  if (inside) return false;
  auto taken = take(document, from);
  return taken && put(document, path, *std::move(taken));
}

bool apply_operation(Changeable& document, const json::Value& operation, std::size_t& copied) {
  const auto name = operation["op"].as_string();
  const auto path = tokens_of(operation["path"]);
  if (!name || !path) return false;
  if (*name == "remove") return take(document, *path).has_value();
  if (*name == "copy" || *name == "move") {
    const auto from = tokens_of(operation["from"]);
    if (!from) return false;
    return *name == "copy" ? copy(document, *from, *path, copied) : move(document, *from, *path);
  }
  const json::Value value = operation["value"];
  if (!value) return false;
  if (*name == "add") return put(document, *path, Changeable::from(value));
  if (*name == "replace") return replace(document, *path, Changeable::from(value));
  if (*name != "test") return false;
  const Changeable* const found = find(document, *path);
  return found != nullptr && found->canonical() == Changeable::from(value).canonical();
}

}  // namespace

bool Working::apply_merge(const json::Value& patch) {
  if (!patch.is(json::Kind::object)) return false;
  const Changeable change = Changeable::from(patch);
  const std::size_t bytes = change.canonical().size();
  const std::size_t levels = std::max(levels_at_most_, change.levels());
  // A merge adds at most the text of the patch, and its result is no deeper than the deeper operand.
  if (bytes_at_most_ + bytes <= working_bytes_max && levels <= working_levels_max) {
    merge(value_, change);
    bytes_at_most_ += bytes;
    levels_at_most_ = levels;
    return true;
  }
  Changeable result = value_;
  merge(result, change);
  const std::size_t result_bytes = result.canonical().size();
  const std::size_t result_levels = result.levels();
  if (result_bytes > working_bytes_max || result_levels > working_levels_max) return false;
  value_ = std::move(result);
  bytes_at_most_ = result_bytes;
  levels_at_most_ = result_levels;
  return true;
}

bool Working::apply_json_patch(const json::Value& patch) {
  if (!patch.is(json::Kind::array)) return false;
  Changeable result = value_;
  std::size_t copied = 0;
  for (const json::Value operation : patch) {
    if (!apply_operation(result, operation, copied)) return false;
  }
  const std::size_t bytes = result.canonical().size();
  const std::size_t levels = result.levels();
  if (result.kind != json::Kind::object || bytes > working_bytes_max || levels > working_levels_max) return false;
  value_ = std::move(result);
  bytes_at_most_ = bytes;
  levels_at_most_ = levels;
  return true;
}

}  // namespace muniment::verify
