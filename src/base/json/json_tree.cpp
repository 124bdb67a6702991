#include "base/json/json_tree.hpp"

#include <algorithm>
#include <atomic>

#include "base/json/json_walk.hpp"

namespace muniment::json {
namespace {

std::size_t quoted_bytes(std::string_view text) {
  std::size_t bytes = text.size() + 2;
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t') {
      bytes += 1;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      bytes += 5;
    }
  }
  return bytes;
}

// A member's name, its colon and its value.
std::size_t member_bytes(std::string_view name, const Tree& value) { return quoted_bytes(name) + 1 + value.bytes(); }

// Orders the reads of a thread that has just released the container before the following write.
template <typename Container>
void see_released([[maybe_unused]] const std::shared_ptr<Container>& held) {
#ifdef MUNIMENT_THREAD_SANITIZER
  // ThreadSanitizer does not model fences, but models the reference count, which libstdc++ changes with acquire and
  // release.
  std::shared_ptr<Container>(held).reset();
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

// Returns the container, which is copied first if it is shared.
template <typename Container>
Container& unshared(std::shared_ptr<Container>& held) {
  if (held.use_count() > 1) {
    held = std::make_shared<Container>(*held);
  } else {
    see_released(held);
  }
  return *held;
}

}  // namespace

Tree::Tree(const Value& value) : kind_(value.kind()) {
  switch (kind_) {
    case Kind::null: break;
    case Kind::boolean: *this = boolean(*value.as_bool()); break;
    case Kind::number:
      held_ = std::string(value.source());
      bytes_ = value.source().size();
      break;
    case Kind::string: *this = string(*value.as_string()); break;
    case Kind::array:
      *this = array();
      for (Value item : value) push_back(Tree(item));
      break;
    case Kind::object:
      *this = object();
      for (Value member : value) set(member.key(), Tree(member));
      break;
  }
}

Tree Tree::boolean(bool value) {
  Tree tree;
  tree.kind_ = Kind::boolean;
  tree.held_ = value;
  tree.bytes_ = value ? 4 : 5;
  return tree;
}

Tree Tree::number(std::int64_t value) {
  Tree tree;
  tree.kind_ = Kind::number;
  tree.bytes_ = tree.held_.emplace<std::string>(std::to_string(value)).size();
  return tree;
}

Tree Tree::string(std::string text) {
  Tree tree;
  tree.kind_ = Kind::string;
  tree.bytes_ = quoted_bytes(text);
  tree.held_ = std::move(text);
  return tree;
}

Tree Tree::array() {
  Tree tree;
  tree.kind_ = Kind::array;
  tree.bytes_ = 2;
  tree.levels_ = 1;
  tree.held_ = std::make_shared<Items>();
  return tree;
}

Tree Tree::object() {
  Tree tree;
  tree.kind_ = Kind::object;
  tree.bytes_ = 2;
  tree.levels_ = 1;
  tree.held_ = std::make_shared<Members>();
  return tree;
}

bool Tree::as_bool() const {
  const bool* value = std::get_if<bool>(&held_);
  return value != nullptr && *value;
}

const std::string& Tree::text() const {
  static const std::string none;
  const auto* text = std::get_if<std::string>(&held_);
  return text != nullptr ? *text : none;
}

const Tree::Items& Tree::items() const {
  static const Items none;
  const auto* items = std::get_if<std::shared_ptr<Items>>(&held_);
  return items != nullptr ? **items : none;
}

const Tree::Members& Tree::members() const {
  static const Members none;
  const auto* members = std::get_if<std::shared_ptr<Members>>(&held_);
  return members != nullptr ? **members : none;
}

const Tree* Tree::member(std::string_view name) const {
  const auto found = members().find(name);
  return found == members().end() ? nullptr : &found->second;
}

bool Tree::operator==(const Tree& other) const {
  if (kind_ != other.kind_ || bytes_ != other.bytes_) return false;
  switch (kind_) {
    case Kind::null: return true;
    case Kind::boolean: return as_bool() == other.as_bool();
    case Kind::number:
    case Kind::string: return text() == other.text();
    case Kind::array: return &items() == &other.items() || items() == other.items();
    case Kind::object: return &members() == &other.members() || members() == other.members();
  }
  return false;
}

std::string Tree::canonical() const {
  std::string out;
  out.reserve(bytes_);
  append_canonical(out);
  return out;
}

void Tree::append_canonical(std::string& out) const {
  switch (kind_) {
    case Kind::null: out += "null"; return;
    case Kind::boolean: out += as_bool() ? "true" : "false"; return;
    case Kind::number: out += text(); return;
    case Kind::string: append_quoted(out, text()); return;
    case Kind::array: {
      char before = '[';
      if (items().empty()) out.push_back(before);
      for (const Tree& item : items()) {
        out.push_back(std::exchange(before, ','));
        item.append_canonical(out);
      }
      out.push_back(']');
      return;
    }
    case Kind::object: {
      char before = '{';
      if (members().empty()) out.push_back(before);
      for (const auto& [name, value] : members()) {
        out.push_back(std::exchange(before, ','));
        append_quoted(out, name);
        out.push_back(':');
        value.append_canonical(out);
      }
      out.push_back('}');
      return;
    }
  }
}

Tree::Items& Tree::own_items() { return unshared(std::get<std::shared_ptr<Items>>(held_)); }

Tree::Members& Tree::own_members() { return unshared(std::get<std::shared_ptr<Members>>(held_)); }

void Tree::count_in(std::size_t bytes, std::size_t levels) {
  bytes_ += bytes;
  levels_ = std::max(levels_, levels + 1);
}

// Adjusts the counts after a part was removed. The other parts are scanned only if the removed one was the deepest, and
// usually one of the first has the same depth.
void Tree::count_out(std::size_t bytes, std::size_t levels) {
  bytes_ -= bytes;
  if (levels + 1 < levels_) return;
  std::size_t deepest = 0;
  const auto is_as_deep = [&](const Tree& part) {
    deepest = std::max(deepest, part.levels_);
    return deepest == levels;
  };
  if (is(Kind::array)) {
    static_cast<void>(std::any_of(items().begin(), items().end(), is_as_deep));
  } else {
    static_cast<void>(
        std::any_of(members().begin(), members().end(), [&](const auto& member) { return is_as_deep(member.second); }));
  }
  levels_ = deepest + 1;
}

void Tree::set(std::string name, Tree value) {
  Members& all = own_members();
  const auto found = all.find(name);
  if (found == all.end()) {
    const std::size_t comma = all.empty() ? 0 : 1;
    count_in(member_bytes(name, value) + comma, value.levels_);
    all.emplace(std::move(name), std::move(value));
    return;
  }
  const Tree before = std::exchange(found->second, std::move(value));
  count_out(before.bytes_, before.levels_);
  count_in(found->second.bytes_, found->second.levels_);
}

bool Tree::erase(std::string_view name) {
  if (member(name) == nullptr) return false;
  Members& all = own_members();
  auto taken = all.extract(all.find(name));
  const std::size_t comma = all.empty() ? 0 : 1;
  count_out(member_bytes(taken.key(), taken.mapped()) + comma, taken.mapped().levels_);
  return true;
}

void Tree::insert(std::size_t index, Tree value) {
  Items& all = own_items();
  count_in(value.bytes_ + (all.empty() ? 0 : 1), value.levels_);
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
}

void Tree::replace(std::size_t index, Tree value) {
  const Tree before = std::exchange(own_items()[index], value);
  count_out(before.bytes_, before.levels_);
  count_in(value.bytes_, value.levels_);
}

void Tree::erase(std::size_t index) {
  Items& all = own_items();
  const Tree taken = std::move(all[index]);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
  count_out(taken.bytes_ + (all.empty() ? 0 : 1), taken.levels_);
}

}  // namespace muniment::json
