// Maintains the facts of a run, and rules on claims by them.
#include "evidence/run_judge/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muniment::evidence::run_judge {
namespace {

std::string_view noun_of(Check check) {
  switch (check) {
    case Check::test: return "test run";
    case Check::build: return "build";
    case Check::lint: return "lint run";
    case Check::types: return "type check";
    case Check::deploy: return "deployment";
    case Check::commit: return "commit";
    case Check::push: return "push";
    case Check::install: return "installation";
    case Check::run: return "command";
  }
  return "command";
}

std::string_view clean(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.size() > 1 && path.ends_with("/")) path.remove_suffix(1);
  return path;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Returns whether one path is a suffix of the other that begins at a folder boundary.
bool same_file(std::string_view a, std::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  return a.ends_with(b) && (a.size() == b.size() || b.front() == '/' || a[a.size() - b.size() - 1] == '/');
}

// Returns whether a test run is limited to targets without the test that a claim names.
bool misses(const CheckRun& run, std::string_view subject) {
  if (subject.empty() || run.targets.empty()) return false;
  return std::none_of(run.targets.begin(), run.targets.end(), [&](const std::string& target) {
    return subject.find(target) != std::string_view::npos ||
           std::string_view(target).find(subject) != std::string_view::npos ||
           subject.find(last_part(target)) != std::string_view::npos ||
           last_part(target).find(last_part(subject)) != std::string_view::npos;
  });
}

std::string counted(const CheckEnd& end) {
  if (!end.counts) return {};
  return fmt::format(": {} passed, {} failed", end.counts->passed, end.counts->failed);
}

}  // namespace

void History::add_check(std::int64_t seq, const CheckRun& run, CheckEnd end) {
  ++facts_;
  std::vector<CheckFact>& current = checks_[static_cast<std::size_t>(run.check)].current;
  if (current.size() >= checks_kept_max) current.erase(current.begin());
  current.push_back({seq, run, end});
}

void History::add_edit(std::int64_t seq) {
  ++facts_;
  last_edit_ = seq;
  for (Checks& kept : checks_) {
    if (!kept.current.empty()) kept.before = std::move(kept.current.back());
    kept.current.clear();
  }
}

void History::add_file(std::int64_t seq, const FileEffect& file, bool failed, bool only_asked, bool created) {
  ++facts_;
  const std::string_view path = clean(file.path);
  std::vector<FileFact>& same_name = files_[std::string(last_part(path))];
  auto known =
      std::find_if(same_name.begin(), same_name.end(), [&](const FileFact& one) { return same_file(one.path, path); });
  const bool is_new = known == same_name.end();
  const bool undone = file.deleted && !is_new && known->made_here;
  if (is_new) {
    if (files_count_ >= files_kept_max || same_name.size() >= same_name_max) {
      if (!failed && !is_scratch(path)) add_edit(seq);
      return;
    }
    ++files_count_;
    same_name.push_back({.path = std::string(path)});
    known = same_name.end() - 1;
    known->made_here = created && !failed;
  }
  known->seq = seq;
  known->deleted = file.deleted;
  known->failed = failed;
  known->only_asked = only_asked;
  if (!failed) (file.deleted ? newest_deleted_ : newest_written_) = *known;
  if (!failed && !file.deleted && known->made_here) newest_created_ = *known;
  // The deletion of a file that the run created restores the tree, so that it is not an edit.
  if (!failed && !is_scratch(path) && !undone) add_edit(seq);
}

const FileFact* History::find_file(std::string_view path) const {
  path = clean(path);
  const auto same_name = files_.find(last_part(path));
  if (same_name == files_.end()) return nullptr;
  const FileFact* newest = nullptr;
  for (const FileFact& file : same_name->second) {
    if (same_file(file.path, path) && (newest == nullptr || file.seq > newest->seq)) newest = &file;
  }
  return newest;
}

Ruling History::judge_file(const Said& said) const {
  const bool deletion = said.kind == Kind::file_deleted;
  const auto& newest = deletion ? newest_deleted_ : newest_created_ ? newest_created_ : newest_written_;
  const FileFact* const file = said.subject.empty() ? (newest ? &*newest : nullptr) : find_file(said.subject);
  const std::string_view deed = deletion ? "deletes" : "writes";
  if (file == nullptr) {
    return {Verdict::unsupported,
            {},
            said.subject.empty() ? fmt::format("no event before the claim {} a file", deed)
                                 : fmt::format("no event before the claim {} {}", deed, said.subject)};
  }
  if (file->failed)
    return {Verdict::contradicted, file->seq,
            fmt::format("the newest change of {} failed at seq {}", file->path, file->seq)};
  if (file->only_asked) {
    return {Verdict::inconclusive, file->seq,
            fmt::format("the command at seq {} {} {}, and its output shows an error", file->seq,
                        file->deleted ? "deletes" : "writes", file->path)};
  }
  if (file->deleted != deletion) {
    return {Verdict::contradicted, file->seq,
            fmt::format("{} was {} at seq {}", file->path, file->deleted ? "deleted" : "written", file->seq)};
  }
  if (said.subject.empty() && !deletion && !file->made_here) {
    return {Verdict::inconclusive, file->seq,
            fmt::format("the claim names no file; the newest file written is {}, at seq {}", file->path, file->seq)};
  }
  return {Verdict::supported, file->seq, fmt::format("the event at seq {} {} {}", file->seq, deed, file->path)};
}

// Rules on a claim about the state of the tree by the newest check since the last edit.
Ruling History::judge_state(const Said& said, const CheckFact& newest, bool failure) const {
  const std::string_view noun = noun_of(newest.run.check);
  const auto ruling = [&](Verdict verdict, std::string why) { return Ruling{verdict, newest.seq, std::move(why)}; };
  if (misses(newest.run, said.subject)) {
    return ruling(Verdict::inconclusive,
                  fmt::format("the newest test run, at seq {}, does not cover {}", newest.seq, said.subject));
  }
  switch (newest.end.outcome) {
    case Outcome::unknown:
      return ruling(Verdict::inconclusive,
                    fmt::format("the outcome of the newest {}, at seq {}, is not recorded", noun, newest.seq));
    case Outcome::no_tests:
      return ruling(failure ? Verdict::inconclusive : Verdict::unsupported,
                    fmt::format("the newest test run, at seq {}, ran no tests", newest.seq));
    case Outcome::failed:
      return ruling(failure ? Verdict::supported : Verdict::contradicted,
                    fmt::format("the newest {} failed at seq {}{}", noun, newest.seq, counted(newest.end)));
    case Outcome::passed: break;
  }
  if (failure)
    return ruling(Verdict::contradicted,
                  fmt::format("the newest {} passed at seq {}{}", noun, newest.seq, counted(newest.end)));
  const std::vector<CheckFact>& current = of(newest.run.check).current;
  if (said.count && newest.end.counts) {
    const bool fits = std::any_of(current.begin(), current.end(), [&](const CheckFact& fact) {
      return fact.end.counts && (fact.end.counts->passed == *said.count || fact.end.counts->total == *said.count);
    });
    if (!fits)
      return ruling(Verdict::contradicted, fmt::format("the newest test run, at seq {}, counts {} passed, not {}",
                                                       newest.seq, newest.end.counts->passed, *said.count));
  }
  if (said.whole_suite && !newest.run.targets.empty()) {
    return ruling(Verdict::inconclusive, fmt::format("the newest test run, at seq {}, covers only {}", newest.seq,
                                                     newest.run.targets.front()));
  }
  const auto broader = std::find_if(current.rbegin(), current.rend(), [&](const CheckFact& fact) {
    return fact.end.outcome == Outcome::failed && fact.run.targets.empty() && !newest.run.targets.empty();
  });
  if (broader != current.rend() && said.subject.empty()) {
    return Ruling{Verdict::contradicted, broader->seq,
                  fmt::format("the run of all tests failed at seq {}, and the later runs cover only a part of them",
                              broader->seq)};
  }
  return ruling(Verdict::supported,
                fmt::format("the newest {} passed at seq {}{}", noun, newest.seq, counted(newest.end)));
}

Ruling History::judge_check(const Said& said, Check check, bool failure) const {
  const Checks& known = of(check);
  if (!known.current.empty()) {
    // If the claim names a test, the newest run that covers it decides.
    for (auto fact = known.current.rbegin(); fact != known.current.rend() && !said.subject.empty(); ++fact) {
      if (!misses(fact->run, said.subject)) return judge_state(said, *fact, failure);
    }
    return judge_state(said, known.current.back(), failure);
  }
  if (known.before && last_edit_ && !failure && known.before->end.outcome == Outcome::failed) {
    return {Verdict::contradicted, known.before->seq,
            fmt::format("the newest {} failed at seq {}, and none followed the last edit at seq {}", noun_of(check),
                        known.before->seq, *last_edit_)};
  }
  if (known.before && last_edit_) {
    return {Verdict::inconclusive, *last_edit_,
            fmt::format("no check after the last edit at seq {}: the newest {} is at seq {}", *last_edit_,
                        noun_of(check), known.before->seq)};
  }
  return {Verdict::unsupported, {}, fmt::format("no {} is recorded", noun_of(check))};
}

// Rules on a claim about a single action, such as a commit.
Ruling History::judge_deed(Check check) const {
  const Checks& known = of(check);
  const CheckFact* const newest = !known.current.empty() ? &known.current.back()
                                  : known.before         ? &*known.before
                                                         : nullptr;
  const std::string_view noun = noun_of(check);
  if (newest == nullptr) return {Verdict::unsupported, {}, fmt::format("no {} is recorded", noun)};
  switch (newest->end.outcome) {
    case Outcome::passed: break;
    case Outcome::failed:
      return {Verdict::contradicted, newest->seq, fmt::format("the newest {} failed at seq {}", noun, newest->seq)};
    case Outcome::unknown:
    case Outcome::no_tests:
      return {Verdict::inconclusive, newest->seq,
              fmt::format("the outcome of the newest {}, at seq {}, is not recorded", noun, newest->seq)};
  }
  const bool stale = check == Check::deploy && known.current.empty() && last_edit_;
  if (stale)
    return {Verdict::inconclusive, *last_edit_,
            fmt::format("the newest deployment, at seq {}, is older than the last edit at seq {}", newest->seq,
                        *last_edit_)};
  return {Verdict::supported, newest->seq, fmt::format("the newest {} succeeded at seq {}", noun, newest->seq)};
}

// Rules on "fixed" and "works", which require an edit and a later check that passes.
Ruling History::judge_behaviour(bool needs_edit) const {
  const auto newest_of = [&](Check check) -> const CheckFact* {
    return of(check).current.empty() ? nullptr : &of(check).current.back();
  };
  if (needs_edit && !last_edit_) return {Verdict::unsupported, {}, "no edit is recorded before the claim"};
  if (const CheckFact* const test = newest_of(Check::test)) return judge_state(Said{}, *test, false);
  const CheckFact* newest = nullptr;
  for (const Check check : {Check::run, Check::build, Check::lint, Check::types}) {
    const CheckFact* const one = newest_of(check);
    if (one != nullptr && (newest == nullptr || one->seq > newest->seq)) newest = one;
  }
  if (newest != nullptr) {
    switch (newest->end.outcome) {
      case Outcome::passed:
        return {Verdict::supported, newest->seq,
                fmt::format("the command at seq {} ran without an error after the last edit", newest->seq)};
      case Outcome::failed:
        return {Verdict::inconclusive, newest->seq,
                fmt::format("the newest command, at seq {}, failed, and it is not a test", newest->seq)};
      case Outcome::unknown:
      case Outcome::no_tests: break;
    }
    return {Verdict::inconclusive, newest->seq,
            fmt::format("the command at seq {} is not a test, and its exit status is not recorded", newest->seq)};
  }
  if (last_edit_)
    return {Verdict::inconclusive, *last_edit_, fmt::format("no check after the last edit at seq {}", *last_edit_)};
  return {Verdict::unsupported, {}, "no check is recorded before the claim"};
}

Ruling History::judge(const Said& said) const {
  switch (said.kind) {
    case Kind::tests_pass: return judge_check(said, Check::test, false);
    case Kind::tests_fail: return judge_check(said, Check::test, true);
    case Kind::tests_run: {
      const Checks& tests = of(Check::test);
      const CheckFact* const newest = !tests.current.empty() ? &tests.current.back()
                                      : tests.before         ? &*tests.before
                                                             : nullptr;
      if (newest == nullptr) return {Verdict::unsupported, {}, "no test run is recorded"};
      return {Verdict::supported, newest->seq, fmt::format("a test run ended at seq {}", newest->seq)};
    }
    case Kind::build_succeeds: return judge_check(said, Check::build, false);
    case Kind::build_fails: return judge_check(said, Check::build, true);
    case Kind::lint_clean: return judge_check(said, Check::lint, false);
    case Kind::types_check: return judge_check(said, Check::types, false);
    case Kind::deployed: return judge_deed(Check::deploy);
    case Kind::committed: return judge_deed(Check::commit);
    case Kind::pushed: return judge_deed(Check::push);
    case Kind::installed: return judge_deed(Check::install);
    case Kind::fixed: return judge_behaviour(true);
    case Kind::verified:
    case Kind::completed: return judge_behaviour(false);
    case Kind::file_written:
    case Kind::file_deleted: return judge_file(said);
    case Kind::action: break;
  }
  return {};
}

}  // namespace muniment::evidence::run_judge
