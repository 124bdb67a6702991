// Runs the publisher's thread: adds events to the tree, signs and publishes checkpoints.
#include "audit/publisher.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/process/thread.hpp"
#include "store/logs/checkpoint_notes.hpp"
#include "store/tables/follower.hpp"

namespace muniment::audit {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view follower_name = "publisher";
constexpr std::size_t events_per_read = 4'096;
// Interval at which the written files are made durable and a note is stored in the database.
constexpr std::chrono::seconds keep_every{60};
// Time without events after which the newest note is stored in the database too, so that a copy of the database alone
// can be verified to its end.
constexpr milliseconds note_after{1'000};
constexpr milliseconds retry_pause{1'000};
constexpr milliseconds sleep_at_most{10'000};

}  // namespace

Publisher::Publisher(PublisherOptions options, Clock& clock, store::Appender& appender, const store::Tail& tail,
                     Keyring keys, TreeWriter writer)
    : options_(std::move(options)),
      clock_(clock),
      appender_(appender),
      tail_(tail),
      origin_(options_.origin + "/" + appender.status().log_id.text()),
      log_id_(appender.status().log_id),
      reader_(options_.place),
      writer_(std::move(writer)),
      keys_(std::move(keys)) {
  newest_.checkpoint = {origin_, 0, sha256("")};
  show_keys();
}

Publisher::~Publisher() { stop(); }

Result<std::unique_ptr<Publisher>> Publisher::open(PublisherOptions options, Clock& clock, store::Appender& appender,
                                                   const store::Tail& tail) {
  ASSIGN_OR_RETURN(Keyring keys, Keyring::open(options.data + "/keys"));
  ASSIGN_OR_RETURN(TreeWriter writer, TreeWriter::open(options.data + "/tiles"));
  std::unique_ptr<Publisher> publisher(
      new Publisher(std::move(options), clock, appender, tail, std::move(keys), std::move(writer)));
  RETURN_IF_ERROR(publisher->resolve_next_key());
  return publisher;
}

// After a crash during a rotation, the log decides whether the new key is active.
Status Publisher::resolve_next_key() {
  if (!keys_.next()) return success();
  store::EventFilter announced;
  announced.run_no = 0;
  announced.types = {"key.rotated"};
  announced.newest_first = true;
  ASSIGN_OR_RETURN(const auto newest, reader_.events(announced, 1));
  const std::string text = newest.empty() ? "{}" : newest.front().body.value_or("{}");
  const auto body = json::parse(text);
  const bool ours = body && body->root()["new_key"].string_or("") == keys_.next()->verifier().text();
  Status resolved = ours ? keys_.adopt_next() : keys_.drop_next();
  show_keys();
  return resolved;
}

void Publisher::start() {
  thread_ = named_thread("publisher", [this] { follow(); });
}

void Publisher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void Publisher::wait_begun(milliseconds at_most) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return begun_ || stopping_ || !problem_.empty(); });
}

void Publisher::wake() {
  woken_ = true;
  changed_.notify_all();
  tail_.wake();
}

Published Publisher::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

Result<Published> Publisher::covering(std::int64_t seq, Deadline deadline) const {
  std::unique_lock lock(mutex_);
  const bool covered = changed_.wait_until(
      lock, deadline, [&] { return newest_.checkpoint.size > seq || stopping_ || !problem_.empty(); });
  if (newest_.checkpoint.size > seq) return newest_;
  if (!problem_.empty())
    return Error(log_differs_ ? Errc::corrupt : Errc::unavailable,
                 "no checkpoint covers event " + std::to_string(seq) + ": " + problem_);
  return Error(covered ? Errc::unavailable : Errc::deadline_exceeded,
               fmt::format("no checkpoint covers event {} yet. Retry.", seq));
}

Status Publisher::make_durable(std::int64_t seq, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (kept_size_ > seq) return success();
  keep_wanted_ = true;
  lock.unlock();
  wake();
  lock.lock();
  changed_.wait_until(lock, deadline, [&] { return kept_size_ > seq || stopping_ || !problem_.empty(); });
  if (kept_size_ > seq) return success();
  if (!problem_.empty()) return Error(Errc::unavailable, "tiles are not being written: " + problem_);
  return Error(Errc::deadline_exceeded, fmt::format("the tiles of event {} are not durable yet. Retry.", seq));
}

std::vector<VerifierKey> Publisher::keys() const {
  const std::lock_guard lock(mutex_);
  return verifiers_;
}

Result<NoteSignature> Publisher::sign_text(std::string_view text) const {
  const std::lock_guard lock(keys_mutex_);
  if (keys_.can_sign()) return keys_.sign_text(text);
  return Error(Errc::conflict, "the log has no signing key. Create one with: muniment audit key init");
}

bool Publisher::can_sign() const {
  const std::lock_guard lock(mutex_);
  return can_sign_;
}

std::int64_t Publisher::signed_before() const {
  const std::lock_guard lock(mutex_);
  return signed_before_;
}

std::string Publisher::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Publisher::show_keys() {
  const std::lock_guard lock(mutex_);
  verifiers_ = keys_.verifiers();
  can_sign_ = keys_.can_sign();
  signed_before_ = !can_sign_ && keys_.signed_last() ? keys_.last_signed()->checkpoint.size : 0;
}

Result<VerifierKey> Publisher::prepare_key() {
  const std::lock_guard lock(keys_mutex_);
  if (keys_.next()) return Error(Errc::conflict, "a new key is being made. Retry.");
  RETURN_IF_ERROR(keys_.prepare_next(origin_));
  return keys_.next()->verifier();
}

Status Publisher::adopt_key() {
  {
    const std::lock_guard keys_lock(keys_mutex_);
    // If there is no next key, the publisher thread has already adopted it when it read key.rotated.
    if (keys_.next()) RETURN_IF_ERROR(keys_.adopt_next());
    show_keys();
    const std::lock_guard lock(mutex_);
    keys_changed_ = true;
  }
  wake();
  return success();
}

void Publisher::drop_key() {
  const std::lock_guard lock(keys_mutex_);
  (void)keys_.drop_next();
}

void Publisher::set_problem(const Error& error, bool log_differs) {
  const std::lock_guard lock(mutex_);
  log_differs_ = log_differs;
  if (problem_ != error.message) log_error("publishing", {{"error", error.message}});
  problem_ = error.message;
  changed_.notify_all();
}

void Publisher::follow() {
  for (;;) {
    woken_ = false;
    const bool keep = keep_is_wanted(), beginning = !begun_;
    Status done = beginning ? begin() : publish();
    if (done && keep) done = keep_progress(true);
    if (done && rested_) done = keep_note();
    // While it runs, files that differ are written again at once, and a start reads the events.
    if (!done) set_problem(done.error(), beginning && done.error().code == Errc::corrupt);
    if (!rest(done.ok())) break;
  }
  // Publishes the remaining commits and makes everything durable.
  if (!begun_) return;
  Status done = publish();
  if (done) done = keep_progress(true);
  if (!done) set_problem(done.error(), false);
}

bool Publisher::keep_is_wanted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(keep_wanted_, false);
}

// Waits for the interval, and then for new events. Returns false if the thread must stop.
bool Publisher::rest(bool well) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, well ? options_.interval : retry_pause,
                    [&] { return stopping_ || keys_changed_ || keep_wanted_; });
  if (stopping_) return false;
  if (!well || keys_changed_ || keep_wanted_) return true;
  const bool noted = newest_.note.empty() || noted_size_ == newest_.checkpoint.size;
  lock.unlock();
  rested_ = !tail_.wait(writer_.size(), noted ? sleep_at_most : note_after, woken_) && !noted;
  lock.lock();
  return !stopping_;
}

// Continues from the tiles that are known to be durable and complete, or from the first event if they are invalid.
Status Publisher::begin() {
  if (!appender_.status().refused.empty()) return Error(Errc::system_error, appender_.status().refused);
  ASSIGN_OR_RETURN(const auto positions, reader_.follower_positions());
  std::int64_t from = 0;
  for (const auto& [name, position] : positions) {
    if (name == follower_name) from = position;
  }
  const CutTiles cut = cut_tiles(options_.data + "/tiles");
  if (cut.from >= 0) from = std::min(from, cut.from);
  Status done = catch_up_from(from, Tiles::that_fit);
  if (!done && done.error().code == Errc::corrupt) {
    log_warning("the tiles are built again", {{"error", done.error().message}});
    done = catch_up_from(0, Tiles::none);
  }
  RETURN_IF_ERROR(std::move(done));
  ASSIGN_OR_RETURN(const std::int64_t mended, writer_.rewrite_partial());
  count_mended(std::max<std::int64_t>(mended, static_cast<std::int64_t>(cut.paths.size())));
  begun_ = true;
  Status published = publish();
  changed_.notify_all();
  return published;
}

Status Publisher::catch_up_from(std::int64_t size, Tiles use) {
  chain_.forget();
  RETURN_IF_ERROR(writer_.start_at(size));
  set_kept_size(writer_.size());
  const store::LogStatus log = appender_.status();
  // The previous process wrote these tiles, so their events need not be read from the database again.
  while (use == Tiles::that_fit && writer_.size() + tile_width <= log.size) {
    ASSIGN_OR_RETURN(const bool taken, writer_.take());
    if (taken) {
      chain_.forget();  // the taken tiles may contain events of these runs
    } else {
      RETURN_IF_ERROR(advance(writer_.size() + tile_width));
    }
  }
  const auto last = signed_and_not_published();
  if (last && last->checkpoint.size >= writer_.size() && last->checkpoint.size <= log.size) {
    RETURN_IF_ERROR(advance(last->checkpoint.size));
    RETURN_IF_ERROR(writer_.write_partial());  // a checkpoint is read together with the tiles of its size
  }
  RETURN_IF_ERROR(advance(log.size));
  if (writer_.root() != log.root)
    return Error(Errc::corrupt, "the tiles do not yield the log's root. Run muniment-verify");
  return last && last->checkpoint.size <= log.size ? writer_.write_checkpoint(last->note) : success();
}

// After a restore without the private key, the log cannot be signed again. Returns the last signed checkpoint if it is
// missing from tiles/, so that it is published again.
std::optional<LastSigned> Publisher::signed_and_not_published() const {
  struct stat about {};
  if (keys_.can_sign() || !keys_.signed_last() || ::lstat((options_.data + "/tiles/checkpoint").c_str(), &about) == 0)
    return std::nullopt;
  return keys_.last_signed();
}

// Adds the committed events up to `size` to the tree.
Status Publisher::advance(std::int64_t size) {
  while (writer_.size() < size) {
    const auto limit = static_cast<std::size_t>(
        std::min<std::int64_t>(size - writer_.size(), static_cast<std::int64_t>(events_per_read)));
    if (const auto newer = tail_.read(writer_.size(), limit)) {
      // The size grows slightly before the tail has the batch.
      if (newer->empty() && !tail_.wait(writer_.size(), retry_pause))
        return Error(Errc::unavailable, "the newest events cannot be read yet");
      for (const store::EventPtr& event : *newer) {
        if (event->type == "key.rotated") RETURN_IF_ERROR(adopt_if_announced(*event));
        RETURN_IF_ERROR(chain_.add(*event, reader_, writer_));
      }
      continue;
    }
    store::EventFilter older;
    older.from_seq = writer_.size();
    older.to_seq = size - 1;
    older.archived_bodies = false;  // a tree entry needs only the body's hash
    ASSIGN_OR_RETURN(const auto events, reader_.events(older, std::min<std::size_t>(limit, 1'000)));
    if (events.empty()) return missing_event(writer_, reader_);
    for (const events::Event& event : events) RETURN_IF_ERROR(chain_.add(event, reader_, writer_));
  }
  return success();
}

// The old key alone never signs a tree that includes the event which replaces it. The new key is activated by the first
// reader of the event: this thread, or the request that appended it.
Status Publisher::adopt_if_announced(const events::Event& event) {
  const std::lock_guard keys_lock(keys_mutex_);
  if (!keys_.next() || !event.body) return success();
  const auto body = json::parse(*event.body);
  if (!body || body->root()["new_key"].string_or("") != keys_.next()->verifier().text()) return success();
  RETURN_IF_ERROR(keys_.adopt_next());
  show_keys();
  return success();
}

Status Publisher::publish() {
  const store::LogStatus log = appender_.status();
  RETURN_IF_ERROR(advance(log.size));
  const std::lock_guard keys_lock(keys_mutex_);
  {
    const std::lock_guard lock(mutex_);
    const bool newly_keyed = std::exchange(keys_changed_, false);
    const bool wants_note = keys_.can_sign() && (newly_keyed || newest_.note.empty());
    problem_.clear();
    if (writer_.size() == newest_.checkpoint.size && !wants_note) return success();
  }
  if (writer_.root() != log.root) {
    begun_ = false;  // the files may be damaged: check them again from the start
    return Error(Errc::corrupt, "the tiles do not yield the log's root. Run muniment-verify");
  }
  RETURN_IF_ERROR(writer_.write_partial());
  Published next{{origin_, log.size, log.root}, {}};
  if (keys_.can_sign()) {
    ASSIGN_OR_RETURN(next.note, sign(next.checkpoint));
    RETURN_IF_ERROR(writer_.write_checkpoint(next.note));
  }
  {
    const std::lock_guard lock(mutex_);
    newest_ = next;
  }
  changed_.notify_all();
  if (next.note.empty()) return keep_progress(false);
  if (on_signed) on_signed(next);
  RETURN_IF_ERROR(keep_progress(keys_.has_old() || kept_ == Monotonic{}));
  return keys_.has_old() ? keys_.forget_old() : success();
}

// The keyring records the checkpoint durably before it is visible.
Result<std::string> Publisher::sign(const Checkpoint& checkpoint) {
  std::string note = keys_.sign(checkpoint).signed_text();
  FAILPOINT("checkpoint.before_remember");
  RETURN_IF_ERROR(keys_.remember(checkpoint, note));
  FAILPOINT("checkpoint.after_remember");
  return note;
}

void Publisher::count_mended(std::int64_t files) {
  if (files == 0) return;
  log_warning("truncated files of the tree were written again", {{"files", std::to_string(files)}});
  const std::lock_guard lock(mutex_);
  rewritten_ += files;
}

std::int64_t Publisher::rewritten() const {
  const std::lock_guard lock(mutex_);
  return rewritten_;
}

std::int64_t Publisher::kept_size() const {
  const std::lock_guard lock(mutex_);
  return kept_size_;
}

void Publisher::set_kept_size(std::int64_t size) {
  const std::lock_guard lock(mutex_);
  kept_size_ = size;
  changed_.notify_all();
}

// Stores the newest note in the database.
Status Publisher::keep_note() {
  rested_ = false;
  const Published newest = this->newest();
  if (newest.note.empty() || newest.checkpoint.size == noted_size_) return success();
  RETURN_IF_ERROR(store::store_note(reader_.connection(), options_.place.log_no, newest.checkpoint.size, newest.note,
                                    clock_.now()));
  noted_size_ = newest.checkpoint.size;
  return success();
}

// Periodically makes the tiles durable, records their size, and stores the newest note in the database.
Status Publisher::keep_progress(bool now) {
  if (!now && clock_.monotonic() < kept_ + keep_every) return success();
  RETURN_IF_ERROR(keep_note());
  if (writer_.size() != kept_size()) {
    RETURN_IF_ERROR(writer_.sync());
    RETURN_IF_ERROR(store::keep_position(reader_.connection(), options_.place.log_no, follower_name, writer_.size()));
  }
  kept_ = clock_.monotonic();
  set_kept_size(writer_.size());
  return success();
}

}  // namespace muniment::audit
