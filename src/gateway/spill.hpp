// Spilling: what is too long for an event's body becomes an artifact of the same run and step, and
// the body refers to it. Content parts over 8 KiB always go; if the body is still over its limit,
// so do long strings anywhere, the longest first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "gateway/call.hpp"
#include "store/artifact_files.hpp"
#include "store/rows.hpp"
#include "store/runs.hpp"

namespace muniment::gateway {

// What was moved out of the events of one request. The files go again unless it is appended.
struct Spilled {
  struct Part {
    std::size_t event = 0;          // in the request
    Uuid artifact_id;
    Hash hash{};
    std::int64_t size_bytes = 0;
    std::string path;               // where in the body it stood, as a JSON pointer
  };
  struct Artifact {
    std::size_t event = 0;          // the first event that refers to it
    store::ArtifactRow row;
    store::StoredFile file;
  };
  std::vector<Part> parts;
  std::vector<Artifact> artifacts;  // new ones; the same bytes in a step are stored once
};

// Could `body` be shortened by spilling? Without reading anything.
bool may_spill(const json::Value& body);

// The body to be stored instead of `body`, of the event `event` of the request, and of this type.
// On a worker. Errors: too_large when it does not fit all the same, and those of storing files;
// what was stored before stays in `spilled`.
Result<std::string> spill_body(Call& call, const store::Run& run, std::string_view step_id, std::string_view type,
                               const json::Value& body, std::size_t event, Spilled& spilled);

// `,"spilled":[…]` for the receipt of an event; empty if nothing of it was spilled.
std::string spilled_json(const Spilled& spilled, std::size_t event);

void abandon(const Spilled& spilled, store::ArtifactFiles& files);

}  // namespace muniment::gateway
