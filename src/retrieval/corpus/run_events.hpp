// The corpus "run": the events of indexed runs as documents and passages. run.started states whether a run is indexed,
// so the rows depend on the log alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/corpus_rows.hpp"
#include "store/read/reader.hpp"

namespace muniment::retrieval {

// Remembers which runs are indexed, so that an event of a run that is not indexed costs one look-up.
class IndexedRuns {
 public:
  enum class Answer : std::uint8_t { no, yes, untold };  // untold: its run.started was erased
  struct Known {
    Answer indexed = Answer::no;
    std::string owner;
  };
  Result<Known> of(std::int64_t run_no, store::Reader& reader);
  // Processes a run.started, or the announcement of an erasure, which makes the next look-up read the run again.
  void see(const events::Event& event);

 private:
  std::map<std::int64_t, Known> known_;  // key: run_no
};

// Returns the row and passages of an event of a readable type; nullopt if its run is not indexed or it has no text. An
// event without run_id is read from the log first. Errors: unavailable.
Result<std::optional<store::CorpusChange>> change_by_run_event(const events::Event& event, IndexedRuns& runs,
                                                               store::Reader& reader, store::ArtifactFiles& files);

}  // namespace muniment::retrieval
