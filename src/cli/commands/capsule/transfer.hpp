// Copies documents and messages between a log and a capsule: capsule export, capsule import.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

struct CapsuleOrder {
  std::string path;  // of the new capsule
  std::vector<std::string> corpora, runs;
  std::string asof;  // seq or RFC 3339; empty: now
};

struct ExportedCapsule {
  std::int64_t documents = 0;  // revisions
  std::int64_t messages = 0;
  std::vector<std::string> left_out;  // each with its reason
};

// Writes the revisions of corpora and the messages of runs, in the order of the log. Each frame has the time of its
// event, and names it. Erased revisions, and those of revoked sources, are left out. Errors: not_found if nothing is
// there; those of the daemon; conflict if the file exists.
Result<ExportedCapsule> export_capsule(Client& client, const CapsuleOrder& order);

struct CapsuleSource {
  std::string path;
  std::string corpus;  // empty: each collection becomes the corpus of its name
  std::string trust;   // of its documents
};

struct ImportedCapsule {
  std::string run_id;
  std::int64_t documents = 0, messages = 0, known = 0;  // known: were in the corpus before
  bool already = false;                                 // the same file was imported before
  std::int64_t only_in_capsule = 0;                     // queries, feedback, configuration, signatures
};

// Imports a capsule as a run of the log with origin imported: the capsule becomes an artifact of the run, its documents
// revisions of a corpus, and its turns messages. Events x.muniment.imported name the frame of each. The whole capsule
// is checked first. Repeating an interrupted import completes it. Errors: corrupt; those of the daemon.
Result<ImportedCapsule> import_capsule(Client& client, const CapsuleSource& source);

}  // namespace muniment::cli
