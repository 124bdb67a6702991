// The corpus "run": what the events of indexed runs come to as documents and passages. Whether a run is indexed is in
// its run.started, so that the rows are a function of the log.
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

// What is remembered of the runs that were met, so that an event of a run that is not indexed costs one look into a
// map.
class IndexedRuns {
 public:
  enum class Answer : std::uint8_t { no, yes, untold };  // untold: its run.started was erased
  struct Known {
    Answer indexed = Answer::no;
    std::string owner;
  };
  Result<Known> of(std::int64_t run_no, store::Reader& reader);
  // A run.started, or the announcement of an erasure, after which its run is looked at again.
  void see(const events::Event& event);

 private:
  std::map<std::int64_t, Known> known_;  // by run_no
};

// The row of an event of a readable type, with its passages; nullopt where it has none: its run is not indexed, or
// there is nothing to read. An event with no run_id is read from the log first. Errors: unavailable.
Result<std::optional<store::CorpusChange>> change_by_run_event(const events::Event& event, IndexedRuns& runs,
                                                               store::Reader& reader, store::ArtifactFiles& files);

}  // namespace muniment::retrieval
