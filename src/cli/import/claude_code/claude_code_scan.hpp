// A first reading of a session's files, for figures that no single line has: the last usage of each message, and the
// lines that another file of the same import has already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/json/json.hpp"

namespace muniment::cli {

// A short hash that tells ids apart within an import; never part of an event.
std::uint64_t short_hash(std::string_view text);

// A line's number; from line_piece_of on, one of several records in the same line.
std::string line_text(std::uint64_t number);    // "17", or "17.1"
std::int64_t line_count(std::uint64_t number);  // 17
std::uint64_t line_piece_of(std::uint64_t number, std::uint64_t piece);

// Identities of lines, messages and results over all files of one import; the first file has them.
class LineIdentities {
 public:
  std::uint32_t add_file() { return ++files_; }
  // False: a file that was added before has it.
  bool claim(std::uint64_t identity, std::uint32_t file) {
    return owners_.try_emplace(identity, file).first->second == file;
  }

 private:
  std::uint32_t files_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> owners_;
};

struct MessageTotals {
  std::string usage;  // JSON, or empty
  std::string stop_reason;
  std::int64_t output_tokens = -1;
};

class SessionScan {
 public:
  // `identities` may be null: there is no other file.
  explicit SessionScan(LineIdentities* identities = nullptr)
      : identities_(identities), file_(identities == nullptr ? 0 : identities->add_file()) {}

  void take(const json::Value& line);

  // Null for a message that is not known.
  const MessageTotals* totals(const std::string& message_id) const;
  // True for a line that another file has.
  bool is_elsewhere(const json::Value& line) const;

 private:
  LineIdentities* identities_;
  std::uint32_t file_;
  std::unordered_map<std::string, MessageTotals> totals_;
  std::unordered_set<std::uint64_t> elsewhere_;
};

}  // namespace muniment::cli
