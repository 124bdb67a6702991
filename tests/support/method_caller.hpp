// Calls methods on a real log without a socket: performs the steps of the dispatcher for one request
// in order, and checks each result against its schema.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "audit/archiver.hpp"
#include "audit/publisher.hpp"
#include "audit/redaction.hpp"
#include "audit/witness/submitter.hpp"
#include "base/json/schema.hpp"
#include "evidence/halt_journal.hpp"
#include "gateway/method_table.hpp"
#include "gateway/services.hpp"
#include "retrieval/service.hpp"
#include "snapshot/snapshotter.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::test {

// The outcome of a request: `text` is the result or the error's message.
struct Outcome {
  std::string text;
  std::string code;  // code of the error; empty for a result
  Error error;
  bool ok() const { return code.empty(); }
  json::Value operator[](std::string_view member) const { return (*document)->root()[member]; }
  std::shared_ptr<Result<json::Document>> document;
};

class MethodCaller {
 public:
  MethodCaller();  // creates a log in a fresh database
  ~MethodCaller();

  // `key` is _meta.idempotency_key.
  Outcome call(std::string_view method, const std::string& params, std::string_view key = {});

  // The two halves of `call`, for tests that act between them.
  Result<gateway::Answer> ask(std::string_view method, const std::string& params, std::string_view key = {},
                              bool check_ids = false);
  Result<gateway::Reply> append(gateway::PendingAppend pending);

  void restart();  // discards the daemon's memory and keeps the log
  const std::string& uri() const { return uri_; }
  store::Reader& reader() { return *reader_; }
  gateway::Services& services() { return *services_; }

  gateway::Caller caller{1000, "uid:1000", false, 1};

 private:
  void open();
  void close();
  Outcome outcome_of(std::string_view method, const Result<gateway::Reply>& reply);

  TemporaryFolder folder_;
  const std::string uri_ = fresh_database();
  Clock clock_;
  std::unique_ptr<store::RunDirectory> runs_;
  std::unique_ptr<store::Tail> tail_;
  std::unique_ptr<store::Appender> appender_;
  std::unique_ptr<store::ArtifactFiles> files_;
  std::unique_ptr<snapshot::Snapshotter> snapshots_;  // answers requests, but does not follow the log
  std::unique_ptr<evidence::HaltJournal> halts_;
  std::unique_ptr<audit::Publisher> publisher_;
  std::unique_ptr<audit::Submitter> submitter_;
  std::unique_ptr<store::BodyArchive> archive_;
  std::unique_ptr<audit::Redactor> redactor_;
  std::unique_ptr<audit::Archiver> archiver_;
  std::unique_ptr<retrieval::Service> retrieval_;
  std::unique_ptr<gateway::Services> services_;
  std::unique_ptr<store::Reader> reader_;
  std::vector<std::string> texts_;  // parameters must outlive the answers, which contain views of them
  std::vector<std::unique_ptr<json::Document>> documents_;
};

}  // namespace muniment::test
