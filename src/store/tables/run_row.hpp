// Derives a run's row from its events (docs/format.md, Rows). It is pure, so the follower that maintains the table and
// the code that reads ahead of it agree.
#pragma once

#include <string>
#include <string_view>

#include "events/event.hpp"
#include "store/append/rows.hpp"

namespace muniment::store {

// Returns whether events of this type change a row.
bool changes_run_row(std::string_view type);

// Applies the next event of the run; run.started sets the whole row. A redacted event counts as an empty body.
void apply_to_row(RunRow& row, const events::Event& event);

// Merges two objects of scalars by RFC 7386: a null in `changes` removes the member, any other value sets it. Members
// of `labels` keep their order. As in the run's state, changes that would exceed the limit of labels are ignored.
std::string merge_labels(std::string_view labels, std::string_view changes);

// Returns the labels that the table stores: all of them, or none if jsonb would print more than its CHECK permits,
// which must not stop a follower, a rebuild or an erasure.
std::string_view stored_labels(const RunRow& row);

}  // namespace muniment::store
