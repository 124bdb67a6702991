// Queries git about a working tree. Every function returns nullopt or an empty result without git or a tree.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace muniment::cli {

// The state before the agent's work on a task.
struct TaskBase {
  std::string commit = "HEAD";    // of the tree in which the task was opened
  std::optional<Time> opened_at;  // nullopt: the command supports no task

  // Returns whether a file, or a link itself, changed after the task was opened. No user but root can set the time of a
  // change.
  bool is_newer(const std::string& path) const;
};

// Runs `git -C <folder> <words…>` and returns its output; nullopt if git is missing or fails. `settings` are further
// variables of its environment, "NAME=VALUE".
std::optional<std::string> git_output(const std::string& folder, std::vector<std::string> words,
                                      const std::vector<std::string>& settings = {});

// Git as it sees a working tree after a commit if the repository claims nothing about it: with an index made from the
// commit, which does not say that files are unchanged, and without the settings, attributes, filters and hooks of the
// repository. Attributes in the tree itself count.
class CommitView {
 public:
  CommitView(const std::string& folder, const std::string& commit);
  ~CommitView();
  CommitView(const CommitView&) = delete;
  CommitView& operator=(const CommitView&) = delete;

  const std::string& top() const { return top_; }  // the tree; empty: there is none
  bool made() const { return made_; }              // git knows the commit
  // Paths are relative to the tree.
  std::optional<std::string> git(std::vector<std::string> words) const {
    return git_output(top_, std::move(words), settings_);
  }

 private:
  const std::string top_;
  std::string temporary_;  // a repository without objects of its own
  std::vector<std::string> settings_;
  bool made_ = false;
};

// Splits a text at NUL bytes.
std::vector<std::string> split_at_nul(const std::string& text);

// Returns the commit of a tree digest "git:<commit> sha256:…"; empty if there is none.
std::string commit_of(const std::string& tree_digest);

}  // namespace muniment::cli
