// Finds what must not leave this machine: keys and logins, data of persons, and places of this machine and its network.
//
// Vectorscan matches the patterns of all built-in rules (rules.toml) at once, in the text and in its other forms
// (text_view.hpp); RE2 then determines the exact place of each match. The rules of a user's file are matched by RE2
// alone. The database of the patterns is compiled during the build: a program links only the small runtime of
// Vectorscan, and a process that finds nothing pays nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::bridge {

struct LocalRules;

struct Finding {
  std::string_view rule;      // its id
  std::string_view category;  // secret, personal, local, announced, or known for a secret of this machine
  std::size_t offset = 0;
  std::size_t length = 0;
  bool open = false;  // a private key that continues behind the end of the text
};

// The classes that are searched for: in the recorded output of commands, secrets and values with a secret name; in
// texts that leave the machine, secrets, data of persons, and places.
enum class Scope { output, outbound };

// Not for use by several threads at once.
class Sanitiser {
 public:
  explicit Sanitiser(Scope scope);
  ~Sanitiser();
  Sanitiser(const Sanitiser&) = delete;
  Sanitiser& operator=(const Sanitiser&) = delete;

  // Adds the rules and allowlists of a file in the format of gitleaks. Errors: invalid_argument, too_large.
  Status add_rules(std::string_view toml);
  // Adds the rules of this machine and takes over its secrets. Errors: invalid_argument.
  Status use(const LocalRules& local);

  // Returns the findings in order of their offset; they may overlap. Their views live as long as this object.
  std::vector<Finding> find(std::string_view text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Replaces the findings, which are in order of their offset; overlapping ones together, by the replacement of the
// first. Returns the number of replacements.
std::size_t redact(std::string& text, const std::vector<Finding>& findings,
                   const std::function<std::string(const Finding&)>& replacement);

}  // namespace muniment::bridge
