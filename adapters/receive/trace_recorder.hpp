// Records the complete traces of a spool as runs, on a thread of its own. A trace that cannot be recorded now, because
// the daemon does not answer, is tried again.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "adapters/import/otlp/otlp.hpp"
#include "adapters/receive/trace_spool.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {

class TraceRecorder {
 public:
  struct Reports {
    std::function<void(const ImportedTrace&)> recorded;
    std::function<void(const std::string& problem)> problem;
  };

  TraceRecorder(TraceSpool& spool, std::string socket_path, Reports reports);
  ~TraceRecorder();  // stops

  // Ends the thread after the trace that it records.
  void stop();
  // Records on the caller's thread, after `stop`. Returns false if a trace was postponed.
  bool record(TraceSpool::Complete which);

 private:
  void serve();
  Result<ImportedTrace> import_file(const CompleteTrace& trace);

  TraceSpool& spool_;
  const std::string socket_path_;
  const Reports reports_;
  std::mutex mutex_;
  std::condition_variable asked_;
  bool stopping_ = false;
  bool warned_ = false;  // the warning about an unreachable daemon was printed
  std::thread thread_;
};

}  // namespace muniment::cli
