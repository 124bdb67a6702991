// A verified run bundle as a run of this log, origin imported. What a client may write is appended
// as it was; what only the daemon writes goes through the daemon's methods where they can say the
// same, and otherwise stays in the bundle alone, which is kept as an artifact of the run. Where each
// event of the new run came from is said by x.muniment.imported events.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

struct BundleSource {
  std::string path;
  std::string sha256;  // of the file, hexadecimal
  std::string run_id;  // of the new run; empty: the bundle's, and the start of the hash
};

struct ImportedBundle {
  std::string run_id;
  bool added = false;  // false: it was there already
  // Each of the bundle's events is in one of these.
  std::int64_t events = 0;     // appended
  std::int64_t rewritten = 0;  // of them, those whose artifact ids are this run's now; the others are as they were
  std::int64_t by_method = 0;  // recorded anew: the start, the end, artifacts, manifests, claims, evidence, commands
  std::map<std::string, std::int64_t> only_in_bundle;  // by type

  std::int64_t total() const;
};

// Errors: conflict where the run's id is taken; those of the daemon. What broke off is completed by
// the same import.
Result<ImportedBundle> import_bundle(Client& client, const BundleSource& source);

// SHA-256 of a file, in constant memory.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace muniment::cli
