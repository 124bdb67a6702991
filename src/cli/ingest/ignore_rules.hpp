// Matches paths against patterns as git does for .gitignore (gitignore(5)): the last matching pattern decides, "!"
// negates, a "/" before the end anchors the pattern to its folder, a "/" at the end matches only folders, "*" and "?"
// match within a name, "**" between slashes matches folders. A pure function; comparison is byte by byte.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::cli {

// One glob. Matching takes time proportional to pattern length times text length for every pattern.
class Glob {
 public:
  explicit Glob(std::string_view pattern);
  bool matches(std::string_view text) const;

 private:
  enum class Kind : std::uint8_t {
    literal,
    one,      // ?
    set,      // [a-z]
    star,     // any number of characters except "/"
    folders,  // "**/": any number of folders
    rest,     // "**" at the end: the whole rest
  };
  struct Token {
    Kind kind = Kind::literal;
    char literal = 0;
    std::size_t set = 0;  // index in sets_
  };
  using Set = std::bitset<256>;

  std::size_t add_set(std::string_view pattern, std::size_t at);  // returns its end; 0: unterminated
  void close(std::vector<char>& states) const;

  std::vector<Token> tokens_;
  std::vector<Set> sets_;
  std::string tail_;     // suffix of every match
  bool broken_ = false;  // an unterminated bracket or trailing backslash: matches nothing
};

enum class Verdict : std::uint8_t { silent, ignored, kept };

class IgnoreRules {
 public:
  IgnoreRules() = default;
  // Adds the text of a .gitignore.
  explicit IgnoreRules(std::string_view text);

  void add(std::string_view line);
  bool empty() const { return rules_.empty(); }

  // `path` is relative to the folder of the rules, without "/" at either end.
  Verdict verdict(std::string_view path, bool folder) const;

 private:
  struct Rule {
    Glob glob;
    bool negated = false;
    bool folders_only = false;
    bool anchored = false;  // true: matched against the whole path; false: against the last name
  };
  std::vector<Rule> rules_;
};

}  // namespace muniment::cli
