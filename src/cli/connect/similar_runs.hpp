// Runs whose ids are near to one that does not exist, for "Did you mean …?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/connect/client.hpp"

namespace muniment::cli {

// At most three of the ids: those that `word` begins, the shortest first, then those at most a third of its length away
// by edit distance, the nearest first.
std::vector<std::string> similar_ids(std::string_view word, const std::vector<std::string>& ids);

// "no run buld-1. …" → "no run buld-1. Did you mean build-1? …". Asks the daemon for its newest runs; the error stays
// as it is where it concerns something else, or no run is similar.
Error with_similar_runs(Client& client, Error error);

}  // namespace muniment::cli
