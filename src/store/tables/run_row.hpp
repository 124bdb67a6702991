// What a run's events make of its row (docs/format.md, Rows): pure, so that the follower which
// keeps the table and whoever is ahead of it say the same.
#pragma once

#include <string>
#include <string_view>

#include "events/event.hpp"
#include "store/append/rows.hpp"

namespace muniment::store {

// The types that change a row.
bool changes_run_row(std::string_view type);

// Applies the next event of the run; run.started fills the whole row. A redacted event counts as an
// empty body.
void apply_to_row(RunRow& row, const events::Event& event);

// RFC 7386 on two objects of scalars: what is null in `changes` goes, what is not is set. Members
// of `labels` keep their order. As in the run's state, changes that would make them too many are refused.
std::string merge_labels(std::string_view labels, std::string_view changes);

// What the table holds of the labels of a run: all of them, or none where jsonb would print more than its CHECK allows,
// which must stop no follower, no rebuild and no erasure.
std::string_view stored_labels(const RunRow& row);

}  // namespace muniment::store
