// The rows of a revision, as its document.revised event determines them.
#pragma once

#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "events/event.hpp"
#include "store/read/corpus_rows.hpp"

namespace muniment::store {

// Returns the artifact that holds the chunks of a document with a long list; nullopt: the body holds them.
std::optional<Uuid> chunk_list_of(const json::Value& body);

// Returns the revision and its chunks, without their ids. `body` is that of the event; `long_list` is the text of the
// artifact that holds the chunks, if any.
Revised revised_by(const events::Event& event, const json::Value& body, std::string_view long_list);

}  // namespace muniment::store
