// Resolves a pointer: checks that its target exists and matches the stored hash. One attempt without
// retry or halt; the stop rule decides about failures (stop_rule.hpp).
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

// The part of the target that is checked.
enum class Depth : std::uint8_t {
  span,   // the bytes that the pointer names are hashed and compared
  whole,  // everything that contains these bytes is compared too: the depth for critical pointers
};

struct Resolution {
  std::string pointer;
  Reason reason = Reason::none;
  std::string detail;                   // a sentence if the pointer does not resolve
  std::optional<Pointer> parsed;        // nullopt: PARSE_ERROR
  std::string path;                     // path of the target's file, if it has one
  std::optional<std::string> expected;  // expected hash, or the size if the sizes differ
  std::optional<std::string> actual;
  std::optional<std::int64_t> size_bytes;
  std::optional<std::string> text;       // a span's bytes if requested, short and UTF-8
  std::optional<std::string> current;    // the pointer to the current revision
  std::optional<EvidenceSource> source;  // the evidence source of existing bytes
  // The target exists with the recorded hash, but is superseded or retracted, which is not damage.
  bool superseded = false;
  bool removed = false;     // revoked, or erased with its document, even for an earlier as_of
  bool erased = false;      // erased according to the log, which is not damage
  bool hidden = false;      // the target exists, but the caller may not see it
  bool recorded = false;    // the log knows the target
  bool beyond = false;      // the log knows the target, which never had the named part
  std::int16_t log_no = 0;  // number of the earlier log that knows the target; 0: the reader's own log, or none

  bool ok() const { return reason == Reason::none; }
  // A pointer without a revision is ambiguous, so the pointer is at fault and nothing is damaged.
  bool damaged() const { return !ok() && !superseded && !erased && reason != Reason::missing_version; }
  // The log never had the target or its part. Unless something depends on it, the pointer is mistyped.
  bool never_recorded() const { return damaged() && (!recorded || beyond); }
  // The target no longer supports anything: it is erased, revoked or retracted.
  bool withdrawn() const { return erased || (superseded && reason == Reason::not_found); }
  // Marks the target as erased.
  void was_erased(std::string words);
  void fail(Reason why, std::string words);
  void fail_beyond(std::string words);  // NOT_FOUND: the target has no such part
  // Records that the file cannot be read. If the daemon lacks a resource, the state of the file is
  // unknown, and the error is returned.
  Status file_failed(Error error);
  // Calls file_failed, or records how the file differs from its record.
  Status not_that_file(Error error, store::Difference difference);
  // Sets the passage's text if its bytes match the hash; otherwise records a mismatch.
  void take_passage(std::string bytes, const Hash& hash, std::string where);
  std::string_view type() const { return parsed ? name_of(parsed->kind) : std::string_view(); }
};

// The caller's access rights and point in time. Data of other owners resolves as not found.
struct Sight {
  std::function<Result<bool>(std::string_view run_id)> run;
  std::function<bool(std::string_view owner)> corpus = [](std::string_view) {
    return false;
  };                                    // returns whether the caller may read corpora of this owner
  std::optional<std::int64_t> as_of{};  // seq at which documents and events are read; -1: before the reader's log began
  std::optional<Time> as_of_time{};     // set if the client gave a time: an earlier log is read as of this time,
                                        // otherwise as of its end
  store::ChunkRows* known = nullptr;    // rows that read_ahead may use instead of a query
  // Readers of the earlier logs, newest first, for targets that the reader's log lacks. `earlier_run` returns whether
  // the caller may see a run of an earlier log.
  std::vector<store::Reader*> earlier{};
  std::function<Result<bool>(std::string_view run_id, std::int16_t log_no)> earlier_run{};
};

// Reads through `reader` and `files`, which must outlive it. One instance for each request.
class Resolver {
 public:
  Resolver(store::Reader& reader, store::ArtifactFiles& files, Sight sight)
      : present_(reader), reader_(&reader), files_(files), sight_(std::move(sight)) {}

  // Reads the rows of many pointers at once. Only the first `resolve` of a pointer uses its row: a
  // second one is a retry and queries again.
  Status read_ahead(const std::vector<std::string>& pointers);
  // Returns the subset of `pointers` on which something depends in the earlier logs.
  Result<std::set<std::string>> needed_before(const std::vector<std::string>& pointers) const;
  // Errors: unavailable (the state of the target is unknown).
  Result<Resolution> resolve(std::string_view pointer, Depth depth, bool with_text = false);

 private:
  // Resolves in the log of `reader_`.
  Result<Resolution> resolve_here(std::string_view pointer, Depth depth, bool with_text);
  bool in_earlier_log() const { return reader_ != &present_; }
  Result<bool> sees_run(std::string_view run_id) const;
  // A seq of the current log is after the end of an earlier one. A time may be within an earlier log, or before it
  // (-1).
  std::optional<std::int64_t> as_of() const { return in_earlier_log() ? as_of_earlier_ : sight_.as_of; }
  // Returns whether an earlier log may know more about the target.
  bool goes_on(const Resolution& found) const;
  // Replaces `found`, the result so far, by the result of an earlier log. Returns false if that log does not know the
  // target.
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
  // Returns true, and sets `out`, if the document was revoked or erased by the log of `reader_` or by a newer one.
  Result<bool> was_removed(Resolution& out, const store::DocumentRow& row, std::string_view owner) const;
  Status resolve_document(Resolution& out, bool with_text);
  static void resolve_sample(Resolution& out);
  Status check_chunk(Resolution& out, const store::CitedDocument& found);
  Status check_bytes(Resolution& out, const store::CitedDocument& found, bool with_text);
  Status check_text(Resolution& out, const Uuid& artifact_id, ByteSpan span);
  Status check_own_bytes(Resolution& out, const store::CitedDocument& found, ByteSpan span);
  // Returns the run of the pointer if it exists and the caller may see it; otherwise nullptr.
  Result<std::shared_ptr<store::Run>> find_run(Resolution& out);
  static void name_source(Resolution& out);
  // Compares the whole file or a span with its record; sets the difference, or the span's text.
  Status check_file(Resolution& out, const store::StoredFile& file);
  Status read_file(Resolution& out, const store::StoredFile& file, ByteSpan span);

  store::Reader& present_;
  store::Reader* reader_;                        // reader of the log that is searched now
  std::optional<std::int64_t> as_of_earlier_{};  // as_of in that log, if it is an earlier one
  store::ArtifactFiles& files_;
  Sight sight_;
  std::multimap<std::string, std::optional<store::ArtifactRow>> ahead_;  // keys: artifact ids; nullopt: no such row
  std::multimap<std::string, store::CitedDocument> documents_ahead_;     // keys: the pointers' texts
};

}  // namespace muniment::evidence
