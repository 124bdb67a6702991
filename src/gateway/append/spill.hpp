// Spills long content: text that is too long for an event's body becomes an artifact of the same run and step, and the
// body refers to it. Content parts over 8 KiB are always spilled; if the body still exceeds its limit, long strings
// anywhere follow, the longest first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/call.hpp"
#include "store/append/rows.hpp"
#include "store/files/artifact_files.hpp"
#include "store/tables/runs.hpp"

namespace muniment::gateway {

// The spilled content of one request's events. The destructor removes the stored files unless the events were appended.
struct Spilled {
  struct Part {
    std::size_t event = 0;  // index in the request
    Uuid artifact_id;
    Hash hash{};
    std::int64_t size_bytes = 0;
    std::string path;  // JSON pointer to its former place in the body
  };
  struct Content {
    std::size_t event = 0;  // the first event that refers to it
    Uuid artifact_id;
    Hash hash{};
    std::string step_id;
    std::string mime_type;
    std::string bytes;
  };
  struct Artifact {
    std::size_t event = 0;
    store::ArtifactRow row;
    store::StoredFile file;
  };
  std::vector<Part> parts;
  std::vector<Content> contents;    // one entry for equal bytes in a step; not stored yet
  std::vector<Artifact> artifacts;  // the contents that were stored
};

// Returns whether spilling could shorten `body`. Does not read the values.
bool may_spill(const json::Value& body);

// Returns the body to store instead of `body`, which belongs to the event `event` of the request. The referenced
// content is added to `spilled` under new ids. Accesses neither files nor Postgres. Errors: too_large if the body does
// not fit even then.
Result<std::string> spill_body(const store::Run& run, std::string_view step_id, std::string_view type,
                               const json::Value& body, std::size_t event, Time now, Spilled& spilled);

// Makes the bodies of events that were recorded before (`known`) from the same bytes refer to the recorded artifacts,
// so that they compare equal. Runs on a worker.
Status refer_as_recorded(Call& call, const store::Run& run, std::vector<events::NewEvent>& events, KnownEvents& known,
                         Spilled& spilled);

// Stores the contents that their steps do not hold yet. For the others, the bodies refer to the existing artifacts.
// Runs on a worker. Errors: those of a run that is not open, and of storing files; then no file remains.
Status store_contents(Call& call, const store::Run& run, std::vector<events::NewEvent>& events, Spilled& spilled);

// Returns `,"spilled":[…]` for the receipt of an event; empty if none of it was spilled.
std::string spilled_json(const Spilled& spilled, std::size_t event);

void abandon(const Spilled& spilled, store::ArtifactFiles& files);

}  // namespace muniment::gateway
