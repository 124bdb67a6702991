#include "cli/show/line_match.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

namespace muniment::cli {
namespace {

constexpr std::int64_t memory_bytes_max = 16 << 20;  // limit for a compiled pattern and its automaton

}  // namespace

LineMatch::LineMatch(std::unique_ptr<re2::RE2> pattern) : pattern_(std::move(pattern)) {}
LineMatch::LineMatch(LineMatch&&) noexcept = default;
LineMatch::~LineMatch() = default;

Result<LineMatch> LineMatch::compile(std::string_view pattern, bool ignore_case, bool literal) {
  if (pattern.empty())
    return Error(Errc::invalid_argument, "an empty pattern matches everywhere; pass at least one character");
  if (pattern.size() > pattern_bytes_max) {
    return Error(Errc::too_large, fmt::format("the pattern has {} bytes, limit {}", pattern.size(), pattern_bytes_max));
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_case_sensitive(!ignore_case);
  options.set_literal(literal);
  options.set_max_mem(memory_bytes_max);
  auto compiled = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled->ok()) return Error(Errc::invalid_argument, "the pattern does not compile: " + compiled->error());
  return LineMatch(std::move(compiled));
}

std::optional<LineMatch::Span> LineMatch::find(std::string_view line) const {
  re2::StringPiece found;
  const re2::StringPiece text(line.data(), line.size());
  if (!pattern_->Match(text, 0, line.size(), re2::RE2::UNANCHORED, &found, 1)) return std::nullopt;
  const auto begin = static_cast<std::size_t>(found.data() - line.data());
  return Span{begin, begin + found.size()};
}

}  // namespace muniment::cli
