// Recognises weakened tests in the lines of a unified diff.
#include "evidence/completion/diff.hpp"

#include <algorithm>
#include <cstdint>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t changed_line_bytes_max = 400;

bool has(std::string_view line, std::string_view part) { return line.find(part) != std::string_view::npos; }

// Returns whether the line has a mark that prevents a test from running: @pytest.mark.skip, #[ignore], t.Skip(,
// it.skip(, xit(, @Disabled, DISABLED_.
bool skips(std::string_view line) {
  for (const std::string_view mark :
       {"mark.skip", "mark.xfail", "unittest.skip", "@skip", "#[ignore", "t.Skip(", "t.SkipNow(", ".skip(", "xit(",
        "xdescribe(", "@Disabled", "@Ignore", "DISABLED_", "GTEST_SKIP", "pytest.skip(", "skipTest(", ".todo("}) {
    if (has(line, mark)) return true;
  }
  return false;
}

// Returns whether the line defines a test.
bool defines_test(std::string_view line) {
  for (const std::string_view mark : {"def test_", "func Test", "#[test]", "@Test", "TEST(", "TEST_F(", "TEST_P(",
                                      "it('", "it(\"", "test('", "test(\""}) {
    if (has(line, mark)) return true;
  }
  return false;
}

bool asserts(std::string_view line) {
  for (const std::string_view mark : {"assert", "expect(", "EXPECT_", "ASSERT_", "t.Error", "t.Fatal", "require."}) {
    if (has(line, mark)) return true;
  }
  return false;
}

// Returns whether the line is an assertion of a constant: assert True, assert!(true), expect(true).toBe(true),
// EXPECT_TRUE(true).
bool asserts_nothing(std::string_view line) {
  bool constant = false, other = false;
  each_word(line, [&](std::string_view word) {
    if (word == "true" || word == "false") {
      constant = true;
    } else if (word != "assert" && word != "expect" && word != "eq" && word != "is" && word != "to" && word != "be" &&
               word != "equal" && word != "self" && word != "not" && word != "toBe") {
      other = true;
    }
  });
  return constant && !other && asserts(line);
}

bool names_tests(std::string_view path) {
  bool found = false;
  each_word(path, [&](std::string_view word) { found = found || (classes_of(word) & test_word) != 0; });
  return found;
}

struct Changes {
  std::size_t asserts_gone = 0, asserts_new = 0, empty_new = 0, tests_gone = 0, tests_new = 0, skips_gone = 0,
              skips_new = 0;
};

}  // namespace

bool weakens_tests(std::string_view text) {
  if (!has(text, "\n@@") || (!has(text, "\n+++ ") && !has(text, "diff --git"))) return false;
  Changes changes;
  bool in_tests = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("--- ") || line.starts_with("+++ ")) {
      const bool tests = names_tests(line.substr(4));
      in_tests = tests || (in_tests && line.starts_with("+++ /dev/null"));
      continue;
    }
    if (line.size() < 2 || (line[0] != '+' && line[0] != '-')) continue;
    const bool added = line[0] == '+';
    line = line.substr(1, changed_line_bytes_max);
    if (in_tests && asserts(line)) ++(added ? changes.asserts_new : changes.asserts_gone);
    if (added && asserts_nothing(line)) ++changes.empty_new;
    if (defines_test(line)) ++(added ? changes.tests_new : changes.tests_gone);
    if (skips(line)) ++(added ? changes.skips_new : changes.skips_gone);
  }
  return changes.skips_new > changes.skips_gone || changes.empty_new > 0 || changes.tests_gone > changes.tests_new ||
         (changes.asserts_gone > changes.asserts_new && changes.tests_new <= changes.tests_gone);
}

}  // namespace muniment::evidence::completion
