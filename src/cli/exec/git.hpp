// Queries git about a working tree. Every function returns nullopt or an empty result without git or a tree.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace muniment::cli {

inline constexpr std::chrono::seconds git_patience{20};          // for an answer about the repository
inline constexpr std::chrono::seconds comparison_patience{600};  // for one that reads every file of the tree

// The state before the agent's work on a task.
struct TaskBase {
  std::string commit = "HEAD";    // of the tree in which the task was opened
  std::optional<Time> opened_at;  // nullopt: the command supports no task
  std::string tree_digest;        // of the tree when the task was opened; empty: unknown

  // Returns whether a file, or a link itself, changed after the task was opened.
  bool is_newer(const std::string& path) const;
};

// Runs `git -C <folder> <words…>` and returns its output; nullopt if git is missing, fails or does not end in time: a
// FIFO among its settings blocks it. `settings` are further variables of its environment, "NAME=VALUE". `input` is the
// file that it reads.
std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words,
                                      const std::vector<std::string>& settings = {},
                                      std::chrono::milliseconds patience = git_patience,
                                      const std::string& input = "/dev/null");

// Git as it sees a working tree after a commit if the repository claims nothing about it: with an index made from the
// commit, which does not say that files are unchanged, and without the settings, attributes, filters and hooks of the
// repository. Attributes in the tree itself count. The objects are those of the repository, whose files anyone with
// access can overwrite: the ids of the commit and of its folders are checked, those of files by `each_blob`.
class CommitView {
 public:
  CommitView(const std::string& folder, const std::string& commit);
  ~CommitView();
  CommitView(const CommitView&) = delete;
  CommitView& operator=(const CommitView&) = delete;

  const std::string& top() const { return top_; }  // the tree; empty: there is none
  bool made() const { return made_; }              // git knows the commit
  bool authentic() const { return authentic_; }    // the commit and its folders have the content that the id states
  const std::string& commit() const { return commit_; }  // its id; empty: git does not know it
  // Paths are relative to the tree.
  std::optional<std::string> git(std::vector<std::string> words) const {
    return git_output(top_, std::move(words), settings_, comparison_patience);
  }
  // Calls `use` with the place of each id and the content of its blob. Returns the first id that git does not know or
  // whose blob has other content than the id states; empty: none.
  std::string each_blob(const std::vector<std::string>& ids,
                        const std::function<void(std::size_t, std::string_view)>& use) const;

 private:
  void read_commit();

  std::string top_, commit_;
  std::string temporary_;  // a repository without objects of its own
  std::vector<std::string> settings_;
  std::size_t id_digits_ = 0;
  bool made_ = false, authentic_ = false;
};

// Splits a text at NUL bytes.
std::vector<std::string> split_at_nul(const std::string& text);

// Returns the commit of a tree digest "git:<commit> sha256:…"; empty if there is none.
std::string commit_of(const std::string& tree_digest);

}  // namespace muniment::cli
