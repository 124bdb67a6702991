// Defines Result<T>: a value or an Error. The closed list of codes is the contract of the socket (docs/protocol.md).
// Every code is of one of three kinds: the caller's mistake, transient (worth one retry), or halting (it stops a run).
// Only `is_transient` and `is_halting` distinguish the kinds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace muniment {

enum class Errc {
  invalid_argument,
  not_found,
  conflict,
  denied,
  over_budget,
  too_large,
  run_halted,
  unavailable,
  deadline_exceeded,
  corrupt,
  system_error,
};

std::string_view name_of(Errc code);
int rpc_code_of(Errc code);    // -32001 … -32011, in the order above
bool is_transient(Errc code);  // unavailable, deadline_exceeded
bool is_halting(Errc code);    // corrupt, system_error

// Reason why an append conflicts with the log, which determines the caller's next step. store/append/appender.hpp
// describes each.
enum class AppendConflict : std::uint8_t { none, maybe_duplicate, maybe_stored, moved_on, out_of_turn, other_run_seq };

// An error with a message that tells the caller what to do, and the fields of the reply's `data`.
struct Error {
  Errc code = Errc::system_error;
  std::string message;
  std::string run_id;                  // empty: concerns no run
  std::string pointer;                 // empty: concerns no pointer
  std::string outcome;                 // "unknown" if the append may be committed
  std::vector<std::string> event_ids;  // ids to send again if the outcome is unknown
  std::optional<std::int64_t> limit;   // the exceeded limit, in its own unit
  std::optional<std::int64_t> retry_after_ms;
  AppendConflict conflict = AppendConflict::none;
  bool hidden = false;  // reported as not_found, to hide that another owner has it

  Error() = default;
  Error(Errc c, std::string m) : code(c), message(std::move(m)) {}

  // Prepends context: "opening r1/a7: No such file".
  Error&& within(std::string_view context) &&;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design
  // Accepts a value that converts to T, such as an alternative of a variant or the value of an optional.
  template <typename U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, Result>)
      Result(U&& value)
      : held_(std::in_place_index<0>, std::forward<U>(value)) {}  // NOLINT: implicit by design

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(held_); }
  const T& value() const& { return std::get<0>(held_); }
  T&& value() && { return std::get<0>(std::move(held_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return std::get<1>(held_); }
  const Error& error() const& { return std::get<1>(held_); }
  Error&& error() && { return std::get<1>(std::move(held_)); }

 private:
  std::variant<T, Error> held_;
};

struct Done {};  // the value of an operation without a result
using Status = Result<Done>;
inline Status success() { return Done{}; }

}  // namespace muniment

#define MUNIMENT_CONCAT_(a, b) a##b
#define MUNIMENT_CONCAT(a, b) MUNIMENT_CONCAT_(a, b)
#define MUNIMENT_ASSIGN_(result, declaration, expression) \
  auto result = (expression);                             \
  if (!result) return std::move(result).error();          \
  declaration = std::move(result).value()

// ASSIGN_OR_RETURN(auto bytes, read_file(path)): assigns the value, or returns the error from this function.
#define ASSIGN_OR_RETURN(declaration, expression) \
  MUNIMENT_ASSIGN_(MUNIMENT_CONCAT(result_at_line_, __LINE__), declaration, expression)

// RETURN_IF_ERROR(sync(file)): for an operation without a value.
#define RETURN_IF_ERROR(expression)                      \
  do {                                                   \
    if (auto status_here = (expression); !status_here) { \
      return std::move(status_here).error();             \
    }                                                    \
  } while (false)
