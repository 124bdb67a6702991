// Forms of a text in which a secret may hide, each with the way back to the original bytes: the text itself, with
// escapes and look-alike characters replaced, without the separators inside a token, reversed, and decoded from Base64
// or hexadecimal digits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::bridge {

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A view refers to its parent, which must outlive it.
class TextView {
 public:
  enum class Kind { plain, joined, reversed };

  static TextView of(std::string_view text);  // `text` must outlive the view
  // The text without white space, quotes, commas, plus signs and backslashes.
  static TextView joined(const TextView& parent);
  static TextView reversed(const TextView& parent);
  // The lines that contain escapes (%41, \u0041, \x41, &#65;), invisible characters or characters that look like
  // those of ASCII, with these replaced; empty if there are none.
  static TextView folded(const TextView& parent);
  // The texts in Base64 and in hexadecimal digits.
  static std::vector<TextView> decoded(const TextView& parent);

  std::string_view text() const { return parent_ == nullptr ? borrowed_ : std::string_view(own_); }
  Kind kind() const { return kind_; }
  Span in_root(Span span) const;
  // Returns whether a separator was removed between two bytes of the span.
  bool has_gap(Span span) const;
  // Returns whether the byte at the place, or the end of the text, does not continue a word.
  bool begins_word(std::size_t at) const;

 private:
  std::size_t joined_place(std::size_t at) const;

  Kind kind_ = Kind::plain;
  const TextView* parent_ = nullptr;
  std::string_view borrowed_;
  std::string own_;
  std::vector<Span> places_;  // of each byte of a folded text
  std::vector<Span> blocks_;  // of a joined text: places in it and in the parent, in steps
  Span whole_;                // of a decoded text
};

}  // namespace muniment::bridge
