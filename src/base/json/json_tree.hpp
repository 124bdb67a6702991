// A JSON value that can be changed: what a run's working state is held in while patches apply.
//
// Trees share what they have in common. A copy costs nothing, and a change copies only the
// containers on its way that are shared, so that "apply it to a copy, keep the copy if all went
// well" is how a patch is atomic. Every tree knows the size of its canonical text and its depth,
// so that limits are checked without writing it.
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
  using Members = std::map<std::string, Tree, std::less<>>;  // by the bytes of their UTF-8

  Tree() = default;  // null
  explicit Tree(const Value& value);

  static Tree boolean(bool value);
  static Tree number(std::int64_t value);
  static Tree string(std::string text);
  static Tree array();
  static Tree object();

  Kind kind() const { return kind_; }
  bool is(Kind wanted) const { return kind_ == wanted; }
  bool as_bool() const;             // false for what is not a boolean
  const std::string& text() const;  // a string, or a number's token as it was written
  const Items& items() const;       // empty for what is not an array
  const Members& members() const;   // empty for what is not an object
  const Tree* member(std::string_view name) const;

  // Equal when the canonical texts are: numbers by their token, so that 1 is not 1.0.
  bool operator==(const Tree& other) const;

  std::size_t bytes() const { return bytes_; }    // of the canonical text
  std::size_t levels() const { return levels_; }  // 0 for a scalar, 1 for [] and {}, …
  std::string canonical() const;
  void append_canonical(std::string& out) const;

  // Changes of an object or an array itself; its parts are changed by patches.
  void set(std::string name, Tree value);  // puts or replaces a member
  bool erase(std::string_view name);
  void insert(std::size_t index, Tree value);  // index at most the number of items
  void push_back(Tree value) { insert(items().size(), std::move(value)); }
  void replace(std::size_t index, Tree value);
  void erase(std::size_t index);

 private:
  friend class TreeEditor;

  Items& own_items();  // no longer shared with another tree
  Members& own_members();
  void count_in(std::size_t bytes, std::size_t levels);
  void count_out(std::size_t bytes, std::size_t levels);

  Kind kind_ = Kind::null;
  std::size_t bytes_ = 4;
  std::size_t levels_ = 0;
  std::variant<std::monostate, bool, std::string, std::shared_ptr<Items>, std::shared_ptr<Members>> held_;
};

// RFC 6901. The tokens of a pointer, unescaped; nullopt when it is not one.
std::optional<std::vector<std::string>> split_pointer(std::string_view pointer);
// What stands there; nullptr when there is nothing, or the pointer is not one.
const Tree* find(const Tree& tree, std::string_view pointer);

// RFC 7386.
void merge_patch(Tree& target, const Value& patch);

// RFC 6902 with the limits of docs/format.md (Working): no value is put deeper than
// limits::working_state_levels_max, and all copies together stay within working_state_bytes_max.
// Errors: invalid_argument, too_large; the target is then as it was.
Status json_patch(Tree& target, const Value& patch);

}  // namespace muniment::json
