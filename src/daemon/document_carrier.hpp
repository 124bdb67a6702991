// After a restore, copies the current documents of the closed logs into the current log, with their bytes, so that they
// can be queried, revised, retracted and revoked. It works in the background, one document at a time, in the order of
// names. A document that the current log ever had is skipped, so an interrupted copy continues at the next start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/process/worker_thread.hpp"
#include "base/result.hpp"
#include "retrieval/corpus/document_follower.hpp"
#include "store/append/appender.hpp"
#include "store/files/artifact_files.hpp"
#include "store/logs/earlier_logs.hpp"
#include "store/read/reader.hpp"

namespace muniment::daemon {

struct CarrierSurroundings {
  Clock& clock;
  store::Appender& appender;
  store::RunDirectory& runs;
  store::ArtifactFiles& files;
  retrieval::DocumentFollower& documents;
};

class DocumentCarrier {
 public:
  // `folder` belongs to the current log; its file `carried` marks completion. `logs` are the earlier logs, which
  // outlive this object.
  DocumentCarrier(store::LogPlace place, std::string folder, const store::EarlierLogs& logs,
                  const CarrierSurroundings& around);

  void start();
  void stop() { worker_.stop(); }
  // Describes the progress, or the documents that could not be copied; empty once all are copied.
  std::string note() const;

 private:
  void work();
  Status carry_all();
  Status carry_corpus(std::size_t log, const store::CorpusRow& corpus);
  Result<bool> carry(std::size_t log, const store::CorpusRow& corpus, const store::DocumentRow& row);
  Result<bool> is_wanted(std::size_t log, const store::CorpusRow& corpus, const store::DocumentRow& row);
  struct Copy;
  Result<store::AppendRequest> request_of(std::size_t log, const store::CorpusRow& corpus,
                                          const store::DocumentRow& row, Copy& copy);
  Status check_followed(const store::EarlierLog& log);
  Status look();
  void set_note(std::string text);

  const std::string folder_;
  const store::EarlierLogs& logs_;
  const CarrierSurroundings around_;
  store::Reader reader_;
  std::int64_t known_upto_ = 0;  // seq up to which the tables of documents were read
  std::int64_t carried_ = 0, left_ = 0;

  std::string note_;  // guarded by the worker's lock
  WorkerThread worker_;
};

}  // namespace muniment::daemon
