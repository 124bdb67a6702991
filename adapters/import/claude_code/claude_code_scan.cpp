#include "adapters/import/claude_code/claude_code_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "adapters/import/claude_code/claude_code_result.hpp"
#include "base/crypto/sha256.hpp"

namespace muniment::cli {
namespace {

// Live recordings number lines by 63 bits of a hash, imports by their count.
constexpr std::uint64_t piece_mark = std::uint64_t{1} << 63;
constexpr unsigned count_bits = 40;
constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;

std::vector<std::uint64_t> identities_of(const json::Value& line) {
  std::vector<std::uint64_t> identities;
  if (const std::string uuid = line["uuid"].string_or(""); !uuid.empty())
    identities.push_back(short_hash("line " + uuid));
  const json::Value message = line["message"];
  if (line["type"].string_or("") == "assistant") {
    if (const std::string id = message["id"].string_or(""); !id.empty())
      identities.push_back(short_hash("message " + id));
    return identities;
  }
  if (!message["content"].is(json::Kind::array)) return identities;
  for (const json::Value block : message["content"]) {
    const std::string id = block["tool_use_id"].string_or("");
    if (!id.empty()) identities.push_back(short_hash("result " + id));
  }
  return identities;
}

}  // namespace

std::uint64_t short_hash(std::string_view text) {
  const Hash hash = sha256(text);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | hash[i];
  return number;
}

std::string line_text(std::uint64_t number) {
  if ((number & piece_mark) == 0) return fmt::format("{}", number);
  return fmt::format("{}.{}", number & count_mask, (number & ~piece_mark) >> count_bits);
}

std::int64_t line_count(std::uint64_t number) {
  return static_cast<std::int64_t>((number & piece_mark) == 0 ? number : number & count_mask);
}

std::uint64_t line_piece_of(std::uint64_t number, std::uint64_t piece) {
  if (piece == 0) return number;
  if (number > count_mask) return short_hash(fmt::format("{} {}", number, piece)) >> 1;
  return piece_mark | piece << count_bits | number;
}

void SessionScan::take(const json::Value& line) {
  if (identities_ != nullptr) {
    for (const std::uint64_t identity : identities_of(line)) {
      if (!identities_->claim(identity, file_)) elsewhere_.insert(identity);
    }
  }
  if (line["type"].string_or("") != "assistant") return;
  const json::Value message = line["message"];
  const std::string id = message["id"].string_or("");
  if (id.empty()) return;
  MessageTotals& totals = totals_[id];
  if (std::string reason = message["stop_reason"].string_or(""); !reason.empty())
    totals.stop_reason = std::move(reason);
  const bool has_output = is_complete(message);
  std::string usage = is_of_stream(line) ? std::string() : usage_json(message["usage"], has_output);
  const std::int64_t output = has_output ? message["usage"]["output_tokens"].as_int().value_or(-1) : -1;
  if (usage.empty() || output < totals.output_tokens) return;
  totals.usage = std::move(usage);
  totals.output_tokens = output;
}

const MessageTotals* SessionScan::totals(const std::string& message_id) const {
  const auto known = totals_.find(message_id);
  return known == totals_.end() ? nullptr : &known->second;
}

bool SessionScan::is_elsewhere(const json::Value& line) const {
  if (elsewhere_.empty()) return false;
  const std::vector<std::uint64_t> identities = identities_of(line);
  return std::ranges::any_of(identities, [&](std::uint64_t identity) { return elsewhere_.contains(identity); });
}

}  // namespace muniment::cli
