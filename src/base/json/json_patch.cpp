// Implements JSON pointers and the two kinds of patches (json_tree.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json/json_tree.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::json {

// Changes any part of a tree and maintains the counts of all its ancestors.
class TreeEditor {
 public:
  using Tokens = std::vector<std::string>;

  // Calls change(parent, token) on the container that holds, or will hold, the part named by the last token.
  template <typename Change>
  static bool edit(Tree& tree, const Tokens& tokens, const Change& change, std::size_t at = 0) {
    if (at + 1 == tokens.size()) return change(tree, tokens[at]);
    Tree* const part = own_part(tree, tokens[at]);
    if (part == nullptr) return false;
    const Counts before{part->bytes_, part->levels_};
    const bool changed = edit(*part, tokens, change, at + 1);
    recount(tree, before, *part);
    return changed;
  }

  static void merge(Tree& target, const Value& patch) {
    if (!patch.is(Kind::object)) {
      target = Tree(patch);
      return;
    }
    if (!target.is(Kind::object)) target = Tree::object();
    for (Value member : patch) merge_member(target, member);
  }

 private:
  struct Counts {
    std::size_t bytes;
    std::size_t levels;
  };

  static Tree* own_part(Tree& tree, const std::string& token);

  static void recount(Tree& tree, Counts before, const Tree& part) {
    tree.count_out(before.bytes, before.levels);
    tree.count_in(part.bytes_, part.levels_);
  }

  static void merge_member(Tree& target, const Value& member) {
    std::string name = member.key();
    if (member.is(Kind::null)) {
      target.erase(name);
    } else if (target.member(name) == nullptr) {
      Tree added;
      merge(added, member);
      target.set(std::move(name), std::move(added));
    } else {
      Tree& part = target.own_members().find(name)->second;
      const Counts before{part.bytes_, part.levels_};
      merge(part, member);
      recount(target, before, part);
    }
  }
};

namespace {

using Tokens = TreeEditor::Tokens;

// Parses an array index (RFC 6901): 0, or digits that do not start with 0.
std::optional<std::size_t> index_of(std::string_view token) {
  std::size_t index = 0;
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  return index;
}

std::optional<std::size_t> index_in(const Tree& array, std::string_view token) {
  const auto index = index_of(token);
  return index && *index < array.items().size() ? index : std::nullopt;
}

const Tree* part_of(const Tree& tree, const std::string& token) {
  if (tree.is(Kind::object)) return tree.member(token);
  if (!tree.is(Kind::array)) return nullptr;
  const auto index = index_in(tree, token);
  return index ? &tree.items()[*index] : nullptr;
}

const Tree* find(const Tree& tree, const Tokens& tokens) {
  const Tree* at = &tree;
  for (const std::string& token : tokens) {
    if (at = part_of(*at, token); at == nullptr) break;
  }
  return at;
}

bool add(Tree& parent, const std::string& token, Tree value) {
  if (parent.is(Kind::object)) return parent.set(token, std::move(value)), true;
  if (!parent.is(Kind::array)) return false;
  const std::size_t size = parent.items().size();
  const auto index = token == "-" ? std::optional(size) : index_of(token);
  if (!index || *index > size) return false;
  parent.insert(*index, std::move(value));
  return true;
}

bool replace(Tree& parent, const std::string& token, Tree value) {
  if (part_of(parent, token) == nullptr) return false;
  if (parent.is(Kind::object)) return parent.set(token, std::move(value)), true;
  parent.replace(*index_of(token), std::move(value));
  return true;
}

bool remove(Tree& parent, const std::string& token) {
  if (part_of(parent, token) == nullptr) return false;
  if (parent.is(Kind::object)) return parent.erase(token);
  parent.erase(*index_of(token));
  return true;
}

Status refuse(std::string problem) { return Error(Errc::invalid_argument, std::move(problem)); }

// Applies the operations of one patch in order. If one fails, the caller discards the tree.
class PatchRun {
 public:
  explicit PatchRun(Tree& tree) : tree_(tree) {}

  Status apply(const Value& operation) {
    ASSIGN_OR_RETURN(path_, pointer_of(operation, "path"));
    const auto op = operation["op"].as_string();
    if (op == "add") return with_value(operation, [&](Tree value) { return put(std::move(value)); });
    if (op == "replace") {
      return with_value(operation, [&](Tree value) { return put_instead(std::move(value)); });
    }
    if (op == "test") return with_value(operation, [&](Tree value) { return test(value); });
    if (op == "remove") return take(path_);
    if (op == "move") return move(operation);
    if (op == "copy") return copy(operation);
    if (!op) return refuse("\"op\" must be a string");
    return refuse(
        fmt::format("unknown op {}. Known are add, remove, replace, move, copy, test", quote(preview(*op, 40))));
  }

 private:
  static Result<Tokens> pointer_of(const Value& operation, std::string_view name) {
    const auto text = operation[name].as_string();
    if (!text) return Error(Errc::invalid_argument, fmt::format("\"{}\" must be a string", name));
    auto tokens = split_pointer(*text);
    if (tokens) return *std::move(tokens);
    return Error(Errc::invalid_argument,
                 fmt::format("\"{}\" is not a JSON pointer: it starts with \"/\", and \"~\" is written "
                             "as \"~0\"",
                             name));
  }

  template <typename Function>
  Status with_value(const Value& operation, const Function& function) {
    const Value value = operation["value"];
    return value ? function(Tree(value)) : refuse("\"value\" is missing");
  }

  static Status nothing_there() { return refuse("there is no value at that place"); }

  Status check_levels(const Tree& value) const {
    if (path_.size() + value.levels() <= limits::working_state_levels_max) return success();
    return refuse(fmt::format("puts a value {} levels deep, limit {}", path_.size() + value.levels(),
                              limits::working_state_levels_max));
  }

  Status put(Tree value) {
    RETURN_IF_ERROR(check_levels(value));
    if (path_.empty()) return tree_ = std::move(value), success();
    const bool done = TreeEditor::edit(
        tree_, path_, [&](Tree& parent, const std::string& token) { return add(parent, token, std::move(value)); });
    return done ? success()
                : refuse(
                      "there is no object or array to add to at that place, or the "
                      "index is beyond its end");
  }

  Status put_instead(Tree value) {
    RETURN_IF_ERROR(check_levels(value));
    if (path_.empty()) return tree_ = std::move(value), success();
    const bool done = TreeEditor::edit(
        tree_, path_, [&](Tree& parent, const std::string& token) { return replace(parent, token, std::move(value)); });
    return done ? success() : nothing_there();
  }

  Status take(const Tokens& from) {
    if (from.empty()) return refuse("the whole value cannot be removed. Replace it");
    return TreeEditor::edit(tree_, from, remove) ? success() : nothing_there();
  }

  Status test(const Tree& wanted) const {
    const Tree* const found = find(tree_, path_);
    if (found == nullptr) return nothing_there();
    return *found == wanted ? success() : refuse("the value at that place differs");
  }

  Status move(const Value& operation) {
    ASSIGN_OR_RETURN(const Tokens from, pointer_of(operation, "from"));
    const Tree* const found = find(tree_, from);
    if (found == nullptr) return nothing_there();
    if (from == path_) return success();
    const bool into_itself = from.size() < path_.size() && std::equal(from.begin(), from.end(), path_.begin());
    if (into_itself) return refuse("a value cannot be moved into itself");
    Tree value = *found;
    RETURN_IF_ERROR(take(from));
    return put(std::move(value));
  }

  Status copy(const Value& operation) {
    ASSIGN_OR_RETURN(const Tokens from, pointer_of(operation, "from"));
    const Tree* const found = find(tree_, from);
    if (found == nullptr) return nothing_there();
    copied_bytes_ += found->bytes();
    if (copied_bytes_ > limits::working_state_bytes_max) {
      return Error(Errc::too_large, fmt::format("copies more than {} bytes, the limit of a patch",
                                                grouped(limits::working_state_bytes_max)));
    }
    return put(*found);
  }

  Tree& tree_;
  Tokens path_;
  std::size_t copied_bytes_ = 0;
};

}  // namespace

Tree* TreeEditor::own_part(Tree& tree, const std::string& token) {
  if (part_of(tree, token) == nullptr) return nullptr;
  if (tree.is(Kind::object)) return &tree.own_members().find(token)->second;
  return &tree.own_items()[*index_of(token)];
}

std::optional<std::vector<std::string>> split_pointer(std::string_view pointer) {
  std::vector<std::string> tokens;
  if (!pointer.empty() && pointer[0] != '/') return std::nullopt;
  for (std::size_t at = 0; at < pointer.size(); ++at) {
    if (pointer[at] == '/') {
      tokens.emplace_back();
    } else if (pointer[at] != '~') {
      tokens.back() += pointer[at];
    } else {
      const std::string_view escape = pointer.substr(at++, 2);
      if (escape != "~0" && escape != "~1") return std::nullopt;
      tokens.back() += escape == "~0" ? '~' : '/';
    }
  }
  return tokens;
}

const Tree* find(const Tree& tree, std::string_view pointer) {
  const auto tokens = split_pointer(pointer);
  return tokens ? find(tree, *tokens) : nullptr;
}

void merge_patch(Tree& target, const Value& patch) { TreeEditor::merge(target, patch); }

Status json_patch(Tree& target, const Value& patch) {
  if (!patch.is(Kind::array)) return refuse("a JSON patch must be an array of operations");
  Tree patched = target;
  PatchRun run(patched);
  std::size_t number = 0;
  for (Value operation : patch) {
    if (auto done = run.apply(operation); !done) {
      return std::move(done).error().within(fmt::format("operation {}", number));
    }
    ++number;
  }
  target = std::move(patched);
  return success();
}

}  // namespace muniment::json
