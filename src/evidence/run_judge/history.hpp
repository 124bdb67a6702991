// The facts that a run's events have shown so far: edits, checks and files, each with the seq of its event.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/run_judge/checks.hpp"
#include "evidence/run_judge/kinds.hpp"
#include "evidence/run_judge/outcome.hpp"
#include "evidence/run_judge/run_judge.hpp"

namespace muniment::evidence::run_judge {

inline constexpr std::size_t checks_kept_max = 64;  // the newest checks of one kind since the last edit
inline constexpr std::size_t files_kept_max = 20'000;
inline constexpr std::size_t same_name_max = 64;  // files with the same base name

struct CheckFact {
  std::int64_t seq = 0;
  CheckRun run;
  CheckEnd end;
};

struct FileFact {
  std::string path;
  std::int64_t seq = 0;
  bool deleted = false;
  bool failed = false;      // the newest attempt to change the file failed
  bool only_asked = false;  // a command line names the file, and its output shows an error of some command
  bool made_here = false;   // the run created the file
};

class History {
 public:
  void add_check(std::int64_t seq, const CheckRun& run, CheckEnd end);
  // Adds a change of the tree without a file name.
  void add_unnamed_edit(std::int64_t seq) {
    changes_unnamed_ = true;
    add_edit(seq);
  }
  void add_file(std::int64_t seq, const FileEffect& file, bool failed, bool only_asked, bool created);

  Ruling judge(const Said& said) const;
  // Number of facts so far.
  std::uint64_t facts() const { return facts_; }
  std::optional<std::int64_t> last_edit() const { return last_edit_; }
  // Returns whether an edit has no file name, so that it can be that of any file.
  bool changes_unnamed() const { return changes_unnamed_; }
  bool has_checks() const {
    return std::any_of(checks_.begin(), checks_.end(),
                       [](const Checks& kept) { return kept.before || !kept.current.empty(); });
  }

 private:
  void add_edit(std::int64_t seq);

  struct Checks {
    std::vector<CheckFact> current;   // checks since the last edit, oldest first
    std::optional<CheckFact> before;  // newest check before the last edit
  };

  Ruling judge_check(const Said& said, Check check, bool failure) const;
  Ruling judge_state(const Said& said, const CheckFact& newest, bool failure) const;
  Ruling judge_deed(Check check) const;
  Ruling judge_behaviour(bool needs_edit) const;
  Ruling judge_file(const Said& said) const;
  const Checks& of(Check check) const { return checks_[static_cast<std::size_t>(check)]; }
  const FileFact* find_file(std::string_view path) const;

  std::array<Checks, checks> checks_;
  std::optional<std::int64_t> last_edit_;
  std::map<std::string, std::vector<FileFact>, std::less<>> files_;  // keys: base names
  std::size_t files_count_ = 0;
  std::uint64_t facts_ = 0;
  bool changes_unnamed_ = false;
  std::optional<FileFact> newest_written_, newest_created_, newest_deleted_;
};

}  // namespace muniment::evidence::run_judge
