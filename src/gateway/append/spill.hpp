// Spilling: what is too long for an event's body becomes an artifact of the same run and step, and
// the body refers to it. Content parts over 8 KiB always go; if the body is still over its limit,
// so do long strings anywhere, the longest first.
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

// What is moved out of the events of one request. Files that were stored go again unless it is appended.
struct Spilled {
  struct Part {
    std::size_t event = 0;  // in the request
    Uuid artifact_id;
    Hash hash{};
    std::int64_t size_bytes = 0;
    std::string path;  // where in the body it stood, as a JSON pointer
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
  std::vector<Content> contents;    // the same bytes in a step once; not stored yet
  std::vector<Artifact> artifacts;  // what of them was stored
};

// Could `body` be shortened by spilling? Without reading anything.
bool may_spill(const json::Value& body);

// The body to be stored instead of `body`, of the event `event` of the request, and of this type; what it refers to is
// among the contents of `spilled`, under new ids. Touches neither files nor Postgres. Errors: too_large when it does
// not fit all the same.
Result<std::string> spill_body(const store::Run& run, std::string_view step_id, std::string_view type,
                               const json::Value& body, std::size_t event, Time now, Spilled& spilled);

// Where an event of the request was recorded before (`known`) from the same bytes, its body refers to the artifacts
// that were made then: so it can be compared with what is recorded. On a worker.
Status refer_as_recorded(Call& call, const store::Run& run, std::vector<events::NewEvent>& events, KnownEvents& known,
                         Spilled& spilled);

// Stores the contents that their steps do not hold yet; to those that they hold, the bodies refer instead. On a worker.
// Errors: of a run that is not open, and those of storing files; then nothing stays.
Status store_contents(Call& call, const store::Run& run, std::vector<events::NewEvent>& events, Spilled& spilled);

// `,"spilled":[…]` for the receipt of an event; empty if nothing of it was spilled.
std::string spilled_json(const Spilled& spilled, std::size_t event);

void abandon(const Spilled& spilled, store::ArtifactFiles& files);

}  // namespace muniment::gateway
