// Sends the results of an importer to the daemon.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "adapters/import/events.hpp"
#include "adapters/import/translate/tally.hpp"
#include "adapters/import/translate/translation.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

// Counts the events of a run at its end, from the reply to run.end: the start, the sent events, artifact.stored and the
// end. A snapshot taken by the daemon afterwards does not count.
std::uint64_t events_upto(const Message& end);

class ImportRecorder : public ImportSink {
 public:
  // Ids are derived from the hash of the source, so that repeating an interrupted import completes it.
  // With `scrub`, secrets are replaced before an event or a text is sent.
  // `source`: the hash, or the key of a session. With `grows`, the run may have a part of the events, also others in
  // their place: they stay, and only events with new ids are sent. An ended run is reopened for the first of them.
  ImportRecorder(Client& client, std::string run_id, std::string source, bool scrub = false, bool grows = false);

  Result<bool> start(const std::string& params) override;
  Result<ImportedArtifact> put(const std::string& step_id, const std::string& mime_type,
                               std::string_view bytes) override;
  Status append(std::size_t place, const std::vector<ImportedEvent>& events) override;
  Status end(const RunEnd& end) override;

  // Reopens the run if it has ended and has new events. Called before a child of the run starts.
  Status reopen();
  // Returns whether the run was ended by an earlier import and has no new events.
  bool is_unchanged() const { return ended_before_; }

  // Marks the run as partly imported after an error, unless a retry may complete it (a transient error). Returns the
  // error.
  Error broke_off(Error error);

  const std::string& run_id() const { return run_id_; }
  std::uint64_t events() const {
    return events_;
  }  // events in the log up to the end of the run; before its end, the events sent
  std::uint64_t artifacts() const { return artifacts_; }
  std::uint64_t repaired() const { return repaired_; }  // records with characters that were replaced
  const ImportTally& tally() const { return tally_; }   // counts the events sent

 private:
  Result<std::string> event_json(std::size_t place, const ImportedEvent& event);
  Result<std::string> body_with_blobs(const ImportedEvent& event, const std::string& body);
  Status send(const std::string& events, std::size_t count);
  Status load_known();
  Result<bool> has_file();

  Client& client_;
  std::string run_id_;
  std::string source_;
  bool scrub_ = false;
  std::string start_;        // with grows_: parameters of run.start
  std::string file_sha256_;  // hash of the file, from run.start
  bool grows_ = false;
  bool started_ = false;                         // started by this import and not ended
  bool ended_before_ = false;                    // ended by an earlier import and not reopened
  std::unordered_set<std::string> ended_steps_;  // with grows_: steps that had ended
  std::unordered_set<std::string> known_;        // with grows_: ids of the events that the run had
  std::uint64_t events_ = 0;
  std::uint64_t artifacts_ = 0;
  std::uint64_t repaired_ = 0;
  ImportTally tally_;
};

struct RecordedRun {
  std::string run_id;
  bool added = false;        // false: already imported
  std::uint64_t events = 0;  // as counted by ImportRecorder
  std::uint64_t artifacts = 0;
  std::uint64_t repaired = 0;
  ImportTally tally = {};
};

// Records a translated run; after an error it is marked as partly imported.
Result<RecordedRun> record_run(Client& client, const TranslatedRun& translated, std::string_view format, bool scrub);

}  // namespace muniment::cli
