#include "adapters/receive/trace_recorder.hpp"

#include <fmt/format.h>

#include <chrono>

#include "adapters/import/otlp/otlp_file.hpp"

namespace muniment::cli {
namespace {

constexpr std::chrono::milliseconds look_every{200};

}  // namespace

TraceRecorder::TraceRecorder(TraceSpool& spool, std::string socket_path, Reports reports)
    : spool_(spool), socket_path_(std::move(socket_path)), reports_(std::move(reports)), thread_([this] { serve(); }) {}

TraceRecorder::~TraceRecorder() { stop(); }

void TraceRecorder::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TraceRecorder::serve() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    asked_.wait_for(lock, look_every);
    if (stopping_) return;
    lock.unlock();
    record(TraceSpool::Complete::by_rules);
    lock.lock();
  }
}

bool TraceRecorder::record(TraceSpool::Complete which) {
  bool all = true;
  for (const CompleteTrace& trace : spool_.take_complete(which)) {
    const auto imported = import_file(trace);
    if (imported) {
      warned_ = false;
      if (const Status done = spool_.recorded(trace); !done) reports_.problem(done.error().message);
      reports_.recorded(*imported);
    } else if (is_transient(imported.error().code)) {
      spool_.postponed(trace);
      all = false;
      if (!warned_) reports_.problem(fmt::format("trace {} waits: {}", trace.id, imported.error().message));
      warned_ = true;
    } else {
      spool_.refused(trace);
      reports_.problem(fmt::format("trace {} is not recorded: {}. Its spans are in {}.refused", trace.id,
                                   imported.error().message, trace.path));
    }
  }
  return all;
}

Result<ImportedTrace> TraceRecorder::import_file(const CompleteTrace& trace) {
  ASSIGN_OR_RETURN(Client client, Client::connect(socket_path_));
  ASSIGN_OR_RETURN(const OtlpFile file,
                   OtlpFile::open(trace.path, [&](const std::string& problem) { reports_.problem(problem); }));
  if (file.traces().size() != 1) return Error(Errc::corrupt, trace.path + " does not hold one trace");
  return import_trace(client, file, file.traces().front());
}

}  // namespace muniment::cli
