// The follower "pointer": maintains the table of the pointers on which claims, evidence and manifests depend, as the
// rows of their types in events/catalogue.cpp say. A pointer in the table is critical, unless only the log's own run
// depends on it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "store/tables/follower.hpp"
#include "store/tables/runs.hpp"

namespace muniment::evidence {

// Returns the dependencies that an event adds. `manifest` is the text of the manifest of a manifest.recorded event;
// empty for other events and for an erased manifest.
std::vector<store::PointerRow> pointers_of(const events::Event& event, std::string_view manifest);

// Returns the dependencies that a batch of events adds. Reads the manifests of the batch.
Result<std::vector<store::PointerRow>> pointers_of(const std::vector<store::EventPtr>& events, store::Reader& reader);

// Returns the pointers on which the evidence of an evidence.recorded event rests: its own pointer first, then its
// files.
std::vector<std::string> pointers_of_evidence(const events::Event& event);

// Returns the pointers on which a manifest of the run depends, without duplicates.
std::vector<std::string> pointers_of_manifest(const json::Value& manifest, const std::string& run_id);

// Returns dependencies of acknowledged events that the follower has not yet written to the catalogue.
Result<std::vector<store::PointerRow>> pointers_not_yet_followed(const store::Tail& tail, store::Reader& reader);

// Returns all current dependencies of the run's claims, evidence, manifests and completed tasks, by pointer, with the
// dependents. The dependencies of evidence in other runs on which the run rests are included: those of one use, which
// is the run's own, otherwise its owner's, otherwise the first. Errors: too_large for too many pieces of evidence.
Result<std::map<std::string, std::vector<store::PointerRow>>> pointers_needed_by(const store::Run& run,
                                                                                 const store::Tail& tail,
                                                                                 store::Reader& reader);

class PointerFollower final : public store::Follower {
 public:
  PointerFollower(Options options, const store::Tail& tail);
  ~PointerFollower() override { stop(); }

 protected:
  Result<store::FollowedRows> apply(const std::vector<store::EventPtr>& events, store::Reader& reader) override;
};

}  // namespace muniment::evidence
