// The signed checkpoints of a log, from wherever they are kept, each held against the tree that the events give at
// its size (docs/format.md, Checkpoint notes and keys). Who signed is decided at the end: a key may come to be trusted
// by a signature over the event that names it.
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
  // `started`: when this verify began; a key that is younger than a moment may have signed nothing yet.
  SignedLog(const Uuid& log_id, KeptFiles files, Time started, Findings& findings);
  SignedLog(const SignedLog&) = delete;

  // The notes that the database keeps, from the given size on.
  Status open_stored(Connection& connection, std::int64_t log_no, std::int64_t from);

  void see(const Rotation& rotation) { ring_.see(rotation); }
  const std::vector<Rotation>& rotations() const { return ring_.rotations(); }
  std::vector<VerifierKey> trusted() const;

  // Goes on behind what an earlier verify saw: notes of smaller sizes are passed over, the saved one is judged again.
  void resume(const SavedState& state);

  // The smallest size that is still to be compared; reached(tree) when the tree has it.
  std::int64_t next_size() const { return next_size_; }
  Status reached(const Tree& tree);

  // After the last event of a log of `size`.
  Status finish(std::int64_t size);

  // The size of the checkpoint that was published beside the tiles; 0: there is none.
  std::int64_t published() const { return published_; }

  const Signatures& outcome() const { return outcome_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The largest size of a note at most `size`, of those that are known before the events are read.
  std::int64_t newest_size_within(std::int64_t size) const;

 private:
  struct Pending {  // a note that waits for its size
    KeptNote kept;
    Checkpoint checkpoint;
    std::optional<Note> note;  // none: it is unsigned
  };
  struct Group {  // notes with the same signers
    std::int64_t count = 0;
    std::int64_t size_min = 0, size_max = 0;
    std::string where;   // of the first
    std::string newest;  // the text of the largest
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
  void settle_replaced();
  void settle_trust();
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
  bool has_key_ = false;            // one that could have signed the log
  bool keys_are_anothers_ = false;  // those that were given, all of them
  std::optional<Time> signs_since_;
  std::int64_t published_ = 0;
  KeyRing ring_;
  const std::vector<VerifierKey> given_;  // of the ring, those that nobody had to name
  std::vector<Pending> outside_;          // by size, the largest first
  std::optional<Cursor> stored_;
  std::optional<Pending> next_stored_;
  std::int64_t stored_size_max_ = -1;
  std::int64_t next_size_ = 0;
  std::map<std::vector<std::size_t>, Group> groups_;            // by their signers: keys of the ring, in order
  std::vector<std::pair<std::int64_t, std::string>> replaced_;  // notes of the present size by a key that was replaced
  std::int64_t current_size_ = -1;                              // the newest size that a key of its time signed
  std::vector<Witness> witnesses_;
  Signatures outcome_;
  std::vector<std::string> warnings_;
};

}  // namespace muniment::verify
