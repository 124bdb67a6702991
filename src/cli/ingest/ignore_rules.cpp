#include "cli/ingest/ignore_rules.hpp"

#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

unsigned byte_of(char c) { return static_cast<unsigned char>(c); }

// Compares with [:alpha:] and other classes, in the C locale.
bool is_of_class(std::string_view name, int c) {
  constexpr std::pair<std::string_view, int (*)(int)> classes[] = {
      {"alnum", std::isalnum}, {"alpha", std::isalpha}, {"blank", std::isblank}, {"cntrl", std::iscntrl},
      {"digit", std::isdigit}, {"graph", std::isgraph}, {"lower", std::islower}, {"print", std::isprint},
      {"punct", std::ispunct}, {"space", std::isspace}, {"upper", std::isupper}, {"xdigit", std::isxdigit}};
  for (const auto& [known, holds] : classes) {
    if (known == name) return holds(c) != 0;
  }
  return false;
}

}  // namespace

Glob::Glob(std::string_view pattern) {
  std::size_t last_wild = 0;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    const bool starts_name = at == 0 || pattern[at - 1] == '/';
    if (c == '\\') {
      if (at + 1 == pattern.size()) broken_ = true;
      tokens_.push_back({Kind::literal, at + 1 < pattern.size() ? pattern[at + 1] : '\\', 0});
      at += 2;
      continue;
    }
    if (c == '*' && starts_name && pattern.substr(at, 3) == "**/") {
      tokens_.push_back({Kind::folders, 0, 0});
      at += 3;
    } else if (c == '*' && at > 0 && starts_name && pattern.substr(at) == "**") {
      tokens_.push_back({Kind::rest, 0, 0});
      at += 2;
    } else if (c == '*') {
      while (at < pattern.size() && pattern[at] == '*') ++at;
      tokens_.push_back({Kind::star, 0, 0});
    } else if (c == '?') {
      tokens_.push_back({Kind::one, 0, 0});
      ++at;
    } else if (c == '[') {
      tokens_.push_back({Kind::set, 0, sets_.size()});
      at = add_set(pattern, at);
      if (at == 0) {
        broken_ = true;
        return;
      }
    } else {
      tokens_.push_back({Kind::literal, c, 0});
      ++at;
      continue;
    }
    last_wild = tokens_.size();
  }
  for (std::size_t i = last_wild; i < tokens_.size(); ++i) tail_.push_back(tokens_[i].literal);
}

std::size_t Glob::add_set(std::string_view pattern, std::size_t at) {
  Set set;
  ++at;
  const bool inverted = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (inverted) ++at;
  for (bool first = true; at < pattern.size(); first = false) {
    if (pattern[at] == ']' && !first) {
      if (inverted) set.flip();
      set.reset(byte_of('/'));
      sets_.push_back(set);
      return at + 1;
    }
    if (pattern.substr(at, 2) == "[:") {
      const std::size_t end = pattern.find(":]", at + 2);
      if (end == std::string_view::npos) return 0;
      for (int c = 0; c < 256; ++c) {
        if (is_of_class(pattern.substr(at + 2, end - at - 2), c)) set.set(static_cast<std::size_t>(c));
      }
      at = end + 2;
      continue;
    }
    if (pattern[at] == '\\' && ++at == pattern.size()) return 0;
    const unsigned from = byte_of(pattern[at++]);
    unsigned to = from;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      if (pattern[++at] == '\\' && ++at == pattern.size()) return 0;
      to = byte_of(pattern[at++]);
    }
    for (unsigned c = from; c <= to; ++c) set.set(c);
  }
  return 0;
}

// Follows empty transitions. Each token has two states: 2i before it, and 2i + 1 within it (for "**/" in the middle of
// a name).
void Glob::close(std::vector<char>& states) const {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (states[2 * i] != 0 && (tokens_[i].kind == Kind::star || tokens_[i].kind == Kind::folders))
      states[2 * i + 2] = 1;
  }
}

bool Glob::matches(std::string_view text) const {
  if (broken_ || !text.ends_with(tail_)) return false;
  std::vector<char> now(2 * tokens_.size() + 2, 0), next(now.size(), 0);
  now[0] = 1;
  close(now);
  for (const char c : text) {
    next.assign(next.size(), 0);
    bool alive = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      const std::size_t before = 2 * i, within = before + 1, after = before + 2;
      if (now[before] == 0 && now[within] == 0) continue;
      switch (token.kind) {
        case Kind::literal: next[after] |= c == token.literal; break;
        case Kind::one: next[after] |= c != '/'; break;
        case Kind::set: next[after] |= sets_[token.set].test(byte_of(c)); break;
        case Kind::star: next[before] |= c != '/'; break;
        case Kind::folders: next[c == '/' ? before : within] = 1; break;
        case Kind::rest: next[after] = next[before] = 1; break;
      }
      alive = alive || next[before] != 0 || next[within] != 0 || next[after] != 0;
    }
    if (!alive) return false;
    std::swap(now, next);
    close(now);
  }
  return now[2 * tokens_.size()] != 0;
}

IgnoreRules::IgnoreRules(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (const auto line = take_line(text)) add(*line);
  add(text);
}

void IgnoreRules::add(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  if (line.empty() || line.starts_with('#')) return;
  const bool negated = line.starts_with('!');
  if (negated) line.remove_prefix(1);
  const bool folders_only = line.ends_with('/');
  if (folders_only) line.remove_suffix(1);
  const bool anchored = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return;
  rules_.push_back({Glob(line), negated, folders_only, anchored});
}

Verdict IgnoreRules::verdict(std::string_view path, bool folder) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_only && !folder) continue;
    if (rule->glob.matches(rule->anchored ? path : name)) return rule->negated ? Verdict::kept : Verdict::ignored;
  }
  return Verdict::silent;
}

}  // namespace muniment::cli
