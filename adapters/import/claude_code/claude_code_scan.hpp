// Reads a session's files ahead of their translation: collects the last usage of each message, and finds the lines that
// an earlier file of the same import contains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/json/json.hpp"

namespace muniment::cli {

// Returns a hash that distinguishes ids within one import; it is never part of an event.
std::uint64_t short_hash(std::string_view text);

// Numbers of lines and, by line_piece_of, of the records in a line that has several.
std::string line_text(std::uint64_t number);    // "17", or "17.1"
std::int64_t line_count(std::uint64_t number);  // 17
std::uint64_t line_piece_of(std::uint64_t number, std::uint64_t piece);

// Identities of the lines, messages and results of one import; each belongs to the first file that claims it.
class LineIdentities {
 public:
  std::uint32_t add_file() { return ++files_; }
  // Returns false if the identity belongs to another file.
  bool claim(std::uint64_t identity, std::uint32_t file) {
    return owners_.try_emplace(identity, file).first->second == file;
  }

 private:
  std::uint32_t files_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> owners_;
};

struct MessageTotals {
  std::string usage;  // JSON, or empty; without the tokens that were written until the message is complete
  std::string stop_reason;
  std::int64_t output_tokens = -1;
};

class SessionScan {
 public:
  // `identities` may be null if the import has one file.
  explicit SessionScan(LineIdentities* identities = nullptr)
      : identities_(identities), file_(identities == nullptr ? 0 : identities->add_file()) {}

  void take(const json::Value& line);

  // Returns null for an unknown message.
  const MessageTotals* totals(const std::string& message_id) const;
  // Returns true for a line that belongs to another file.
  bool is_elsewhere(const json::Value& line) const;

 private:
  LineIdentities* identities_;
  std::uint32_t file_;
  std::unordered_map<std::string, MessageTotals> totals_;
  std::unordered_set<std::uint64_t> elsewhere_;
};

}  // namespace muniment::cli
