// Compares a record with the events that its translation made of it, so that no text of the record is lost: a text that
// is in no event is kept in an event of its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

// Returns the number of strings, numbers and booleans in the value, without empty strings.
std::uint64_t members_in(const json::Value& value);

// Adds an event x.<format>.source with the part "not_understood" to the first of the runs, if a text of the record is
// in none of their events. Its body has the texts by their places in the record, as in "info.notes.2".
void keep_lost_texts(const json::Value& record, std::string_view format, std::vector<ImportedRun>& runs);

// Returns x.<format>.<name>, with '_' for '-'.
std::string source_type(std::string_view format, std::string_view name);

}  // namespace muniment::cli
