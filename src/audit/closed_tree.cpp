// Builds the tree of a closed log and reads its signed notes.
#include "audit/closed_tree.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "audit/entry_chain.hpp"
#include "audit/tree_files.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/process/thread.hpp"
#include "events/merkle_proof.hpp"
#include "store/logs/checkpoint_notes.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t events_per_fill = 1'000;
constexpr std::int64_t retry_ms = 1'000;
constexpr std::chrono::milliseconds wait_max{2'000};  // limit for a worker, which has other requests to serve

std::string folder_of(const store::EarlierLog& log) { return log.folder + "/closed-tiles"; }

}  // namespace

ClosedTree::ClosedTree(const store::EarlierLog& log, std::string origin) : log_(log), origin_(std::move(origin)) {}

ClosedTree::~ClosedTree() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

Result<const ClosedTree::Proven*> ClosedTree::proven(Deadline deadline) {
  std::unique_lock lock(mutex_);
  // The next caller retries a build that failed for lack of Postgres or disk space.
  if (made_ && !*made_ && made_->error().code != Errc::corrupt) {
    thread_.join();
    thread_ = {};
    made_.reset();
  }
  if (!made_ && !thread_.joinable()) thread_ = named_thread("closed tree", [this] { make(); });
  Error not_yet(Errc::unavailable,
                fmt::format("the tree of log {} ({} events) is being built. Retry.", log_.place.log_no, log_.size));
  not_yet.retry_after_ms = retry_ms;
  if (!made_ && waiting_) return not_yet;
  waiting_ = true;
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + wait_max);
  const bool came = changed_.wait_until(lock, until, [this] { return made_.has_value(); });
  waiting_ = false;
  if (!came) {
    if (until == deadline) not_yet.code = Errc::deadline_exceeded;
    return not_yet;
  }
  if (!*made_) return made_->error();
  return &**made_;
}

void ClosedTree::make() {
  FAILPOINT("closed_tree.make");
  Result<Proven> result = made();
  if (!result)
    log_warning("cannot build the tree of a closed log",
                {{"log_no", log_.place.log_no}, {"error", result.error().message}});
  const std::lock_guard lock(mutex_);
  made_.emplace(std::move(result));
  changed_.notify_all();
}

// Reuses tiles that an earlier start wrote. If the expected root is known and they do not yield it, rebuilds all tiles
// from the events.
Status ClosedTree::fill() {
  if (::mkdir(log_.folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", log_.folder, errno);
  ASSIGN_OR_RETURN(TreeWriter writer, TreeWriter::open(folder_of(log_)));
  ASSIGN_OR_RETURN(const bool taken, lay(writer, true));
  if (taken && log_.root && writer.root() != *log_.root) {
    log_warning("the tiles of a closed log do not match its events and are built again",
                {{"log_no", log_.place.log_no}});
    RETURN_IF_ERROR(lay(writer, false));
  }
  if (log_.root && writer.root() != *log_.root) {
    return Error(Errc::corrupt,
                 fmt::format("the events of log {} do not yield its recorded root. Run muniment-verify --log {}",
                             log_.place.log_no, log_.place.log_no));
  }
  return writer.write_partial();
}

// Builds the whole tree from the events; with `take`, from existing tiles where possible. Returns whether tiles were
// taken.
Result<bool> ClosedTree::lay(TreeWriter& writer, bool take) {
  store::Reader reader(log_.place);
  EntryChain chain(log_.log_id);
  bool taken = false;
  RETURN_IF_ERROR(writer.start_at(0));
  while (writer.size() < log_.size) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return Error(Errc::unavailable, "the daemon is stopping");
    }
    if (take && writer.size() % tile_width == 0 && writer.size() + tile_width <= log_.size) {
      ASSIGN_OR_RETURN(take, writer.take());
      taken = taken || take;
      if (take) continue;
    }
    store::EventFilter filter;
    filter.from_seq = writer.size();
    filter.to_seq = log_.size - 1;
    filter.archived_bodies = false;  // a tree entry needs only the body's hash
    ASSIGN_OR_RETURN(const auto events, reader.events(filter, events_per_fill));
    if (events.empty()) return missing_event(writer, reader);
    for (const events::Event& event : events) RETURN_IF_ERROR(chain.add(event, reader, writer));
  }
  return taken;
}

// Returns every known signed note of the log.
Result<std::vector<std::string>> ClosedTree::notes() const {
  store::Reader reader(log_.place);
  ASSIGN_OR_RETURN(std::vector<std::string> notes,
                   store::read_newest_notes(reader.connection(), log_.place.log_no, log_.size));
  notes.push_back(log_.checkpoint);
  if (auto last = read_file(log_.folder + "/keys/last_signed", limits::note_bytes_max))
    notes.push_back(*std::move(last));
  return notes;
}

Result<ClosedTree::Proven> ClosedTree::made() {
  RETURN_IF_ERROR(fill());
  ASSIGN_OR_RETURN(tiles_, open_folder(folder_of(log_)));
  Proven proven{{log_.log_id, tiles_, {}}, {log_.log_id, tiles_, {}}, {}};
  if (auto text = read_file(log_.folder + "/keys/log.pub", limits::note_bytes_max)) {
    if (auto keys = parse_verifier_keys(*text)) proven.keys = *std::move(keys);
  }
  TreeReader tree(tiles_, log_.size);
  Published& whole = proven.whole.published;
  ASSIGN_OR_RETURN(const Hash root, events::root_of(log_.size, tree.reader()));
  whole.checkpoint = {proven.keys.empty() ? origin_ + "/" + log_.log_id.text() : proven.keys.back().name, log_.size,
                      root};
  ASSIGN_OR_RETURN(const auto notes, this->notes());
  for (const std::string& file : notes) {
    const auto note = Note::parse(file);
    const auto checkpoint = note ? Checkpoint::parse(note->text) : Result<Checkpoint>(note.error());
    if (!checkpoint || checkpoint->size > log_.size || checkpoint->size <= proven.signed_tree.published.checkpoint.size)
      continue;
    // A note whose root differs from the events, or without a signature by the log's keys, proves nothing about them.
    const auto signers = signers_of(*note, proven.keys);
    if (!signers || signers->empty()) continue;
    ASSIGN_OR_RETURN(const Hash at_size, events::root_of(checkpoint->size, tree.reader()));
    if (at_size == checkpoint->root) proven.signed_tree.published = {*checkpoint, file};
  }
  return proven;
}

}  // namespace muniment::audit
