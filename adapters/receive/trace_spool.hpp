// Keeps received spans in files until their trace is complete: one file per trace, of requests in OTLP/JSON, one a
// line. A span is durable when `add` returns. A complete trace is imported from its file as if it had been exported by
// the collector, so both give the same events.
//
// A span is identified by its trace and its id, a log record by its content: what was received before, also by an
// earlier process, is not stored again. A trace is complete when its root has ended and nothing was received for
// `quiet`, or when nothing was received for `unended`. Spans that arrive later begin another file, and so another run.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/receive/otlp_protobuf.hpp"
#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct TraceRules {
  std::chrono::seconds quiet{limits::otlp_quiet_seconds};
  std::chrono::seconds unended{limits::otlp_unended_seconds};
  std::size_t open_traces_max = limits::otlp_open_traces_max;
  std::size_t trace_spans_max = limits::otlp_trace_spans_max;
};

// A file of a complete trace.
struct CompleteTrace {
  std::string id;
  std::uint64_t number = 0;  // position of the file in the trace
  std::string path;
};

class TraceSpool {
 public:
  // Reads what an earlier process has left in the folder, and creates the folder. Errors: those of files.
  static Result<std::unique_ptr<TraceSpool>> open(std::string folder, TraceRules rules, const Clock& clock);

  // Stores the spans or log records of a request in OTLP/JSON. Returns those that it refuses: without the id of a trace
  // or a span, over a limit of their trace, or with the id of another span. Errors: invalid_argument for text that is
  // not such a request; over_budget if too many traces are open, with nothing stored; those of files.
  Result<OtlpRefused> add(OtlpSignal signal, std::string_view request);

  // Takes the traces that are complete by the rules, those whose root has ended, or all. Each must be given to
  // `recorded`, `refused` or `postponed`.
  enum class Complete : std::uint8_t { by_rules, ended, all };
  std::vector<CompleteTrace> take_complete(Complete which = Complete::by_rules);
  Status recorded(const CompleteTrace& trace);
  // The trace cannot be recorded: its file remains, as <file>.refused.
  void refused(const CompleteTrace& trace);
  // The trace could not be recorded now: it is complete again after `quiet`.
  void postponed(const CompleteTrace& trace);

  std::size_t open_traces() const;

 private:
  struct File {
    std::size_t items = 0;
    std::size_t bytes = 0;
    bool has_root = false;
    Monotonic last = {};
  };
  using Items = std::unordered_map<std::uint64_t, std::uint64_t>;  // identity → content
  struct Trace {
    Items items;                         // of all its files
    std::map<std::uint64_t, File> open;  // by number; spans go to the last one
    std::uint64_t next = 0;
    Monotonic last = {};
  };
  // The part of a request that concerns one trace.
  struct Part {
    std::string groups;  // resourceSpans or resourceLogs, as JSON
    Items items;
    bool has_root = false;
  };
  // Parts that a request adds, and the items that are refused.
  struct Added {
    std::map<std::string, Part> parts;
    OtlpRefused refused;
  };

  TraceSpool(std::string folder, TraceRules rules, const Clock& clock);
  Status load();
  Status load_file(const CompleteTrace& file);
  Status load_known(const std::string& trace_id);
  void take_item(Added& added, std::map<std::string, std::string>& lists, OtlpSignal signal, const json::Value& item,
                 const std::string& text);
  Status store(const std::string& trace_id, OtlpSignal signal, const Part& part);
  void forget_old(Monotonic now);
  std::string path_of(const std::string& trace_id, std::uint64_t number) const;
  std::string known_path(const std::string& trace_id) const { return folder_ + "/" + trace_id + ".known"; }

  const std::string folder_;
  const TraceRules rules_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Trace> traces_;
  std::size_t open_ = 0;   // files
  std::size_t known_ = 0;  // items in all traces
};

}  // namespace muniment::cli
