#include "cli/exec/test_paths.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "cli/exec/changed_lines.hpp"

namespace muniment::cli {
namespace {

template <typename Words>
bool starts_with_any(std::string_view name, const Words& words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.starts_with(word); });
}

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return starts_with_any<std::initializer_list<std::string_view>>(name, words);
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.ends_with(word); });
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Beginnings of the names of files that configure tests.
constexpr auto configuration_names = std::to_array<std::string_view>({".gitattributes",
                                                                      "conftest.py",
                                                                      "pytest.ini",
                                                                      ".pytest.ini",
                                                                      "pytest.toml",
                                                                      ".pytest.toml",
                                                                      "tox.ini",
                                                                      "tox.toml",
                                                                      "noxfile.py",
                                                                      "nextest.toml",
                                                                      "nose.cfg",
                                                                      "unittest.cfg",
                                                                      "jest.config.",
                                                                      "jest.setup.",
                                                                      "vitest.",
                                                                      "karma.conf.",
                                                                      "playwright.config.",
                                                                      "cypress.config.",
                                                                      "ava.config.",
                                                                      "wdio.conf.",
                                                                      "bunfig.toml",
                                                                      ".rspec",
                                                                      ".busted",
                                                                      "phpunit.xml",
                                                                      "CTestTestfile.cmake",
                                                                      "CTestCustom.cmake",
                                                                      "testng.xml",
                                                                      "xunit.runner.",
                                                                      "junit-platform.",
                                                                      "org.junit.",
                                                                      "Directory.Build.",
                                                                      "sitecustomize.py",
                                                                      "usercustomize.py"});

// Returns whether the file has the settings of a program, such as .npmrc, .yarnrc.yml and .bazelrc. Those of linters
// and formatters run no test.
bool is_rc_file(std::string_view name) {
  if (!name.starts_with('.')) return false;
  const std::string_view program = name.substr(1, name.find('.', 1) - 1);
  return program.ends_with("rc") && !contains_any(program, {"lint", "prettier"});
}

// Returns whether each line of the file can change what a test target does.
bool is_makefile(std::string_view name) { return contains_any(name, {"akefile"}) || name.ends_with(".mk"); }

// Replaces each number of a version, such as 1.2.3 and 2.0.0-rc.1, by a mark.
std::string without_versions(std::string_view line) {
  constexpr std::string_view digits = "0123456789", numbers = "0123456789.";
  constexpr std::string_view suffix = "-.0123456789abcdefghijklmnopqrstuvwxyz";
  std::string text;
  while (!line.empty()) {
    const std::size_t begin = std::min(line.find_first_of(digits), line.size());
    text += line.substr(0, begin);
    line.remove_prefix(begin);
    std::string_view number = line.substr(0, line.find_first_not_of(numbers));
    const bool version = std::ranges::count(number, '.') >= 2;
    if (version && line.substr(number.size()).starts_with('-')) number = line.substr(0, line.find_first_not_of(suffix));
    text += version ? std::string_view("#.#.#") : number;
    line.remove_prefix(number.size());
  }
  return text;
}

}  // namespace

bool is_test_path(std::string_view path) {
  const std::string in_root = "/" + std::string(path);
  const std::string_view name = name_of(path);
  const auto ends_as_test = [](std::string_view stem) {
    return ends_with_any(stem, {"_test", "_tests", "_spec", "-test", "Test", "Tests", "TestCase"}) || stem == "tests";
  };
  return contains_any(in_root, {"/test/", "/tests/", "/__tests__/", "/spec/", "/testdata/", "/__snapshots__/"}) ||
         starts_with_any(name, {"test_", "test-"}) || contains_any(name, {".test.", ".spec.", ".cy."}) ||
         ends_with_any(name,
                       {".t", ".bats", ".feature", "-spec.js", "-spec.ts", "Spec.scala", "Spec.kt", "Spec.groovy"}) ||
         ends_as_test(name.substr(0, name.find('.'))) || ends_as_test(name.substr(0, name.rfind('.')));
}

bool is_test_configuration(std::string_view path) {
  const std::string in_root = "/" + std::string(path);
  const std::string_view name = name_of(path);
  return starts_with_any(name, configuration_names) || is_rc_file(name) || name.ends_with(".runsettings") ||
         ends_with_any(in_root, {"/.cargo/config.toml", "/.cargo/config"}) ||
         (contains_any(in_root, {"/.mvn/"}) && !name.ends_with(".jar"));
}

bool may_configure_tests(std::string_view path) {
  constexpr auto names = std::to_array<std::string_view>({"pyproject.toml",
                                                          "setup.cfg",
                                                          "setup.py",
                                                          "package.json",
                                                          "composer.json",
                                                          "deno.json",
                                                          "deno.jsonc",
                                                          "Cargo.toml",
                                                          "pom.xml",
                                                          "build.gradle",
                                                          "build.gradle.kts",
                                                          "settings.gradle",
                                                          "settings.gradle.kts",
                                                          "gradle.properties",
                                                          "build.sbt",
                                                          "CMakeLists.txt",
                                                          "meson.build",
                                                          "mix.exs",
                                                          "Package.swift",
                                                          "justfile",
                                                          "Taskfile.yml",
                                                          "Taskfile.yaml",
                                                          "BUILD",
                                                          "BUILD.bazel",
                                                          "WORKSPACE",
                                                          "MODULE.bazel"});
  const std::string_view name = name_of(path);
  return std::ranges::find(names, name) != names.end() || is_makefile(name) || name.starts_with("vite.config.") ||
         ends_with_any(name, {".csproj", ".fsproj", ".cabal"});
}

bool diff_configures_tests(std::string_view diff, std::string_view path) {
  const bool any_line = is_makefile(name_of(path));
  bool counts = false;
  each_hunk(diff, [&](const Hunk& hunk) {
    const bool paired = hunk.removed.size() == hunk.added.size();
    if (hunk.removed.size() > hunk.added.size()) counts = true;
    for (std::size_t i = 0; i < hunk.added.size(); ++i) {
      if (paired && without_versions(hunk.removed[i]) == without_versions(hunk.added[i])) continue;
      counts = counts || any_line || !hunk.removed.empty() ||
               contains_any(hunk.added[i], {"test", "jest", "coverage", "addopts", "python_files", "python_classes",
                                            "python_functions", "norecurse", "collect_ignore", "exclude"});
    }
  });
  return counts;
}

bool is_document(std::string_view path) {
  return ends_with_any(path,
                       {".md", ".rst", ".txt", ".adoc", ".html", ".json", ".lock", ".po", ".csv", ".xml", ".svg"});
}

}  // namespace muniment::cli
