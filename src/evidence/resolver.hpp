// Resolving a pointer: is what it names there, and is it what was stored? One attempt, no retry and
// no halt: what follows from a failure is the stop rule's business (stop_rule.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "evidence/pointer.hpp"
#include "store/artifact_files.hpp"
#include "store/chunk_rows.hpp"
#include "store/reader.hpp"

namespace muniment::evidence {

enum class Reason : std::uint8_t { none, missing_version, not_found, version_mismatch, hash_mismatch, parse_error };
std::string_view name_of(Reason reason);  // MISSING_VERSION …; empty for none

// How much is looked at.
enum class Depth : std::uint8_t {
  span,   // the row, the file's kind and size, and the span's bytes are there
  whole,  // the whole is hashed again and compared: what a critical pointer gets
};

struct Resolution {
  std::string pointer;
  Reason reason = Reason::none;
  std::string detail;                    // in words, where it does not resolve
  std::optional<Pointer> parsed;         // nullopt: PARSE_ERROR
  std::string path;                      // of its file, if it has one
  std::optional<std::string> expected;   // hash, or size where that is what differs
  std::optional<std::string> actual;
  std::optional<std::int64_t> size_bytes;
  std::optional<std::string> text;       // a span's bytes, where they are wanted, short and UTF-8
  std::optional<std::string> current;    // the pointer to what took its place
  // What it names is there, with the bytes that were hashed, but is not current any more: superseded or
  // retracted. That is no damage.
  bool superseded = false;

  bool ok() const { return reason == Reason::none; }
  bool damaged() const { return !ok() && !superseded; }
  void fail(Reason why, std::string words);
  // The file cannot be had. But when the daemon is merely short of something, nothing is known of the
  // file, and the error is handed on.
  Status file_failed(Error error);
  // A passage's bytes as they were read: its text, if they have the hash.
  void take_passage(std::string bytes, const Hash& hash, std::string where);
  std::string_view type() const { return parsed ? name_of(parsed->kind) : std::string_view(); }
};

// What the caller may see; what belongs to others is not found.
struct Sight {
  std::function<Result<bool>(std::string_view run_id)> run;
  std::function<bool(std::string_view owner)> corpus = [](std::string_view) { return false; };  // of this owner
  std::optional<std::int64_t> as_of{};   // documents as they were at this seq
  store::ChunkRows* known = nullptr;     // what reading ahead may take rows from, instead of asking Postgres again
};

// Reads through `reader` and `files`, which must outlive it. One a request.
class Resolver {
 public:
  Resolver(store::Reader& reader, store::ArtifactFiles& files, Sight sight)
      : reader_(reader), files_(files), sight_(std::move(sight)) {}

  // Reads the rows of many pointers at once. Each is used by the first `resolve` of it alone: a second
  // one is a retry, and looks again.
  Status read_ahead(const std::vector<std::string>& pointers);
  // Errors (then nothing is known of the pointer): unavailable.
  Result<Resolution> resolve(std::string_view pointer, Depth depth, bool with_text = false);

 private:
  Result<std::optional<store::ArtifactRow>> artifact_row(const Uuid& artifact_id);
  Status resolve_artifact(Resolution& out, Depth depth, bool with_text);
  Status resolve_manifest(Resolution& out);
  Status resolve_snapshot(Resolution& out);
  Status resolve_run(Resolution& out);
  Status resolve_evidence(Resolution& out, bool with_text);
  // resolver_events.cpp
  Status resolve_event(Resolution& out);
  Status check_event_passage(Resolution& out, const events::Event& event);
  // resolver_documents.cpp
  Status read_documents_ahead(const std::vector<Pointer>& pointers);
  Result<store::CitedDocument> cited(const Pointer& pointer);
  Status resolve_document(Resolution& out, bool with_text);
  static void resolve_sample(Resolution& out);
  Status check_chunk(Resolution& out, const store::CitedDocument& found);
  Status check_bytes(Resolution& out, const store::CitedDocument& found, bool with_text);
  // The run of the pointer, if there is one that the caller may see.
  Result<std::shared_ptr<store::Run>> find_run(std::string_view run_id);
  // Compares the file at `path` with its row; fills in what differs.
  Status check_file(Resolution& out, std::string_view path, std::int64_t size_bytes, const Hash& hash, Depth depth);

  store::Reader& reader_;
  store::ArtifactFiles& files_;
  Sight sight_;
  std::multimap<std::string, std::optional<store::ArtifactRow>> ahead_;   // by artifact_id; empty: no such row
  std::multimap<std::string, store::CitedDocument> documents_ahead_;      // by the pointer's text
};

}  // namespace muniment::evidence
