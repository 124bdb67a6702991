// What an importer turns a foreign trace into: a list of things to record, turn by turn. The
// importer decides what; the recorder (record.hpp) sends it, and tests keep it in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

struct ImportedArtifact {
  std::string artifact_id;
  std::string hash;
  std::int64_t size_bytes = 0;
};

// Bytes that an event keeps as an artifact.
struct ImportedBlob {
  std::string mime_type;
  std::string bytes;
};

struct ImportedEvent {
  std::string kind;  // with its place, it makes the event's id: "answer", "observation"
  std::string type;
  std::string step_id;  // empty: none
  std::string
      body;  // JSON on one line; of any size where the sink is a recorder, which keeps what is large as artifacts
  std::string occurred_at = {};  // RFC 3339; empty: the source does not say
  // References to them become the last parts of the body's content, or the member "original" of a body without content.
  std::vector<ImportedBlob> blobs = {};
};

// What is to be done next, in this order, for a source that is several runs.
struct RunAction {
  enum class Kind : std::uint8_t { event, start_child, end_child };
  Kind kind = Kind::event;
  std::string child = {};    // whose run it is: empty, the source's own; else the child's key, as in a run id
  ImportedEvent event = {};  // event: its body may be of any size
  std::string parent = {};   // start_child: the key of the run that starts it; empty, the source's own
  std::string agent = {};    // start_child: what the child is called
  std::string goal = {};     // start_child
  std::string call_id =
      {};  // start_child: the parent's call that started it, where it is known; event: of tool.returned
  std::string sha256 = {};   // start_child: of the file that has its lines; empty: the source's own
  std::string outcome = {};  // end_child: success, failure, unknown
  std::string summary = {};  // end_child; empty: none
};

// A whole file, or one record of a file that holds several.
struct SourceFile {
  std::string name;    // without folder and extension
  std::string sha256;  // of `text`, hexadecimal
  std::string_view text;
};

inline constexpr std::string_view importer_name = "muniment " MUNIMENT_VERSION;

// The id that a source always gets: its name, then the start of its hash.
std::string imported_run_id(const SourceFile& file);

// How a run, a step or a call ended of which the source does not say it.
inline constexpr std::string_view unknown_end = "unknown";
// A step is how a translation cuts a trace: no source says how one went.
inline constexpr const char* unknown_step_end = R"({"status":"unknown"})";

struct RunEnd {
  std::string outcome;  // success, failure, unknown
  std::string summary;
  std::string usage = {};  // JSON: what the source counts for the whole run and no call; empty: nothing
};

// Where an import goes. Everything is named by the source's own hash and place, so that the same
// source twice adds nothing.
class ImportSink {
 public:
  virtual ~ImportSink() = default;

  // run.start. False: the run is there and complete; nothing is left to do.
  virtual Result<bool> start(const std::string& params) = 0;
  virtual Result<ImportedArtifact> put(const std::string& step_id, const std::string& mime_type,
                                       std::string_view bytes) = 0;
  // In one commit; `place` is the turn, so that ids are unique.
  virtual Status append(std::size_t place, const std::vector<ImportedEvent>& events) = 0;
  virtual Status end(const RunEnd& end) = 0;
};

}  // namespace muniment::cli
