// Collects the signed checkpoints of a log from all places and compares each with the tree of the events at its size
// (docs/format.md, Checkpoint notes and keys). Signers are judged at the end, because a signature over the event that
// names a key makes that key trusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/log/hashing.hpp"
#include "verify/log/saved_state.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/signed/checkpoint_file.hpp"
#include "verify/signed/key_ring.hpp"
#include "verify/signed/note_files.hpp"
#include "verify/signed/signatures.hpp"

namespace muniment::verify {

class SignedLog {
 public:
  // `started` is the start of this verify. A key created only moments earlier may not have signed anything yet.
  SignedLog(const Uuid& log_id, KeptFiles files, Time started, Findings& findings);
  SignedLog(const SignedLog&) = delete;

  // Opens the notes in the database from the given size on.
  Status open_stored(Connection& connection, std::int64_t log_no, std::int64_t from);

  void see(const Rotation& rotation) { ring_.see(rotation); }
  const std::vector<Rotation>& rotations() const { return ring_.rotations(); }
  std::vector<VerifierKey> trusted() const;

  // Resumes from an earlier verify: skips notes of smaller sizes and judges the saved note again.
  void resume(const SavedState& state);

  // Returns the smallest size still to be compared. Call reached(tree) when the tree has that size.
  std::int64_t next_size() const { return next_size_; }
  Status reached(const Tree& tree);

  // Call after the last event of a log of `size`.
  Status finish(std::int64_t size);

  // Size of the checkpoint published beside the tiles; 0: none.
  std::int64_t published() const { return published_; }

  const Signatures& outcome() const { return outcome_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Returns the largest size, at most `size`, of the notes that are known before the events are read.
  std::int64_t newest_size_within(std::int64_t size) const;

 private:
  struct Pending {  // a note whose size the tree has not reached
    KeptNote kept;
    Checkpoint checkpoint;
    std::optional<Note> note;  // nullopt: it is unsigned
  };
  struct Group {  // notes with the same signers
    std::int64_t count = 0;
    std::int64_t size_min = 0, size_max = 0;
    std::string where;   // place of the first note
    std::string newest;  // text of the largest note
  };
  struct Witness {
    std::string name;
    std::optional<std::size_t> key;
    bool contradicts = false;
    std::int64_t size = -1;
    Time last;
  };

  std::optional<Pending> parse(KeptNote kept);
  Status advance();
  void set_next_size();
  void judge(const Pending& pending, const Tree& tree);
  void judge_signatures(const Pending& pending);
  void note_witnesses(const Pending& pending, const std::vector<Signed>& signers);
  void check_beyond(const Pending& pending, std::int64_t size);
  void judge_replaced();
  void judge_trust();
  void found_untrusted(const Group& group);
  void note_unconfirmed(const std::vector<std::size_t>& signers, const Group& group);
  void summarise();
  void require_signature();
  void name_wrong_key(const std::string& note);
  void found(Check check, std::int64_t size, std::string expected, std::string actual);

  Uuid log_id_;
  Findings& findings_;
  Time started_;
  bool keys_given_ = false;
  bool has_key_ = false;            // a key that could have signed the log
  bool keys_are_anothers_ = false;  // all given keys belong to other logs
  std::optional<Time> signs_since_;
  std::int64_t published_ = 0;
  KeyRing ring_;
  const std::vector<VerifierKey> given_;  // the given keys
  std::vector<Pending> outside_;          // notes by size, the largest first
  std::optional<Cursor> stored_;
  std::optional<Pending> next_stored_;
  std::int64_t stored_size_max_ = -1;
  std::int64_t next_size_ = 0;
  std::map<std::vector<std::size_t>, Group> groups_;            // groups by signers: keys of the ring, in order
  std::vector<std::pair<std::int64_t, std::string>> replaced_;  // notes of the current size by a replaced key
  std::int64_t current_size_ = -1;                              // the newest size that a key of its time signed
  std::vector<Witness> witnesses_;
  Signatures outcome_;
  std::vector<std::string> warnings_;
};

}  // namespace muniment::verify
