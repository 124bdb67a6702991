#include "bridge/text_view.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "bridge/decode.hpp"

namespace muniment::bridge {
namespace {

constexpr std::size_t joined_block = 64;  // bytes of the parent between two stored places

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

enum class Role : unsigned char { kept, dropped, plus, backslash };

constexpr std::array<Role, 256> make_roles() {
  std::array<Role, 256> roles{};
  for (const char c : std::string_view(" \t\r\n\v\f\"'`,")) roles[static_cast<unsigned char>(c)] = Role::dropped;
  roles['+'] = Role::plus;
  roles['\\'] = Role::backslash;
  return roles;
}
constexpr std::array<Role, 256> roles = make_roles();

// Returns whether a joined text contains the byte at `at`, which becomes the place of the next one. A plus sign is kept
// before a digit, as in phone numbers; a backslash is dropped with the letter of a line break.
bool take_joined(std::string_view text, std::size_t& at) {
  const Role role = roles[static_cast<unsigned char>(text[at++])];
  if (role == Role::kept) return true;
  if (role == Role::dropped || at == text.size()) return false;
  const char next = text[at];
  if (role == Role::plus) return std::isdigit(static_cast<unsigned char>(next)) != 0;
  if (next == 'n' || next == 'r' || next == 't') ++at;
  return false;
}

}  // namespace

TextView TextView::of(std::string_view text) {
  TextView view;
  view.borrowed_ = text;
  return view;
}

TextView TextView::joined(const TextView& parent) {
  TextView view;
  view.kind_ = Kind::joined;
  view.parent_ = &parent;
  const std::string_view text = parent.text();
  view.own_.resize(text.size());
  view.blocks_.reserve(text.size() / joined_block + 1);
  char* out = view.own_.data();
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size();) {
    view.blocks_.push_back({size, at});
    for (const std::size_t end = std::min(at + joined_block, text.size()); at < end;) {
      out[size] = text[at];
      const Role role = roles[static_cast<unsigned char>(text[at])];
      if (role <= Role::dropped) {
        size += role == Role::kept ? 1U : 0U;
        ++at;
      } else {
        size += take_joined(text, at) ? 1U : 0U;
      }
    }
  }
  view.own_.resize(size);
  return view;
}

TextView TextView::reversed(const TextView& parent) {
  TextView view;
  view.kind_ = Kind::reversed;
  view.parent_ = &parent;
  const std::string_view text = parent.text();
  view.own_.resize(text.size());
  std::reverse_copy(text.begin(), text.end(), view.own_.begin());
  return view;
}

TextView TextView::folded(const TextView& parent) {
  TextView view;
  view.parent_ = &parent;
  const std::string_view text = parent.text();
  for (std::size_t at = next_folded(text, 0); at < text.size();) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    const std::size_t end = std::min(text.find('\n', at), text.size());
    for (std::size_t from = begin; from < end;) {
      const Folded folded = fold(text.substr(0, end), from);
      for (const char c : folded.text()) {
        view.own_ += c;
        view.places_.push_back({from, from + folded.consumed});
      }
      from += folded.consumed;
    }
    view.own_ += '\n';
    view.places_.push_back({end, std::min(end + 1, text.size())});
    at = next_folded(text, end);
  }
  return view;
}

std::vector<TextView> TextView::decoded(const TextView& parent) {
  std::vector<TextView> views;
  for (DecodedRun& run : decoded_runs(parent.text())) {
    TextView& view = views.emplace_back();
    view.parent_ = &parent;
    view.own_ = std::move(run.text);
    view.whole_ = {run.begin, run.end};
  }
  return views;
}

std::size_t TextView::joined_place(std::size_t at) const {
  const std::string_view text = parent_->text();
  const auto block = std::prev(std::upper_bound(blocks_.begin(), blocks_.end(), at,
                                                [](std::size_t value, const Span& one) { return value < one.begin; }));
  std::size_t place = block->end;
  for (std::size_t count = block->begin; place < text.size();) {
    const std::size_t current = place;
    if (take_joined(text, place) && count++ == at) return current;
  }
  return place;
}

Span TextView::in_root(Span span) const {
  if (parent_ == nullptr) return span;
  if (kind_ == Kind::reversed) return parent_->in_root({own_.size() - span.end, own_.size() - span.begin});
  if (kind_ == Kind::joined) return parent_->in_root({joined_place(span.begin), joined_place(span.end - 1) + 1});
  if (!places_.empty()) return parent_->in_root({places_[span.begin].begin, places_[span.end - 1].end});
  return parent_->in_root(whole_);
}

bool TextView::has_gap(Span span) const {
  return kind_ == Kind::joined && joined_place(span.end - 1) - joined_place(span.begin) > span.end - 1 - span.begin;
}

bool TextView::begins_word(std::size_t at) const {
  const std::string_view bytes = text();
  if (at == 0 || at == bytes.size() || !is_word(bytes[at - 1]) || !is_word(bytes[at])) return true;
  return has_gap({at - 1, at + 1});
}

}  // namespace muniment::bridge
