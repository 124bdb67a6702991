// Sends what an importer found to the daemon.
#pragma once

#include <string>
#include <vector>

#include "cli/connect/client.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {

// How many events a run has in the log when it ends, by the answer of run.end: its start, what was sent,
// artifact.stored and the end. A snapshot that the daemon takes afterwards is none of them.
std::uint64_t events_upto(const Message& end);

class ImportRecorder : public ImportSink {
 public:
  // Ids are made of the source's hash, so that repeating an import that broke off completes it.
  ImportRecorder(Client& client, std::string run_id, std::string source_sha256);

  Result<bool> start(const std::string& params) override;
  Result<ImportedArtifact> put(const std::string& step_id, const std::string& mime_type,
                               std::string_view bytes) override;
  Status append(std::size_t place, const std::vector<ImportedEvent>& events) override;
  Status end(const RunEnd& end) override;

  // After an error: what is there of the run says that it is a part, unless the same import may complete it
  // (a transient error). Answers the error.
  Error broke_off(Error error);

  const std::string& run_id() const { return run_id_; }
  std::uint64_t events() const {
    return events_;
  }  // in the log, up to its end; of a run that has not ended, those that were sent
  std::uint64_t artifacts() const { return artifacts_; }
  std::uint64_t repaired() const { return repaired_; }  // records with characters that were replaced

 private:
  Result<std::string> event_json(std::size_t place, const ImportedEvent& event);
  Result<std::string> body_with_blobs(const ImportedEvent& event, const std::string& body);
  Status send(const std::string& events, std::size_t count);

  Client& client_;
  std::string run_id_;
  std::string source_;
  bool started_ = false;  // by this import, and not ended
  std::uint64_t events_ = 0;
  std::uint64_t artifacts_ = 0;
  std::uint64_t repaired_ = 0;
};

// A whole translated run. False: it was there already, and nothing was done.
Result<bool> record_run(ImportRecorder& recorder, const ImportedRun& run, const SourceFile& source,
                        std::string_view format);

}  // namespace muniment::cli
