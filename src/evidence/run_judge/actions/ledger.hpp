// The calls of a run that act on the world, with their receipts, and the results of the calls that only read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/run_judge/actions/acts.hpp"
#include "evidence/run_judge/actions/receipt.hpp"
#include "evidence/run_judge/actions/values.hpp"
#include "evidence/run_judge/checks.hpp"
#include "evidence/run_judge/run_judge.hpp"

namespace muniment::evidence::run_judge {

inline constexpr std::size_t actions_kept_max = 256;    // the newest calls that act
inline constexpr std::size_t reads_kept_max = 128;      // the newest results that only show
inline constexpr std::size_t pool_bytes_max = 8 << 10;  // text of a call or a result that is compared

inline constexpr std::size_t slots_max = 128;  // values of a call or a result
inline constexpr std::size_t targets_max = 8;

// A value of a call, with the name of its member.
struct Slot {
  std::string key;
  Value value;
};

// A call, as its name and its arguments describe it.
struct ToolCall {
  std::string name;
  std::vector<std::string> words;  // of the name, the path, the command
  Effects effects = 0;             // 0: it only reads
  bool opaque = false;             // neither the name nor the arguments show its effects
  bool shell = false;              // a command line
  bool edits = false;              // it changes files
  std::vector<int> things;         // named by the words
  std::vector<int> member_things;  // named by the members of the arguments
  std::string title;               // plain text of the words
  std::vector<Scalar> arguments;
  std::vector<Slot> slots;
  std::string pool;      // plain text of the name and the arguments
  bool undoing = false;  // its name says that it undoes another call
  std::size_t list = 1;  // number of items of its longest list
};

// `line`: the command line of a shell.
ToolCall tool_call(std::string_view name, const json::Value& arguments, std::string_view line, bool edits);

// A call and its result.
struct Action {
  std::int64_t seq = 0;  // of the result
  ToolCall call;
  Receipt receipt = Receipt::unknown;
  std::string status;
  std::vector<Scalar> scalars;
  Records records;
  std::vector<Slot> slots;           // of the result
  std::string pool;                  // plain text of the result
  bool payment = false;              // it has an amount or a means of payment
  std::vector<Value> targets{};      // ids of the target, at most targets_max
  std::vector<std::size_t> words{};  // sorted hashes of the words of both texts
};

class Ledger {
 public:
  void add(Action action);
  void add_user_text(std::string_view text);
  Ruling judge(const Act& act) const;
  // Returns a contradiction if the sentence names the target of a call that failed or is pending as if it were done.
  std::optional<Ruling> hidden_failure(std::string_view sentence) const;
  // Rules on a statement that the checks of a service of integration pass.
  Ruling judge_service(std::string_view service) const;
  bool is_empty() const { return calls_ == 0; }
  bool has_actions() const { return !actions_.empty(); }
  // Returns whether the effects of a call are not known.
  bool has_opaque() const {
    return std::any_of(actions_.begin(), actions_.end(), [](const Action& action) { return action.call.opaque; });
  }

 private:
  std::vector<const Action*> matching(const Act& act) const;
  const Action* chosen(const Act& act, const std::vector<const Action*>& matching) const;
  std::optional<Ruling> mismatch(const Act& act, const std::vector<const Action*>& matching,
                                 const Action& chosen) const;
  std::optional<Ruling> value_mismatch(const Value& value, const Act& act, const std::vector<const Action*>& matching,
                                       const Action& chosen) const;
  std::optional<Ruling> id_mismatch(const Value& value, const Act& act, const Action* refused,
                                    const Action& chosen) const;
  std::optional<Ruling> name_mismatch(const Act& act, const std::vector<const Action*>& matching,
                                      const Action& chosen) const;
  std::optional<Ruling> count_mismatch(const Act& act, const std::vector<const Action*>& matching) const;
  std::optional<Ruling> unlike_later(const Act& act, const Action& chosen) const;
  Ruling outcome(const Act& act, const std::vector<const Action*>& matching, const Action& chosen) const;
  Ruling absence(const Act& act) const;
  bool is_linked(const std::string& name, const Action& action) const;
  bool is_seen(const Value& value) const;
  bool was_pending_before(const Action& action) const;

  std::deque<Action> actions_;
  std::deque<Action> reads_;
  std::string user_text_;
  std::uint64_t calls_ = 0;
  bool forgot_ = false;  // a call or a part of a text was left out
};

}  // namespace muniment::evidence::run_judge
