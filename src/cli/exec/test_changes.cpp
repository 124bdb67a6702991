#include "cli/exec/test_changes.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "evidence/completion/diff.hpp"

namespace muniment::cli {
namespace {

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return name.starts_with(word); });
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return name.ends_with(word); });
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The path is a test or configures tests, by the conventions of common test runners.
bool is_test_path(const std::string& path) {
  const std::string in_root = "/" + path;
  const std::string_view name = name_of(path);
  const std::string_view stem = name.substr(0, name.find('.'));
  return contains_any(in_root, {"/test/", "/tests/", "/__tests__/", "/spec/", "/testdata/", "/__snapshots__/"}) ||
         starts_with_any(name, {"test_", "tests."}) || contains_any(name, {".test.", ".spec."}) ||
         stem.ends_with("_test") || stem.ends_with("_tests") || stem.ends_with("_spec") || stem.ends_with("Test") ||
         stem.ends_with("Tests");
}

// Beginnings of the names of files that configure tests.
constexpr std::array<std::string_view, 21> configuration_names = {".gitattributes",
                                                                  "conftest.py",
                                                                  "pytest.ini",
                                                                  ".pytest.ini",
                                                                  "pytest.toml",
                                                                  "tox.ini",
                                                                  "noxfile.py",
                                                                  "jest.config.",
                                                                  "jest.setup.",
                                                                  "vitest.config.",
                                                                  "vitest.workspace.",
                                                                  "karma.conf.",
                                                                  ".mocharc",
                                                                  "playwright.config.",
                                                                  "CTestTestfile.cmake",
                                                                  "CTestCustom.cmake",
                                                                  "phpunit.xml",
                                                                  ".coveragerc",
                                                                  ".rspec",
                                                                  "nextest.toml",
                                                                  "sitecustomize.py"};

bool is_test_configuration(const std::string& path) {
  return std::ranges::any_of(configuration_names,
                             [&](std::string_view name) { return name_of(path).starts_with(name); });
}

// Files that configure more than tests. A change counts if it removes or changes a line, or mentions tests; added
// lines, such as those of a new source or dependency, do not. Each line of a Makefile can change what a test target
// does.
bool may_configure_tests(std::string_view path) {
  constexpr std::array<std::string_view, 20> names = {
      "pyproject.toml", "setup.cfg",     "setup.py",         "package.json", "Cargo.toml",
      "Makefile",       "GNUmakefile",   "makefile",         "pom.xml",      "build.gradle",
      "CMakeLists.txt", "meson.build",   "build.gradle.kts", "Rakefile",     "mix.exs",
      "Package.swift",  "composer.json", "deno.json",        "justfile",     "Taskfile.yml"};
  return std::ranges::find(names, name_of(path)) != names.end();
}

// Calls `use` with each changed line of the diff, with its sign.
template <typename Use>
void each_changed_line(std::string_view diff, Use use) {
  bool in_hunk = false;
  while (!diff.empty()) {
    const std::size_t end = std::min(diff.find('\n'), diff.size());
    const std::string_view line = diff.substr(0, end);
    diff.remove_prefix(std::min(end + 1, diff.size()));
    if (line.starts_with("@@")) in_hunk = true;
    if (line.starts_with("diff --git ")) in_hunk = false;
    if (in_hunk && (line.starts_with('+') || line.starts_with('-'))) use(line);
  }
}

bool diff_configures_tests(std::string_view diff, std::string_view path) {
  bool counts = false;
  const bool any_line = contains_any(name_of(path), {"akefile"});
  each_changed_line(diff, [&](std::string_view line) {
    counts = counts || any_line || line[0] == '-' ||
             contains_any(line, {"test", "jest", "coverage", "addopts", "python_files", "python_classes",
                                 "python_functions", "norecurse", "collect_ignore", "exclude"});
  });
  return counts;
}

bool is_document(std::string_view path) {
  return ends_with_any(path,
                       {".md", ".rst", ".txt", ".adoc", ".html", ".json", ".lock", ".po", ".csv", ".xml", ".svg"});
}

class Comparison {
 public:
  Comparison(const std::string& folder, const TaskBase& base)
      : base_(base), commit_(base.commit), view_(folder, base.commit) {}

  TestChanges compare() {
    if (!view_.made() && commit_ == "HEAD") return {};
    if (view_.made()) {
      const std::vector<std::string> words = split_at_nul(git(with_diff({"--name-status", "-z"})));
      for (std::size_t i = 0; i + 1 < words.size(); i += 2) add_changed(words[i + 1]);
      for (const std::string& path :
           split_at_nul(git({"ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"})))
        add_new(path);
      add_ignored();
      add_skips();
    }
    if (!view_.made() || failed_) found_.paths.push_back("(git cannot compare with " + commit_ + ")");
    for (std::vector<std::string>* const list : {&found_.paths, &found_.skips}) {
      std::ranges::sort(*list);
      if (list->size() > changed_tests_max) list->resize(changed_tests_max);
    }
    found_.lines = preview(found_.lines, test_lines_bytes_max);
    return std::move(found_);
  }

 private:
  // A question that git does not answer must not look like a tree without changes.
  std::string git(std::vector<std::string> words) const {
    auto output = view_.git(std::move(words));
    failed_ = failed_ || !output;
    return std::move(output).value_or("");
  }

  std::vector<std::string> with_diff(std::vector<std::string> words) const {
    words.insert(words.begin(), {"diff", "--text", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
                                 "--ignore-submodules=dirty"});
    words.push_back(commit_);
    return words;
  }

  std::string diff_of(const std::string& path, const char* context) const {
    std::vector<std::string> words = with_diff({context});
    words.insert(words.end(), {"--", ":(top,literal)" + path});
    return git(std::move(words));
  }

  void add_ignored() {
    std::vector<std::string> words = {"ls-files", "-z", "--others", "--ignored", "--exclude-per-directory=.gitignore",
                                      "--"};
    for (const std::string_view name : configuration_names) words.push_back(":(top,glob)**/" + std::string(name) + "*");
    for (const std::string& path : split_at_nul(git(std::move(words)))) {
      if (!contains_any("/" + path, {"/node_modules/", "/site-packages/", "/dist-packages/", "/vendor/"}))
        add_new(path);
    }
  }

  void add_changed(const std::string& path) {
    const bool configures =
        is_test_configuration(path) || (may_configure_tests(path) && diff_configures_tests(diff_of(path, "-U0"), path));
    const bool test = is_test_path(path);
    if (!configures && test && test_only_gained(path)) return;
    if (configures || test) {
      found_.paths.push_back(path);
      keep_lines(path);
    }
  }

  // A file that was there before the task is no change within it.
  void add_new(const std::string& path) {
    const std::string place = view_.top() + "/" + path;
    if (base_.opened_at && !base_.is_newer(place)) return;
    if (is_test_configuration(path) || (may_configure_tests(path) && new_file_configures_tests(place))) {
      found_.paths.push_back(path);
    } else if (!is_test_path(path) && !is_document(path)) {
      if (new_sources_.size() == skip_files_max) found_.skips.push_back("(more new files than are searched)");
      if (new_sources_.size() <= skip_files_max) new_sources_.push_back(path);
    }
  }

  static bool new_file_configures_tests(const std::string& place) {
    const auto text = read_file(place, skip_file_bytes_max);
    if (!text) return true;
    std::string diff = "@@\n+";
    for (const char byte : *text) {
      diff += byte;
      if (byte == '\n') diff += '+';
    }
    return diff_configures_tests(diff, place);
  }

  bool test_only_gained(const std::string& path) const {
    const auto old_text = view_.git({"cat-file", "blob", commit_ + ":" + path});
    return old_text && evidence::completion::only_adds_tests(diff_of(path, "-U8"), *old_text);
  }

  void keep_lines(const std::string& path) {
    if (found_.lines.size() > test_lines_bytes_max) return;
    found_.lines += path + "\n";
    each_changed_line(diff_of(path, "-U0"), [&](std::string_view line) {
      const bool blank = line.find_first_not_of(" \t\r", 1) == std::string_view::npos;
      if (!blank && found_.lines.size() <= test_lines_bytes_max) found_.lines += preview(line, 200) + "\n";
    });
  }

  void add_skips() {
    // The pattern is wider than skips_tests, which decides.
    const std::string sources = git(with_diff(
        {"--name-only", "-z", "-G[Ss]kip|xfail|xit\\(|xdescribe|[Ii]gnore|Disabled|[Aa]ssum|todo|expectedFailure"}));
    for (const std::string& path : split_at_nul(sources)) {
      if (is_test_path(path) || is_test_configuration(path) || is_document(path)) continue;
      std::int64_t gained = 0;
      each_changed_line(diff_of(path, "-U0"), [&](std::string_view line) {
        if (evidence::completion::skips_tests(line.substr(1))) gained += line[0] == '+' ? 1 : -1;
      });
      if (gained > 0) found_.skips.push_back(path);
    }
    const std::filesystem::path root = view_.top();
    for (const std::string& path : new_sources_) {
      std::error_code failed;
      if (!std::filesystem::is_regular_file(root / path, failed)) continue;
      const auto text = read_file((root / path).string(), skip_file_bytes_max);
      if (text && evidence::completion::skips_tests(*text)) found_.skips.push_back(path);
    }
  }

  const TaskBase& base_;
  const std::string& commit_;
  const CommitView view_;
  mutable bool failed_ = false;
  std::vector<std::string> new_sources_;
  TestChanges found_;
};

}  // namespace

TestChanges test_changes(const std::string& folder, const TaskBase& base) {
  if (!git_output(folder, {"rev-parse", "--git-dir"})) return {};
  return Comparison(folder, base).compare();
}

}  // namespace muniment::cli
