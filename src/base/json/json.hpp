// Parses JSON strictly (I-JSON); every value keeps its source bytes.
//
// `parse` checks the grammar with simdjson and then walks the text once. It refuses everything that parsers interpret
// differently: duplicate keys (also escaped ones), \u0000, lone surrogates, numbers outside the limits of
// docs/format.md, and nesting deeper than `depth_max`. The result is an array of nodes that point into the text, so
// that `Value::source()` returns exactly the client's bytes, which are hashed and stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::json {

enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

struct Node {
  std::uint32_t begin = 0;    // offset of the value's first byte in the text
  std::uint32_t end = 0;      // offset past its last byte
  std::uint32_t key = 0;      // offset of the opening quote of the member's key; 0: not a member
  std::uint32_t key_end = 0;  // offset past the closing quote of the key
  std::uint32_t next = 0;     // index of the node after this value's subtree
  Kind kind = Kind::null;
  bool escaped = false;  // the string contains a backslash
  bool key_escaped = false;
};

class Value;

// A parsed text. It does not own the bytes, which must outlive it and every Value.
class Document {
 public:
  Value root() const;
  std::string_view text() const { return text_; }

 private:
  friend class Value;
  friend Result<Document> parse(std::string_view text, std::size_t depth_max);
  std::string_view text_;
  std::vector<Node> nodes_;
};

// Errors: invalid_argument, with the byte offset and the remedy.
Result<Document> parse(std::string_view text, std::size_t depth_max = limits::json_depth_max);
inline Result<Document> parse(const char* text) { return parse(std::string_view(text)); }
Result<Document> parse(std::string&& text) = delete;  // the bytes would not outlive it

// One value of a document; cheap to copy. A default-constructed Value is "absent": every `as_` returns nullopt and
// every lookup returns absent, so that lookups can be chained.
class Value {
 public:
  Value() = default;

  bool present() const { return document_ != nullptr; }
  explicit operator bool() const { return present(); }
  Kind kind() const;  // Kind::null if absent
  bool is(Kind wanted) const { return present() && kind() == wanted; }
  std::string_view source() const;  // the source bytes of the value

  Value operator[](std::string_view key) const;  // a member, or absent
  std::size_t size() const;                      // number of members or items; 0 otherwise

  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int() const;  // a number token that is an integer in 64 bits
  std::optional<double> as_double() const;
  std::optional<std::string> as_string() const;  // unescaped
  // Returns the text between the quotes without a copy if it contains no escape, otherwise nullopt.
  std::optional<std::string_view> as_plain_string() const;
  std::string string_or(std::string_view fallback) const;

  // For (Value item : array) and (Value member : object) with member.key().
  class Iterator {
   public:
    Iterator(const Document* document, std::uint32_t index) : document_(document), index_(index) {}
    Value operator*() const { return Value(document_, index_); }
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const Document* document_;
    std::uint32_t index_;
  };
  Iterator begin() const;
  Iterator end() const;
  std::string key() const;                            // unescaped; empty if this is not a member
  std::optional<std::string_view> plain_key() const;  // the same without a copy, if it contains no escape

 private:
  friend class Document;
  Value(const Document* document, std::uint32_t index) : document_(document), index_(index) {}
  const Node& node() const;
  const Document* document_ = nullptr;
  std::uint32_t index_ = 0;
};

// Builds JSON text. It inserts commas and colons; the caller must balance the nesting.
class Writer {
 public:
  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  Writer& key(std::string_view name);
  Writer& string(std::string_view text);  // replaces invalid UTF-8 by U+FFFD
  Writer& number(std::int64_t value);
  Writer& number(double value);  // the shortest text that reads back equal; not finite: null, subnormal: 0
  Writer& boolean(bool value);
  Writer& null();
  Writer& raw(std::string_view json);  // a value that is JSON already
  // Writes a key and its value.
  Writer& member(std::string_view name, std::string_view text);
  Writer& member(std::string_view name, const char* text) { return member(name, std::string_view(text)); }
  Writer& member(std::string_view name, const std::string& text) { return member(name, std::string_view(text)); }
  Writer& member(std::string_view name, const std::vector<std::string>& texts);
  Writer& member(std::string_view name, std::int64_t value);
  Writer& member(std::string_view name, int value) { return member(name, std::int64_t{value}); }
  Writer& member(std::string_view name, std::size_t value) { return member(name, static_cast<std::int64_t>(value)); }
  Writer& member(std::string_view name, bool value);
  Writer& member(std::string_view name, double value);
  Writer& raw_member(std::string_view name, std::string_view json);

  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }

 private:
  void separate();
  std::string text_;
  bool comma_ = false;
};

std::string quote(std::string_view text);  // a JSON string literal

// Returns the canonical text of a value: members sorted by the UTF-8 bytes of their unescaped keys, no white space,
// number tokens verbatim, strings with the shortest escapes (docs/format.md).
std::string canonical(const Value& value);

}  // namespace muniment::json
