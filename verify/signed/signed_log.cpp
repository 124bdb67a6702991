#include "verify/signed/signed_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace muniment::verify {
namespace {

constexpr std::int64_t no_size = std::numeric_limits<std::int64_t>::max();
// The first checkpoint under a new key is signed well within this time.
constexpr std::int64_t first_signature_micros_max = 60'000'000;

std::string described(const std::string& where, const Checkpoint& checkpoint) {
  return fmt::format("{}: {} after {} events", where, to_hex(checkpoint.root), checkpoint.size);
}

}  // namespace

SignedLog::SignedLog(const Uuid& log_id, KeptFiles files, Time started, Findings& findings)
    : log_id_(log_id),
      findings_(findings),
      started_(started),
      keys_given_(!files.keys.empty() && !files.keys_are_the_logs_own),
      signs_since_(files.signs_since),
      ring_(files.keys),
      given_(std::move(files.keys)),
      warnings_(std::move(files.warnings)) {
  outcome_.keys_are_the_logs_own = files.keys_are_the_logs_own;
  for (const std::string& name : files.witnesses) witnesses_.push_back({name, std::nullopt, false, -1, {}});
  for (std::size_t key = 0; key < ring_.keys().size(); ++key) {
    has_key_ = has_key_ || ring_.keys()[key].type == KeyType::ed25519;
    if (ring_.keys()[key].type == KeyType::cosignature)
      witnesses_.push_back({ring_.keys()[key].name, key, false, -1, {}});
  }
  // The name of a key contains the id of its log. A given key of this log that signed nothing is a different case: a
  // different key signed the log.
  keys_are_anothers_ = keys_given_ && has_key_ && !one_is_of(log_id, given_);
  for (const auto& [where, kind] : files.no_files) {
    findings_.add({where == published_note ? Check::tile : Check::checkpoint_signature, -1, "",
                   where + ": a regular file", kind});
  }
  for (KeptNote& kept : files.notes) {
    const bool is_published = kept.where == published_note;
    auto pending = parse(std::move(kept));
    if (!pending) continue;
    if (is_published) published_ = pending->checkpoint.size;
    outside_.push_back(*std::move(pending));
  }
  std::stable_sort(outside_.begin(), outside_.end(),
                   [](const Pending& a, const Pending& b) { return a.checkpoint.size > b.checkpoint.size; });
  set_next_size();
}

Status SignedLog::open_stored(Connection& connection, std::int64_t log_no, std::int64_t from) {
  ASSIGN_OR_RETURN(const auto there, connection.integer("SELECT 1 WHERE to_regclass('checkpoint_note') IS NOT NULL"));
  if (!there) return success();
  const std::string where = fmt::format("FROM checkpoint_note WHERE log_no = {} AND size >= {}", log_no, from);
  ASSIGN_OR_RETURN(const auto largest, connection.integer("SELECT max(size) " + where));
  stored_size_max_ = largest.value_or(-1);
  ASSIGN_OR_RETURN(stored_, Cursor::open(connection, "checkpoint_notes",
                                         "SELECT size, note, recorded_at " + where + " ORDER BY size"));
  return advance();
}

// Skips a note of a different log, because a witness may serve several.
std::optional<SignedLog::Pending> SignedLog::parse(KeptNote kept) {
  auto file = parse_checkpoint_file(kept.text);
  if (!file) {
    found(Check::checkpoint_signature, 0, "a signed checkpoint of this log",
          fmt::format("{}: {}", kept.where, file.error().message));
    return std::nullopt;
  }
  const Checkpoint& checkpoint = file->checkpoint;
  if (!checkpoint.origin.ends_with("/" + log_id_.text())) {
    if (kept.witness) return std::nullopt;
    found(Check::checkpoint_signature, checkpoint.size, "an origin line that ends with " + log_id_.text(),
          fmt::format("{}: {}", kept.where, checkpoint.origin));
    return std::nullopt;
  }
  return Pending{std::move(kept), std::move(file->checkpoint), std::move(file->note)};
}

Status SignedLog::advance() {
  next_stored_.reset();
  Row row;
  while (stored_ && !next_stored_) {
    ASSIGN_OR_RETURN(const bool more, stored_->next(row));
    if (!more) {
      stored_.reset();
      break;
    }
    next_stored_ = parse({fmt::format("checkpoint_note {}", row.integer(0)), row.text(1), std::nullopt, row.time(2)});
    if (next_stored_ && next_stored_->checkpoint.size != row.integer(0)) {
      found(Check::checkpoint_signature, row.integer(0), fmt::format("a note over {} events", row.integer(0)),
            fmt::format("checkpoint_note {}: a note over {} events", row.integer(0), next_stored_->checkpoint.size));
      next_stored_.reset();
    }
  }
  set_next_size();
  return success();
}

void SignedLog::resume(const SavedState& state) {
  for (const Rotation& rotation : state.rotations) ring_.see(rotation);
  for (const VerifierKey& key : state.keys) ring_.trust(key);
  has_key_ = has_key_ || !state.keys.empty();
  std::erase_if(outside_, [&](const Pending& pending) { return pending.checkpoint.size < state.size; });
  if (!state.note.empty()) {
    if (auto saved = parse({"the saved state", state.note, std::nullopt, state.saved_at}))
      outside_.push_back(*std::move(saved));
  }
  set_next_size();
}

std::vector<VerifierKey> SignedLog::trusted() const {
  std::vector<VerifierKey> keys;
  for (std::size_t key = 0; key < ring_.keys().size(); ++key) {
    if (ring_.fact(key).trusted && ring_.keys()[key].type == KeyType::ed25519) keys.push_back(ring_.keys()[key]);
  }
  return keys;
}

void SignedLog::set_next_size() {
  next_size_ = std::min(outside_.empty() ? no_size : outside_.back().checkpoint.size,
                        next_stored_ ? next_stored_->checkpoint.size : no_size);
}

std::int64_t SignedLog::newest_size_within(std::int64_t size) const {
  std::int64_t newest = stored_size_max_ <= size ? stored_size_max_ : -1;
  for (const Pending& pending : outside_) {
    if (pending.note && pending.checkpoint.size <= size) newest = std::max(newest, pending.checkpoint.size);
  }
  return newest;
}

Status SignedLog::reached(const Tree& tree) {
  while (!outside_.empty() && outside_.back().checkpoint.size <= tree.size()) {
    judge(outside_.back(), tree);
    outside_.pop_back();
  }
  while (next_stored_ && next_stored_->checkpoint.size <= tree.size()) {
    judge(*next_stored_, tree);
    RETURN_IF_ERROR(advance());
  }
  judge_replaced();
  set_next_size();
  return success();
}

// Judges notes of this size by a replaced key. They are consistent if the log's key of that time signed the same tree.
void SignedLog::judge_replaced() {
  for (auto& [size, actual] : replaced_) {
    if (size != current_size_)
      found(Check::checkpoint_signature, size, "a signature by the log's key of that time", std::move(actual));
  }
  replaced_.clear();
}

void SignedLog::judge(const Pending& pending, const Tree& tree) {
  const Checkpoint& checkpoint = pending.checkpoint;
  ++outcome_.checkpoints;
  if (checkpoint.size != tree.size() || checkpoint.root != tree.root()) {
    if (pending.kept.witness) witnesses_[*pending.kept.witness].contradicts = true;
    found(Check::checkpoint_root, checkpoint.size, described(pending.kept.where, checkpoint),
          fmt::format("{} after {} events", to_hex(tree.root()), tree.size()));
    return;
  }
  if (pending.kept.given) outcome_.continues.push_back(checkpoint.size);
  judge_signatures(pending);
}

void SignedLog::judge_signatures(const Pending& pending) {
  if (!pending.note) return;  // an unsigned note promises nothing
  if (!has_key_) {
    outcome_.without_key = true;
    return;
  }
  const std::int64_t size = pending.checkpoint.size;
  const auto signers = signers_of(*pending.note, ring_.keys());
  if (!signers) {
    found(Check::checkpoint_signature, size, "signatures that verify",
          fmt::format("{}: {}", pending.kept.where, signers.error().message));
    return;
  }
  std::vector<std::size_t> keys;
  bool one_is_current = false;
  for (const Signed& signer : *signers) {
    if (signer.key->type != KeyType::ed25519 || signer.key->name != pending.checkpoint.origin) continue;
    keys.push_back(static_cast<std::size_t>(signer.key - ring_.keys().data()));
    const std::int64_t retired_at = ring_.fact(keys.back()).retired_at;
    one_is_current = one_is_current || retired_at < 0 || retired_at >= size;
  }
  std::sort(keys.begin(), keys.end());
  if (!keys.empty() && !one_is_current) {
    replaced_.emplace_back(size, fmt::format("{}: signed only by a key that was replaced at seq {}", pending.kept.where,
                                             ring_.fact(keys.front()).retired_at));
    return;
  }
  if (!keys.empty()) current_size_ = size;
  Group& group = groups_[keys];
  if (group.count++ == 0) {
    group.where = pending.kept.where;
    group.size_min = size;
  }
  if (size >= group.size_max) {
    group.size_max = size;
    group.newest = pending.kept.text;
  }
  if (!keys.empty()) note_witnesses(pending, *signers);
}

void SignedLog::note_witnesses(const Pending& pending, const std::vector<Signed>& signers) {
  const auto vouches = [&](Witness& witness, Time at) {
    witness.size = std::max(witness.size, pending.checkpoint.size);
    witness.last = std::max(witness.last, at);
  };
  for (const Signed& signer : signers) {
    if (signer.key->type != KeyType::cosignature) continue;
    const auto key = static_cast<std::size_t>(signer.key - ring_.keys().data());
    for (Witness& witness : witnesses_) {
      if (witness.key == key) vouches(witness, {static_cast<std::int64_t>(signer.time_s) * 1'000'000});
    }
  }
  if (pending.kept.witness) vouches(witnesses_[*pending.kept.witness], pending.kept.kept_at);
}

// A signature by a known key shows that the log had this size.
void SignedLog::check_beyond(const Pending& pending, std::int64_t size) {
  ++outcome_.checkpoints;
  if (pending.note && has_key_) {
    const auto signers = signers_of(*pending.note, ring_.keys());
    const bool known = signers && std::any_of(signers->begin(), signers->end(), [](const Signed& signer) {
                         return signer.key->type == KeyType::ed25519;
                       });
    if (!known) {
      found(Check::checkpoint_signature, pending.checkpoint.size, "a signature by a key of this log",
            fmt::format("{}: {}", pending.kept.where, signers ? "signed by no known key" : signers.error().message));
      return;
    }
  }
  if (pending.kept.witness) witnesses_[*pending.kept.witness].contradicts = true;
  findings_.add({Check::log_rolled_back, size, "",
                 fmt::format("{}: a log of at least {} events", pending.kept.where, pending.checkpoint.size),
                 fmt::format("a log of {} events", size)});
}

Status SignedLog::finish(std::int64_t size) {
  for (; !outside_.empty(); outside_.pop_back()) check_beyond(outside_.back(), size);
  while (next_stored_) {
    check_beyond(*next_stored_, size);
    RETURN_IF_ERROR(advance());
  }
  judge_trust();
  summarise();
  require_signature();
  return success();
}

// Handles notes beyond the last trusted signature by a key that the log names but no trusted key confirmed. Either the
// private key was lost before it could confirm, or an attacker with access to the database named its own key.
// These notes count as unsigned.
void SignedLog::note_unconfirmed(const std::vector<std::size_t>& signers, const Group& group) {
  if (outcome_.upto < 0) return found_untrusted(group);
  const std::size_t key = signers.back();
  warnings_.push_back(fmt::format(
      "{} checkpoints, the largest of {} events, are signed by {}, which the event at {} names and no trusted key "
      "confirmed: they are ignored. If you trust this key, give its file: --key FILE",
      group.count, group.size_max, ring_.keys()[key].text(), ring_.fact(key).named_at));
}

void SignedLog::found_untrusted(const Group& group) {
  found(Check::checkpoint_signature, group.size_min, "a signature by a trusted key",
        fmt::format("{} checkpoints, the first {}: signed by no trusted key", group.count, group.where));
}

void SignedLog::judge_trust() {
  const auto trusted = [&](const std::vector<std::size_t>& signers) {
    return std::any_of(signers.begin(), signers.end(), [&](std::size_t key) { return ring_.fact(key).trusted; });
  };
  const auto named = [&](const std::vector<std::size_t>& signers) {
    return !signers.empty() &&
           std::all_of(signers.begin(), signers.end(), [&](std::size_t key) { return ring_.fact(key).named_at >= 0; });
  };
  for (bool news = true; news;) {
    news = false;
    for (const auto& [signers, group] : groups_) {
      if (trusted(signers) && ring_.trust_named_below(group.size_max)) news = true;
    }
  }
  std::vector<const std::vector<std::size_t>*> unconfirmed;
  for (const auto& [signers, group] : groups_) {
    if (!trusted(signers) && keys_are_anothers_) {
      name_wrong_key(group.newest);
    } else if (!trusted(signers) && named(signers)) {
      unconfirmed.push_back(&signers);
    } else if (!trusted(signers)) {
      found_untrusted(group);
    } else if (group.size_max - 1 > outcome_.upto || outcome_.newest.empty()) {
      outcome_.upto = group.size_max - 1;
      outcome_.newest = group.newest;
    }
  }
  for (const std::vector<std::size_t>* const signers : unconfirmed) note_unconfirmed(*signers, groups_[*signers]);
}

void SignedLog::name_wrong_key(const std::string& note) {
  const auto file = parse_checkpoint_file(note);
  if (file && file->note) outcome_.wrong_key = wrong_key_text(file->checkpoint.origin, *file->note, given_);
}

void SignedLog::summarise() {
  std::map<std::size_t, std::int64_t> size_of;
  for (const auto& [signers, group] : groups_) {
    for (const std::size_t key : signers) {
      if (ring_.fact(key).trusted) size_of[key] = std::max(size_of[key], group.size_max);
    }
  }
  for (const auto& [key, size] : size_of)
    outcome_.keys.push_back({ring_.keys()[key].text(), ring_.fact(key).named_at, size - 1});
  for (const Witness& witness : witnesses_) {
    const bool vouches = witness.size >= 0 && !witness.contradicts;
    outcome_.witnesses.push_back({witness.name, vouches ? witness.size - 1 : -1, witness.last});
    if (witness.size < 0 && !witness.contradicts)
      warnings_.push_back(fmt::format("witness {} cosigned no checkpoint of this log", witness.name));
  }
  if (outcome_.keys_are_the_logs_own && !outcome_.newest.empty()) {
    warnings_.push_back(
        "the key was read from the data folder: it proves nothing against an attacker who can write that folder. Give a key that you stored elsewhere: --key FILE");
  }
}

// Requires a signature of a signing log, because the signatures were removed if none exist. A given key of this log
// shows that it signs. Keys of other logs or of witnesses show nothing, because this log may have no key yet.
void SignedLog::require_signature() {
  if (!groups_.empty() || outcome_.without_key) return;
  const bool its_key_given = keys_given_ && one_is_of(log_id_, given_);
  if (!its_key_given && !signs_since_ && ring_.rotations().empty()) {
    if (keys_are_anothers_) outcome_.wrong_key = wrong_key_text("log " + log_id_.text(), {}, given_);
    return;
  }
  // An attacker with the folder can change file times
  Time since = its_key_given ? Time{} : signs_since_.value_or(Time{});
  if (!ring_.rotations().empty()) since = std::max(since, ring_.rotations().back().recorded_at);
  if (started_.micros - since.micros < first_signature_micros_max) {
    warnings_.push_back("the log's key is new and has signed nothing yet");
    return;
  }
  found(Check::checkpoint_signature, 0, "a checkpoint that the log's key signed",
        "none: the signed checkpoints are missing");
}

void SignedLog::found(Check check, std::int64_t size, std::string expected, std::string actual) {
  findings_.add({check, size - 1, "", std::move(expected), std::move(actual)});
}

}  // namespace muniment::verify
