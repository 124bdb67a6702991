// The follower "pointer": keeps the catalogue of what claims, evidence and manifests depend on.
// Resolving one of these pointers is critical.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "store/tables/follower.hpp"

namespace muniment::evidence {

// The pointers that an event makes something depend on. `manifest` is the text of the manifest
// that a manifest.recorded event is about; empty for others, and for an erased one.
std::vector<store::PointerRow> pointers_of(const events::Event& event, std::string_view manifest);

// The same for a batch; reads the manifests that it needs.
Result<std::vector<store::PointerRow>> pointers_of(const std::vector<store::EventPtr>& events, store::Reader& reader);

// What a manifest of the run makes it depend on, each once.
std::vector<std::string> pointers_of_manifest(const json::Value& manifest, const std::string& run_id);

// What something depends on since the catalogue was last written: what a client has been told is recorded counts, also
// before the follower has come to it.
Result<std::vector<store::PointerRow>> pointers_not_yet_followed(const store::Tail& tail, store::Reader& reader);

// Everything that the run's claims, evidence and manifests depend on as of now, by pointer, and what needs it.
Result<std::map<std::string, std::vector<store::PointerRow>>> pointers_needed_by(const std::string& run_id,
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
