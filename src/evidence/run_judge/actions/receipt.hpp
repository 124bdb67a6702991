// Reads the result of a tool: whether the action was done, is pending or failed, and its values. JSON is read at any
// depth; text in it that is no status decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::run_judge {

inline constexpr std::size_t scalars_max = 512;             // scalars of a document
inline constexpr std::size_t scalar_bytes_max = 1'000;      // bytes of a scalar; the rest is ignored
inline constexpr std::size_t receipt_bytes_max = 64 << 10;  // a longer result is plain text

// A member of a JSON document whose value is text, a number or a boolean.
struct Scalar {
  std::string key;  // in lower case; an item of a list has the key of the list
  std::string text;
  std::string plain;  // plain(text)
  int record = -1;    // number of the object that contains it; -1: none
  int depth = 0;
  bool number = false;
};

// For each object of a document, the one that contains it; -1: none.
struct Records {
  std::vector<int> parents;
};

enum class Receipt : std::uint8_t { done, failed, pending, partly, unknown };

struct ToolResult {
  Receipt receipt = Receipt::unknown;
  std::string status;                     // the member or the words that decide
  std::string output;                     // stdout and stderr, or the text
  std::optional<std::int64_t> exit_code;  // of a result in JSON
  std::optional<reports::Counts> counts;  // {"passed": 3, "failed": 0}
  std::vector<Scalar> scalars;
  Records records;
  bool json = false;
};

// Appends the scalars of a value.
void add_scalars(std::vector<Scalar>& scalars, Records& records, const json::Value& value);

ToolResult result_of(std::string_view text);

// Returns whether a word of a status means that the action is not yet done, or that it failed.
bool is_pending_word(std::string_view status);
bool is_failed_word(std::string_view status);

}  // namespace muniment::evidence::run_judge
