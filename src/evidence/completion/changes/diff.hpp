// Reads unified diffs: whether they weaken tests (skip them, empty their assertions, or remove them), and whether they
// only add tests.
#pragma once

#include <string_view>

namespace muniment::evidence::completion {

bool weakens_tests(std::string_view text);

// Returns whether the text of a program calls, raises or marks something that keeps a test from running:
// `pytest.skip(`, `t.Skip(`, `GTEST_SKIP`, `#[ignore]`. Only names that a program does not have for other purposes
// count, and no definitions of such names.
bool skips_tests(std::string_view text);

// Returns whether the diff of one file with at least eight lines of context only adds tests and their helpers: no line
// is removed, each added block begins with a definition and ends before the next one, and nothing that it defines or
// imports is a word of the old file. A test that is skipped, a hook and a fixture for all tests are no such additions.
bool only_adds_tests(std::string_view diff, std::string_view old_text);

}  // namespace muniment::evidence::completion
