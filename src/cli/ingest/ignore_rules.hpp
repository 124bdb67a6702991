// Which paths a list of patterns names, as git reads .gitignore (gitignore(5)): the last pattern that fits decides, "!"
// takes back, a "/" before the end binds the pattern to its folder, a "/" at the end means folders only, "*" and "?"
// stay within a name, "**" between slashes crosses folders. Pure: text and paths in, decisions out. Compared byte by
// byte.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::cli {

// One glob. Its time is linear in the text for each of its characters, whatever stands in it.
class Glob {
 public:
  explicit Glob(std::string_view pattern);
  bool matches(std::string_view text) const;

 private:
  enum class Kind : std::uint8_t {
    literal,
    one,      // ?
    set,      // [a-z]
    star,     // a run of anything but "/", also none
    folders,  // "**/": whole folders, also none
    rest,     // "**" at the end: all that follows
  };
  struct Token {
    Kind kind = Kind::literal;
    char literal = 0;
    std::size_t set = 0;  // its place in sets_
  };
  using Set = std::bitset<256>;

  std::size_t add_set(std::string_view pattern, std::size_t at);  // answers where it ends; 0: it does not
  void close(std::vector<char>& states) const;

  std::vector<Token> tokens_;
  std::vector<Set> sets_;
  std::string tail_;     // what every match ends with
  bool broken_ = false;  // an open bracket, a lone backslash: matches nothing
};

enum class Verdict : std::uint8_t { silent, ignored, kept };

class IgnoreRules {
 public:
  IgnoreRules() = default;
  // The text of a .gitignore.
  explicit IgnoreRules(std::string_view text);

  void add(std::string_view line);
  bool empty() const { return rules_.empty(); }

  // `path` is relative to where the rules lie, without "/" at either end.
  Verdict verdict(std::string_view path, bool folder) const;

 private:
  struct Rule {
    Glob glob;
    bool negated = false;
    bool folders_only = false;
    bool anchored = false;  // against the whole path; otherwise against its last name
  };
  std::vector<Rule> rules_;
};

}  // namespace muniment::cli
