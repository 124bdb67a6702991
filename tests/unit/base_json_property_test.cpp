// Properties of JSON text, tested with random values (rapidcheck).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "base/json/json_tree.hpp"

namespace muniment::json {
namespace {

// Text of characters with different encodings: escapes, control characters, all lengths of UTF-8.
rc::Gen<std::string> any_text() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                          "a", "B", "7", "\"", "\\", "/", "\n", "\x01", "\x7f", "ä", "€", "😀", "\uFF61", " ")),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& piece : pieces) text += piece;
                        return text;
                      });
}

// Returns the text as a JSON string literal; if `escaped`, its ASCII characters are written as escapes.
std::string any_literal(const std::string& text, bool escaped) {
  if (!escaped) return quote(text);
  std::string literal = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) {
      literal += text[i];
    } else {
      constexpr const char* digits = "0123456789ABCDEF";
      literal += std::string("\\u00") + digits[text[i] >> 4] + digits[text[i] & 15];
    }
  }
  return literal + "\"";
}

rc::Gen<std::string> any_number() {
  return rc::gen::oneOf(rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](auto n) { return std::to_string(n); }),
                        rc::gen::map(rc::gen::arbitrary<double>(), [](double n) { return Writer().number(n).text(); }),
                        rc::gen::element<std::string>("-0", "0.0", "1E5", "1e-308", "18446744073709551615", "1.50"));
}

std::string space() { return *rc::gen::element<std::string>("", "", " ", "\n\t", "\r\n "); }

std::string draw_value(int depth);

std::string draw_object(int depth) {
  std::string text = "{" + space();
  std::vector<std::string> names;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    const std::string name = *any_text();
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (!names.empty()) text += space() + "," + space();
    names.push_back(name);
    text += any_literal(name, *rc::gen::arbitrary<bool>()) + space() + ":" + space();
    text += draw_value(depth - 1);
  }
  return text + space() + "}";
}

std::string draw_array(int depth) {
  std::string text = "[" + space();
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += space() + "," + space();
    text += draw_value(depth - 1);
  }
  return text + space() + "]";
}

std::string draw_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0: return "null";
    case 1: return "true";
    case 2: return "false";
    case 3: return *any_number();
    case 4: return any_literal(*any_text(), *rc::gen::arbitrary<bool>());
    case 5: return draw_array(depth);
    default: return draw_object(depth);
  }
}

rc::Gen<std::string> any_json() {
  return rc::gen::exec([] { return space() + draw_value(4) + space(); });
}

template <typename Property>
void expect_always(const char* what, Property&& property) {
  EXPECT_TRUE(rc::check(what, std::forward<Property>(property)));
}

TEST(JsonProperties, TheCanonicalTextOfACanonicalTextIsItself) {
  expect_always("canonical(parse(canonical(x))) == canonical(x)", [] {
    const std::string text = *any_json();
    const auto once = parse(text);
    RC_ASSERT(once.ok());
    const std::string first = canonical(once->root());
    const auto twice = parse(first);
    RC_ASSERT(twice.ok());
    RC_ASSERT(canonical(twice->root()) == first);
  });
}

TEST(JsonProperties, ATreeWritesAndCountsWhatTheTextSays) {
  expect_always("Tree(x) is canonical(x), and knows its size", [] {
    const std::string text = *any_json();
    const auto document = parse(text);
    RC_ASSERT(document.ok());
    const Tree tree(document->root());
    RC_ASSERT(tree.canonical() == canonical(document->root()));
    RC_ASSERT(tree.bytes() == tree.canonical().size());
  });
}

TEST(JsonProperties, EveryTextSurvivesBeingQuoted) {
  expect_always("parse(quote(text)) is text", [] {
    const std::string text = *any_text();
    const std::string quoted = quote(text);
    const auto document = parse(quoted);
    RC_ASSERT(document.ok());
    RC_ASSERT(document->root().as_string() == text);
  });
}

TEST(JsonProperties, EveryDoubleSurvivesBeingWritten) {
  expect_always("parse(number(x)) is x", [] {
    const double value = *rc::gen::arbitrary<double>();
    const std::string text = Writer().number(value).text();
    const auto document = parse(text);
    RC_ASSERT(document.ok());
    RC_ASSERT(document->root().as_double() == value);
  });
}

TEST(JsonProperties, MergingCountsRightAndMergingAgainChangesNothing) {
  expect_always("merge(merge(x, p), p) == merge(x, p)", [] {
    const std::string target_text = *any_json();
    const std::string patch_text = *any_json();
    const auto target = parse(target_text);
    const auto patch = parse(patch_text);
    RC_ASSERT(target.ok() && patch.ok());
    Tree tree(target->root());
    merge_patch(tree, patch->root());
    const std::string text = tree.canonical();
    const auto again = parse(text);
    RC_ASSERT(again.ok());
    RC_ASSERT(tree.bytes() == text.size());
    RC_ASSERT(tree.levels() == Tree(again->root()).levels());
    merge_patch(tree, patch->root());
    RC_ASSERT(tree.canonical() == text);  // merging the same patch again changes nothing
  });
}

}  // namespace
}  // namespace muniment::json
