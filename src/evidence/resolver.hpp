// Resolving a pointer: is what it names there, and is it what was stored? One attempt, no retry and
// no halt: what follows from a failure is the stop rule's business (stop_rule.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "evidence/evidence_id.hpp"
#include "evidence/pointer.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/chunk_rows.hpp"
#include "store/read/reader.hpp"

namespace muniment::evidence {

enum class Reason : std::uint8_t { none, missing_version, not_found, version_mismatch, hash_mismatch, parse_error };
std::string_view name_of(Reason reason);  // MISSING_VERSION …; empty for none
inline constexpr std::array reasons = {Reason::missing_version, Reason::not_found, Reason::version_mismatch,
                                       Reason::hash_mismatch, Reason::parse_error};

// How much is looked at.
enum class Depth : std::uint8_t {
  span,   // the bytes that it names are hashed and compared
  whole,  // all that they are part of, too: what a critical pointer gets
};

struct Resolution {
  std::string pointer;
  Reason reason = Reason::none;
  std::string detail;                   // in words, where it does not resolve
  std::optional<Pointer> parsed;        // nullopt: PARSE_ERROR
  std::string path;                     // of its file, if it has one
  std::optional<std::string> expected;  // hash, or size where that is what differs
  std::optional<std::string> actual;
  std::optional<std::int64_t> size_bytes;
  std::optional<std::string> text;       // a span's bytes, where they are wanted, short and UTF-8
  std::optional<std::string> current;    // the pointer to what took its place
  std::optional<EvidenceSource> source;  // of bytes that are there: what evidence of it is
  // What it names is there, with the bytes that were hashed, but is not current any more: superseded or
  // retracted. That is no damage.
  bool superseded = false;
  bool removed = false;     // revoked, or erased with its document: also where it is looked at as of before
  bool erased = false;      // as the log says: nothing is there any more, and that is no damage either
  bool hidden = false;      // it is there, and the caller must not know
  bool recorded = false;    // the log knows what it names
  std::int16_t log_no = 0;  // the log before the reader's that does; 0: the reader's own, or none

  bool ok() const { return reason == Reason::none; }
  // A pointer without its revision names no one thing: that is the pointer's fault, and no damage.
  bool damaged() const { return !ok() && !superseded && !erased && reason != Reason::missing_version; }
  // What it names stands for nothing any more: erased, revoked, or retracted.
  bool withdrawn() const { return erased || (superseded && reason == Reason::not_found); }
  // Also of what stands for nothing any more, since it was erased.
  void was_erased(std::string words);
  void fail(Reason why, std::string words);
  // The file cannot be had. But when the daemon is merely short of something, nothing is known of the
  // file, and the error is handed on.
  Status file_failed(Error error);
  // The same, or the file has other bytes than were recorded.
  Status not_that_file(Error error, store::Difference difference);
  // A passage's bytes as they were read: its text, if they have the hash.
  void take_passage(std::string bytes, const Hash& hash, std::string where);
  std::string_view type() const { return parsed ? name_of(parsed->kind) : std::string_view(); }
};

// What the caller may see; what belongs to others is not found.
struct Sight {
  std::function<Result<bool>(std::string_view run_id)> run;
  std::function<bool(std::string_view owner)> corpus = [](std::string_view) { return false; };  // of this owner
  std::optional<std::int64_t>
      as_of{};                       // documents and events as they were at this seq; -1: before the reader's log began
  std::optional<Time> as_of_time{};  // where a time was asked for: by it an earlier log is looked at as it was then,
                                     // otherwise as it ended
  store::ChunkRows* known = nullptr;  // what reading ahead may take rows from, instead of asking Postgres again
  // What reads the logs that the reader's goes on from, the newest first: what it has not, they may have.
  // `earlier_run`: may the caller see that run of such a log?
  std::vector<store::Reader*> earlier{};
  std::function<Result<bool>(std::string_view run_id, std::int16_t log_no)> earlier_run{};
};

// Reads through `reader` and `files`, which must outlive it. One a request.
class Resolver {
 public:
  Resolver(store::Reader& reader, store::ArtifactFiles& files, Sight sight)
      : present_(reader), reader_(&reader), files_(files), sight_(std::move(sight)) {}

  // Reads the rows of many pointers at once. Each is used by the first `resolve` of it alone: a second
  // one is a retry, and looks again.
  Status read_ahead(const std::vector<std::string>& pointers);
  // Which of them something needs, in the logs before the reader's.
  Result<std::set<std::string>> needed_before(const std::vector<std::string>& pointers) const;
  // Errors (then nothing is known of the pointer): unavailable.
  Result<Resolution> resolve(std::string_view pointer, Depth depth, bool with_text = false);

 private:
  // In the log of `reader_`.
  Result<Resolution> resolve_here(std::string_view pointer, Depth depth, bool with_text);
  bool in_earlier_log() const { return reader_ != &present_; }
  Result<bool> sees_run(std::string_view run_id) const;
  // A seq of the present log comes after all of an earlier one; a time may lie in one, or before it (-1).
  std::optional<std::int64_t> as_of() const { return in_earlier_log() ? as_of_earlier_ : sight_.as_of; }
  // May a log before the reader's know more of what was found?
  bool goes_on(const Resolution& found) const;
  // What a log before the present one answers becomes `found`, which is what was found so far; false: it knows nothing
  // of it.
  Result<bool> resolve_earlier(Resolution& found, store::Reader& reader, Depth depth, bool with_text);
  Result<std::optional<store::ArtifactRow>> artifact_row(const Uuid& artifact_id);
  Status resolve_artifact(Resolution& out, Depth depth, bool with_text);
  Status resolve_manifest(Resolution& out);
  Status resolve_snapshot(Resolution& out);
  Status resolve_run(Resolution& out);
  Status resolve_log(Resolution& out);
  Status resolve_evidence(Resolution& out, bool with_text);
  // resolver_events.cpp
  Status resolve_event(Resolution& out);
  Status check_event_passage(Resolution& out, const events::Event& event);
  // resolver_documents.cpp
  Status read_documents_ahead(const std::vector<Pointer>& pointers);
  Result<store::CitedDocument> cited(const Pointer& pointer);
  // True: revoked or erased, here or, where an earlier log is looked at, by a newer one; and `out` says so.
  Result<bool> was_removed(Resolution& out, const store::DocumentRow& row, std::string_view owner) const;
  Status resolve_document(Resolution& out, bool with_text);
  static void resolve_sample(Resolution& out);
  Status check_chunk(Resolution& out, const store::CitedDocument& found);
  Status check_bytes(Resolution& out, const store::CitedDocument& found, bool with_text);
  Status check_text(Resolution& out, const Uuid& artifact_id, ByteSpan span);
  Status check_own_bytes(Resolution& out, const store::CitedDocument& found, ByteSpan span);
  // The run of the pointer, if there is one that the caller may see.
  Result<std::shared_ptr<store::Run>> find_run(Resolution& out);
  static void name_source(Resolution& out);
  // Compares the file with what is recorded of it, the whole or a span; fills in what differs, or the span's text.
  Status check_file(Resolution& out, const store::StoredFile& file);
  Status read_file(Resolution& out, const store::StoredFile& file, ByteSpan span);

  store::Reader& present_;
  store::Reader* reader_;                        // of the log that is looked at
  std::optional<std::int64_t> as_of_earlier_{};  // of it, where it is not the present one
  store::ArtifactFiles& files_;
  Sight sight_;
  std::multimap<std::string, std::optional<store::ArtifactRow>> ahead_;  // by artifact_id; empty: no such row
  std::multimap<std::string, store::CitedDocument> documents_ahead_;     // by the pointer's text
};

}  // namespace muniment::evidence
