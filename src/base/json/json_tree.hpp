// A mutable JSON value: holds a run's working state while patches are applied.
//
// Trees share common parts. A copy is free, and a change copies only the shared containers on its path, so that a patch
// is made atomic by applying it to a copy. Every tree knows the size of its canonical text and its depth, so that
// limits are checked without writing the text.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json/json.hpp"
#include "base/result.hpp"

namespace muniment::json {

class Tree {
 public:
  using Items = std::vector<Tree>;
  using Members = std::map<std::string, Tree, std::less<>>;  // ordered by their UTF-8 bytes

  Tree() = default;  // null
  explicit Tree(const Value& value);

  static Tree boolean(bool value);
  static Tree number(std::int64_t value);
  static Tree string(std::string text);
  static Tree array();
  static Tree object();

  Kind kind() const { return kind_; }
  bool is(Kind wanted) const { return kind_ == wanted; }
  bool as_bool() const;             // false if it is not a boolean
  const std::string& text() const;  // a string, or the token of a number
  const Items& items() const;       // empty if it is not an array
  const Members& members() const;   // empty if it is not an object
  const Tree* member(std::string_view name) const;

  // Compares the canonical texts: numbers by their token, so that 1 differs from 1.0.
  bool operator==(const Tree& other) const;

  std::size_t bytes() const { return bytes_; }    // size of the canonical text
  std::size_t levels() const { return levels_; }  // 0 for a scalar, 1 for [] and {}, …
  std::string canonical() const;
  void append_canonical(std::string& out) const;

  // Changes to an object or an array itself. Patches change nested parts.
  void set(std::string name, Tree value);  // adds or replaces a member
  bool erase(std::string_view name);
  void insert(std::size_t index, Tree value);  // `index`: at most the number of items
  void push_back(Tree value) { insert(items().size(), std::move(value)); }
  void replace(std::size_t index, Tree value);
  void erase(std::size_t index);

 private:
  friend class TreeEditor;

  Items& own_items();  // copied if shared with another tree
  Members& own_members();
  void count_in(std::size_t bytes, std::size_t levels);
  void count_out(std::size_t bytes, std::size_t levels);

  Kind kind_ = Kind::null;
  std::size_t bytes_ = 4;
  std::size_t levels_ = 0;
  std::variant<std::monostate, bool, std::string, std::shared_ptr<Items>, std::shared_ptr<Members>> held_;
};

// Returns the unescaped tokens of a pointer (RFC 6901); nullopt if it is malformed.
std::optional<std::vector<std::string>> split_pointer(std::string_view pointer);
// Returns the value at the pointer; nullptr if there is none or the pointer is malformed.
const Tree* find(const Tree& tree, std::string_view pointer);

// Applies a merge patch (RFC 7386).
void merge_patch(Tree& target, const Value& patch);

// Applies a patch of RFC 6902 with the limits of docs/format.md (Working): no value is put deeper than
// limits::working_state_levels_max, and all copies together have at most working_state_bytes_max. Errors:
// invalid_argument, too_large; the target is then unchanged.
Status json_patch(Tree& target, const Value& patch);

}  // namespace muniment::json
