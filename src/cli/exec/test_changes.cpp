#include "cli/exec/test_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "cli/exec/changed_lines.hpp"
#include "cli/exec/test_paths.hpp"
#include "cli/exec/tree_digest.hpp"
#include "evidence/completion/changes/diff.hpp"
#include "evidence/completion/changes/rust_tests.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t program_bytes_max = 16 * 1024 * 1024;  // of a program that is searched for tests
constexpr const char* whole_file = "-U100000000";            // lines of context

// Returns whether an installed package has the file.
bool is_of_package(const std::string& path) {
  for (const char* folder : {"/site-packages/", "/dist-packages/", "/vendor/"}) {
    if (("/" + path).find(folder) != std::string::npos) return true;
  }
  return false;
}

// "0123456789ab", as people name a commit.
std::string shown(const std::string& commit) { return commit.substr(0, 12); }

class Comparison {
 public:
  Comparison(const TaskBase& base, const CommitView& view) : base_(base), view_(view) {}

  TestChanges compare() {
    if (view_.top().empty() || (!view_.made() && base_.commit == "HEAD")) return {};
    if (!view_.made()) {
      add_reason(
          fmt::format("commit {}, at which the task was opened, is no longer in the repository, so that they cannot "
                      "be compared: fetch or restore it, or open a new task",
                      shown(base_.commit)));
    } else if (!view_.authentic()) {
      add_reason(forged("the commit " + shown(view_.commit())));
    } else {
      add_changed_files();
      for (const std::string& path :
           split_at_nul(git({"ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"})))
        add_new(path);
      add_ignored();
      add_skips();
      if (failed_) add_reason(fmt::format("git cannot compare with the commit {}", shown(view_.commit())));
    }
    for (std::vector<std::string>* const list : {&found_.paths, &found_.skips}) {
      std::ranges::sort(*list);
      if (list->size() > changed_tests_max) list->resize(changed_tests_max);
    }
    found_.lines = preview(found_.lines, test_lines_bytes_max);
    return std::move(found_);
  }

 private:
  static std::string forged(const std::string& what) {
    return fmt::format("the repository lacks {}, or has other bytes for it than its id states: restore its objects",
                       what);
  }

  // A reason why nothing can be compared takes the place of the names.
  void add_reason(const std::string& reason) { found_.paths.push_back("(" + reason + ")"); }

  void add_changed_files() {
    // ":MODE MODE ID ID STATUS" before each path
    const std::vector<std::string> words = split_at_nul(git(with_diff({"--raw", "--no-abbrev", "-z"})));
    std::vector<std::string> paths, ids;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      const std::string& about = words[i];
      if (!about.starts_with(":10") && !about.starts_with(":12")) continue;  // a submodule
      paths.push_back(words[i + 1]);
      ids.push_back(about.substr(15, about.find(' ', 15) - 15));
    }
    const std::string fault = view_.each_blob(ids, [](std::size_t, std::string_view) {});
    if (!fault.empty())
      add_reason(forged(paths[static_cast<std::size_t>(std::ranges::find(ids, fault) - ids.begin())]));
    for (const std::string& path : paths) add_changed(path);
  }

  // A question that git does not answer must not look like a tree without changes.
  std::string git(std::vector<std::string> words) const {
    auto output = view_.git(std::move(words));
    failed_ = failed_ || !output;
    return std::move(output).value_or("");
  }

  std::vector<std::string> with_diff(std::vector<std::string> words) const {
    words.insert(words.begin(), {"diff", "--text", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
                                 "--ignore-submodules=dirty"});
    words.push_back(view_.commit());
    return words;
  }

  std::string diff_of(const std::string& path, const char* context) const {
    std::vector<std::string> words = with_diff({context});
    words.insert(words.end(), {"--", ":(top,literal)" + path});
    return git(std::move(words));
  }

  void add_ignored() {
    for (const std::string& path :
         split_at_nul(git({"ls-files", "-z", "--others", "--ignored", "--exclude-per-directory=.gitignore", "--",
                           ":(exclude,glob)**/node_modules/**"}))) {
      const bool generated = path.ends_with("CTestTestfile.cmake");  // by CMake, with each build folder
      if (is_test_configuration(path) && !generated && !is_of_package(path)) add_new(path);
    }
  }

  void add_changed(const std::string& path) {
    const bool configures =
        is_test_configuration(path) || (may_configure_tests(path) && diff_configures_tests(diff_of(path, "-U0"), path));
    const bool test = is_test_path(path) || (path.ends_with(".rs") && changes_inner_tests(path));
    if (!configures && is_test_path(path) && test_only_gained(path)) return;
    if (configures || test) {
      found_.paths.push_back(path);
      keep_lines(path);
    }
  }

  // A file that was there before the task is no change within it.
  void add_new(const std::string& path) {
    const std::string place = view_.top() + "/" + path;
    if (base_.opened_at && !base_.is_newer(place)) return;
    if (is_test_configuration(path) || governs_tests(place) ||
        (may_configure_tests(path) && new_file_configures_tests(place))) {
      found_.paths.push_back(path);
    } else if (!is_test_path(path) && !is_document(path)) {
      if (new_sources_.size() == skip_files_max) found_.skips.emplace_back("(more new files than are searched)");
      if (new_sources_.size() <= skip_files_max) new_sources_.push_back(path);
    }
  }

  // Returns whether a new file decides how the tests of other files run.
  static bool governs_tests(const std::string& place) {
    const std::string_view hook = place.ends_with("_test.go")       ? "\nfunc TestMain("
                                  : place.ends_with("/__init__.py") ? "load_tests"
                                                                    : "";
    if (hook.empty()) return false;
    const auto text = read_file(place, skip_file_bytes_max);
    return !text || ("\n" + *text).find(hook) != std::string::npos;
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

  std::string old_text(const std::string& path) const { return git({"cat-file", "blob", view_.commit() + ":" + path}); }

  bool test_only_gained(const std::string& path) const {
    return evidence::completion::only_adds_tests(diff_of(path, "-U8"), old_text(path));
  }

  bool changes_inner_tests(const std::string& path) const {
    const auto text = read_file(view_.top() + "/" + path, program_bytes_max);
    return evidence::completion::changes_rust_tests(diff_of(path, whole_file), old_text(path), text.ok() ? *text : "");
  }

  void keep_lines(const std::string& path) {
    if (found_.lines.size() > test_lines_bytes_max) return;
    found_.lines += path + "\n";
    const std::string diff = diff_of(path, "-U0");
    const auto keep = [&](char sign, const std::vector<std::string_view>& lines) {
      for (const std::string_view line : lines) {
        const bool blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
        if (!blank && found_.lines.size() <= test_lines_bytes_max) found_.lines += sign + preview(line, 200) + "\n";
      }
    };
    each_hunk(diff, [&](const Hunk& hunk) {
      keep('-', hunk.removed);
      keep('+', hunk.added);
    });
  }

  void add_skips() {
    // The pattern is wider than skips_tests, which decides.
    const std::string sources = git(with_diff(
        {"--name-only", "-z", "-G[Ss]kip|xfail|xit\\(|xdescribe|[Ii]gnore|Disabled|[Aa]ssum|todo|expectedFailure"}));
    for (const std::string& path : split_at_nul(sources)) {
      if (is_test_path(path) || is_test_configuration(path) || is_document(path)) continue;
      std::ptrdiff_t gained = 0;
      const std::string diff = diff_of(path, "-U0");
      each_hunk(diff, [&](const Hunk& hunk) {
        gained += std::ranges::count_if(hunk.added, evidence::completion::skips_tests) -
                  std::ranges::count_if(hunk.removed, evidence::completion::skips_tests);
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
  const CommitView& view_;
  mutable bool failed_ = false;
  std::vector<std::string> new_sources_;
  TestChanges found_;
};

}  // namespace

TestChanges test_changes(const std::string& folder, const TaskBase& base) {
  const CommitView view(folder, base.commit);
  // A commit that was rewritten and removed is replaced by one with the same files.
  const auto same = view.made() ? std::nullopt : commit_with_digest(folder, base.tree_digest);
  if (!same) return Comparison(base, view).compare();
  const CommitView other(folder, *same);
  return Comparison(base, other).compare();
}

}  // namespace muniment::cli
