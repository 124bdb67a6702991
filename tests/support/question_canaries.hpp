// Questions that hold a canary: a made-up secret, datum of a person or name of this machine, in its own form or in one
// that hides it, inside an ordinary question of several languages.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace muniment::testing {

struct CanaryQuestion {
  std::string kind;
  std::string how;                 // the canary is hidden
  std::string query;               // with the hidden canary
  std::vector<std::string> marks;  // in lower case, letters and digits alone; none of them may leave
  std::vector<std::string> words;  // of the canary, which the corpora hold
};

// `questions` are ordinary ones in English. The same seed makes the same canary.
CanaryQuestion make_canary(std::mt19937_64& random, const std::vector<std::string>& questions);

// Returns whether what would leave holds a mark.
bool leaks(const CanaryQuestion& canary, std::string_view sent);

}  // namespace muniment::testing
