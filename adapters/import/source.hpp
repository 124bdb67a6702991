// Defines the output of importers: events and run actions, turn by turn. The recorder (record.hpp) sends them; tests
// keep them in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "client/replay/event_replay.hpp"

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
  std::string kind;  // forms the event id together with its place: "answer", "observation"
  std::string type;
  std::string step_id;  // empty: none
  std::string body;  // JSON on one line; of any size if the sink is a recorder, which stores large values as artifacts
  std::string occurred_at = {};  // RFC 3339; empty: unknown
  // References to them become the last parts of the body's content, or the member "original" of a body without content.
  std::vector<ImportedBlob> blobs = {};
};

// The next action for a source of several runs, in order.
struct RunAction {
  enum class Kind : std::uint8_t { event, start_child, end_child };
  Kind kind = Kind::event;
  std::string child = {};  // run of the action: empty for the main run, otherwise the key of the child as in its run id
  ImportedEvent event = {};  // kind event; the body may have any size
  std::string parent = {};   // start_child: key of the parent run; empty: the main run
  std::string agent = {};    // start_child: name of the child's agent
  std::string goal = {};     // start_child
  std::string call_id =
      {};  // start_child: the parent's call that started it, where it is known; event: of tool.returned
  std::string sha256 = {};   // start_child: of the file that has its lines; empty: the source's own
  std::string outcome = {};  // end_child: success, failure, unknown
  std::string summary = {};  // end_child; empty: none
};

// A whole file or one record of a file.
struct SourceFile {
  std::string name;    // file name without folder and extension
  std::string sha256;  // hash of `text`, hexadecimal
  std::string_view text;
  // Key of a session whose file may grow, from which its run id and event ids follow; empty: they follow from the hash.
  std::string session = {};
};

// Returns the key of a session: SHA-256, hexadecimal.
std::string session_key(std::string_view format, std::string_view external_id);

inline constexpr std::string_view importer_name = "muniment " MUNIMENT_VERSION;

// Returns the run id of a source: its name and the start of its hash or of its session's key.
std::string imported_run_id(const SourceFile& file);

// Steps are defined by the translation, so no source gives their outcome.
inline constexpr const char* unknown_step_end = R"({"status":"unknown"})";

// Target of an import. All ids are derived from the hash of the source and the place, so that importing the same source
// twice adds nothing.
class ImportSink {
 public:
  virtual ~ImportSink() = default;

  // Calls run.start. Returns false if the run is already complete.
  virtual Result<bool> start(const std::string& params) = 0;
  virtual Result<ImportedArtifact> put(const std::string& step_id, const std::string& mime_type,
                                       std::string_view bytes) = 0;
  // Appends the events in one commit; `place` is the turn, which makes ids unique.
  virtual Status append(std::size_t place, const std::vector<ImportedEvent>& events) = 0;
  virtual Status end(const RunEnd& end) = 0;
};

}  // namespace muniment::cli
