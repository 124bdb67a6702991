// Recognises weakened and added tests in the lines of a unified diff.
#include "evidence/completion/changes/diff.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t changed_line_bytes_max = 400;

bool has(std::string_view line, std::string_view part) { return line.find(part) != std::string_view::npos; }

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Returns whether the part occurs and does not continue a name, as "xit(" does in "exit(".
bool has_name(std::string_view line, std::string_view part) {
  for (std::size_t at = line.find(part); at != std::string_view::npos; at = line.find(part, at + 1)) {
    if (at == 0 || !is_name(part[0]) || !is_name(line[at - 1])) return true;
  }
  return false;
}

// Marks that prevent a test from running. A * stands for the rest of a name, as in skipif.
constexpr auto skip_marks = std::to_array<std::string_view>({"pytest.skip",
                                                             "pytest.xfail",
                                                             "mark.skip*",
                                                             "mark.xfail",
                                                             "importorskip(",
                                                             "unittest.skip*",
                                                             "SkipTest",
                                                             "skipTest(",
                                                             "expectedFailure",
                                                             "t.Skip(",
                                                             "t.Skipf(",
                                                             "t.SkipNow(",
                                                             "b.Skip(",
                                                             "it.skip(",
                                                             "test.skip(",
                                                             "describe.skip(",
                                                             "it.todo(",
                                                             "test.todo(",
                                                             "xit(",
                                                             "xdescribe(",
                                                             "this.skip(",
                                                             "GTEST_SKIP",
                                                             "markTestSkipped",
                                                             "@Disabled*",
                                                             "@Ignore",
                                                             "#[ignore",
                                                             "assumeTrue(",
                                                             "assumeFalse(",
                                                             "Assume.assume*",
                                                             "Assume.That(",
                                                             "Assumptions.assum*"});
// Further ones, whose names programs also have for other purposes.
constexpr auto skip_marks_in_tests = std::to_array<std::string_view>({"@skip*", ".skip(", ".todo(", "DISABLED_*"});

bool defines_name(std::string_view before) {
  const std::size_t end = before.find_last_not_of(' ') + 1;
  const std::string_view word = before.substr(0, end);
  for (const std::string_view keyword : {"class", "def", "define", "fn", "fun", "func", "function", "struct", "void"}) {
    if (end < before.size() && word.ends_with(keyword) &&
        (word.size() == keyword.size() || !is_name(word[word.size() - keyword.size() - 1])))
      return true;
  }
  return false;
}

// Returns whether the line has the mark, as a name of its own that is not defined there.
bool has_skip_mark(std::string_view line, std::string_view mark) {
  const bool open = mark.ends_with('*');
  if (open) mark.remove_suffix(1);
  for (std::size_t at = line.find(mark); at != std::string_view::npos; at = line.find(mark, at + 1)) {
    const std::string_view after = line.substr(at + mark.size());
    const bool begins = at == 0 || !is_name(mark.front()) || !is_name(line[at - 1]);
    const bool ends = open || after.empty() || !is_name(mark.back()) || !is_name(after.front());
    if (begins && ends && !defines_name(line.substr(0, at))) return true;
  }
  return false;
}

// Returns whether the line of a test has a mark that prevents a test from running.
bool skips(std::string_view line) {
  return skips_tests(line) ||
         std::ranges::any_of(skip_marks_in_tests, [&](std::string_view mark) { return has_skip_mark(line, mark); });
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

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

bool begins_with_any(std::string_view line, std::initializer_list<std::string_view> marks) {
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return line.starts_with(mark); });
}

template <std::size_t N>
bool begins_with_any(std::string_view line, const std::array<std::string_view, N>& marks) {
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return line.starts_with(mark); });
}

constexpr auto definition_marks = std::to_array<std::string_view>(
    {"def ",    "async def ", "class ",   "func ",     "fn ",      "pub fn ",     "async fn ",
     "mod ",    "struct ",    "TEST(",    "TEST_F(",   "TEST_P(",  "TYPED_TEST(", "it(",
     "test(",   "describe(",  "context(", "public ",   "void ",    "function ",   "const ",
     "static ", "let ",       "test \"",  "describe ", "context ", "it \"",       "it '"});
constexpr auto import_marks = std::to_array<std::string_view>({"import ", "from ", "use ", "#include", "require "});
constexpr auto test_prefixes = std::to_array<std::string_view>(
    {"@", "#[", "[Test", "[Fact", "[Theory", "[InlineData", "[DataRow", "//", "/*", "*", "#"});

// Names that a runner calls by itself, before or after other tests.
constexpr auto hook_names = std::to_array<std::string_view>(
    {"pytest_",   "load_tests", "setUp",    "tearDown", "setup",      "teardown",    "beforeEach",
     "beforeAll", "afterEach",  "afterAll", "autouse",  "jest.mock(", "vi.mock(",    "TestMain",
     "SetUp",     "TearDown",   "before(",  "after(",   "pytestmark", "sys.modules", "monkeypatch.setattr(\"builtins"});

bool holds_name(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !is_name(text[at - 1]);
    const bool ends = at + name.size() == text.size() || !is_name(text[at + name.size()]);
    if (begins && ends) return true;
  }
  return false;
}

// Returns whether the definition or the import binds a word of the old file, which it could replace there.
bool rebinds(std::string_view line, std::string_view old_text) {
  const bool import = begins_with_any(line, import_marks);
  if (!import && !begins_with_any(line, {"def ", "async def ", "class ", "func ", "fn ", "pub fn ", "async fn ",
                                         "function ", "const ", "static ", "let "}))
    return false;
  if (line.starts_with("#include")) return holds_name(old_text, line);
  if (import && without_indent(line).ends_with('(')) return true;  // the names are on the next lines
  const std::size_t from = line.starts_with("from ") ? line.find(" import ") : 0;
  std::string_view rest = line.substr(from == std::string_view::npos ? 0 : from);
  if (!import) rest = rest.substr(0, rest.find_first_of("(:={<"));
  bool found = false;
  std::string_view last;
  const auto check = [&] { found = found || (!last.empty() && holds_name(old_text, last)); };
  while (!rest.empty()) {
    std::size_t end = 0;
    while (end < rest.size() && is_name(rest[end])) ++end;
    if (end > 0) last = rest.substr(0, end);
    if (end < rest.size() && rest[end] == ',') {
      check();
      last = {};
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  check();
  return found;
}

// The added lines between two lines of context.
struct AddedBlock {
  std::vector<std::string_view> lines;  // without the blank ones
  std::string_view next;                // the next line of context that is not blank; empty: the end of the file
};

std::size_t indent_of(std::string_view line) { return line.size() - without_indent(line).size(); }

bool adds_tests(const AddedBlock& block, std::string_view old_text) {
  if (block.lines.empty()) return true;
  const std::size_t indent = indent_of(block.lines.front());
  const std::string_view first = without_indent(block.lines.front()), last = without_indent(block.lines.back());
  if (!begins_with_any(first, definition_marks) && !begins_with_any(first, import_marks) &&
      !begins_with_any(first, test_prefixes))
    return false;
  // Otherwise the lines that follow would become part of what is added.
  if (!block.next.empty() && indent_of(block.next) > indent) return false;
  if (begins_with_any(last, {"@", "#[", "["}) || has(":{(,\\", last.substr(last.size() - 1))) return false;
  return std::all_of(block.lines.begin(), block.lines.end(), [&](std::string_view whole) {
    const std::string_view line = without_indent(whole);
    if (begins_with_any(line, {"#define", "#if", "#undef"})) return false;
    const bool top = indent_of(whole) <= indent;
    const bool known = begins_with_any(line, definition_marks) || begins_with_any(line, import_marks) ||
                       begins_with_any(line, test_prefixes) || begins_with_any(line, {")", "}", "]", "end"});
    if (top && !known) return false;
    if (skips(whole) || (top && rebinds(line, old_text))) return false;
    return std::none_of(hook_names.begin(), hook_names.end(),
                        [&](std::string_view hook) { return has_name(line, hook); });
  });
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

bool skips_tests(std::string_view text) {
  return std::ranges::any_of(skip_marks, [&](std::string_view mark) { return has_skip_mark(text, mark); });
}

bool only_adds_tests(std::string_view diff, std::string_view old_text) {
  bool in_hunk = false, any = false;
  AddedBlock block;
  bool open = false;  // the block has lines, and the context after it was not read
  while (!diff.empty()) {
    const std::size_t end = std::min(diff.find('\n'), diff.size());
    const std::string_view line = diff.substr(0, end);
    diff.remove_prefix(std::min(end + 1, diff.size()));
    if (line.starts_with("@@")) {
      if (open && !adds_tests(block, old_text)) return false;
      block = {};
      open = false;
      in_hunk = any = true;
      continue;
    }
    if (!in_hunk || line.empty()) continue;
    const std::string_view text = line.substr(1);
    if (line[0] == '-' || line[0] == '\\') return false;
    const bool blank = without_indent(text).empty();
    if (line[0] == '+') {
      open = true;
      if (!blank) block.lines.push_back(text);
    } else if (open && !blank) {
      block.next = text;
      if (!adds_tests(block, old_text)) return false;
      block = {};
      open = false;
    }
  }
  return any && (!open || adds_tests(block, old_text));
}

}  // namespace muniment::evidence::completion
