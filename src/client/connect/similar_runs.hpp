// Finds runs with ids similar to an unknown one, for "Did you mean …?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/connect/client.hpp"

namespace muniment::cli {

// Returns at most three of the ids: first those that begin with `word`, shortest first, then those within an edit
// distance of a third of its length, nearest first.
std::vector<std::string> similar_ids(std::string_view word, const std::vector<std::string>& ids);

// Adds similar ids to an error: "no run buld-1. …" becomes "no run buld-1. Did you mean build-1? …". Requests the
// newest runs from the daemon. An error about anything else, or without similar runs, is unchanged.
Error with_similar_runs(Client& client, Error error);

}  // namespace muniment::cli
