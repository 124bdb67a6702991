// Imports a verified run bundle as a run of this log, with origin imported. Events that a client may write are appended
// unchanged. Events that only the daemon writes are recreated with the daemon's methods where possible and otherwise
// remain only in the bundle, which is stored as an artifact of the run. Events x.muniment.imported name the original of
// each event.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct BundleSource {
  std::string path;
  std::string sha256;  // hash of the file, hexadecimal
  std::string run_id;  // id of the new run; empty: the bundle's run id and the start of the hash
};

struct ImportedBundle {
  std::string run_id;
  bool added = false;  // false: already imported
  // Each event of the bundle is counted in one of these members.
  std::int64_t events = 0;     // appended
  std::int64_t rewritten = 0;  // events with replaced artifact ids, included in `events`
  std::int64_t by_method = 0;  // recreated: the start, the end, artifacts, manifests, claims, evidence, commands
  std::map<std::string, std::int64_t> only_in_bundle;  // number by type

  std::int64_t total() const;
};

// Errors: conflict if the run id is taken; those of the daemon. Repeating an interrupted import completes it.
Result<ImportedBundle> import_bundle(Client& client, const BundleSource& source);

}  // namespace muniment::cli
