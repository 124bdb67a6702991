// A rule of the sanitiser: a pattern and the conditions under which a match is a finding. The members have the meaning
// of a rule of gitleaks (config/gitleaks.toml of that project); the first tag is the class.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::bridge {

// Excludes matches: if one of the conditions holds or, with `all`, if every given kind of condition does.
struct Allowlist {
  enum class Target { secret, match, line };
  std::vector<std::string> regexes;    // search in the target
  std::vector<std::string> stopwords;  // lower case; occur in the secret
  Target target = Target::secret;
  bool all = false;
  std::vector<std::string> rules;  // of a global list: the rules to which it applies; empty: all
};

struct Rule {
  std::string id;
  std::string category;  // secret, personal, local or announced
  std::string regex;
  int secret_group = 0;               // 0: the first group that took part, otherwise the whole match
  double entropy = 0;                 // a secret needs more bits per character
  std::vector<std::string> keywords;  // lower case; one of them occurs in each text with a match
  std::vector<std::string> tags;      // conditions (check.hpp), "split" and "forward"
  std::vector<Allowlist> allowlists;

  bool has(std::string_view tag) const;
  bool begins_word() const;     // the pattern begins with \b
  std::string pattern() const;  // the pattern without that \b
};

struct RuleFile {
  std::vector<Rule> rules;
  std::vector<Allowlist> allowlists;        // of all rules
  std::vector<std::string> disabled_rules;  // ids of built-in rules
};

// Reads rules from the JSON form of the TOML file; paths and commits of allowlists are ignored. A rule without a
// pattern applies only to paths and is omitted. Errors: invalid_argument.
Result<RuleFile> read_rules(std::string_view json);
// Reads the TOML file itself. Errors: invalid_argument, too_large.
Result<RuleFile> read_toml_rules(std::string_view toml);

}  // namespace muniment::bridge
