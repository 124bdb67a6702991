// Rules and secrets of this machine, which its sanitisers use in addition to the built-in rules: the files of the
// settings sanitiser_rules and sanitiser_secrets, and the values of environment variables whose names imply a secret.
#pragma once

#include "base/config/config.hpp"
#include "base/result.hpp"
#include "bridge/known_secrets.hpp"
#include "bridge/rule.hpp"

namespace muniment::bridge {

struct LocalRules {
  RuleFile rules;
  KnownSecrets secrets;
};

// `environment` is NULL-terminated, like environ. Errors: those of the files, which name the setting: denied if others
// may write the rules or read the secrets, invalid_argument, too_large.
Result<LocalRules> read_local_rules(const Config& config, const char* const* environment);

}  // namespace muniment::bridge
