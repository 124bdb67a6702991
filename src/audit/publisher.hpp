// The publisher follows the log and publishes tiles, entry bundles, and a signed checkpoint at most 250 ms after an
// event, triggered by time alone. It never signs a tree that is smaller than, or different from, the last signed one:
// the last signed checkpoint is durable before it is published, and the log is compared with it before the publisher
// starts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audit/entry_chain.hpp"
#include "audit/keyring.hpp"
#include "audit/tree_files.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/append/appender.hpp"
#include "store/append/tail.hpp"
#include "store/read/reader.hpp"

namespace muniment::audit {

struct PublisherOptions {
  std::string data;    // contains keys/ and tiles/
  std::string origin;  // the origin line is origin/log_id
  store::LogPlace place;
  std::chrono::milliseconds interval{200};  // between two checkpoints while events arrive
};

// A size up to which all tiles exist.
struct Published {
  Checkpoint checkpoint;
  std::string note;  // empty: there is no key
};

class Publisher {
 public:
  // The log must have been compared with the last signed checkpoint (daemon/start/log_start.hpp). Errors: those of the
  // keys and the folders.
  static Result<std::unique_ptr<Publisher>> open(PublisherOptions options, Clock& clock, store::Appender& appender,
                                                 const store::Tail& tail);
  ~Publisher();
  void start();
  // Waits until the existing tiles are in the tree, but at most for the given time.
  void wait_begun(std::chrono::milliseconds at_most) const;
  // Publishes the committed events and ends the thread. The append thread must have ended.
  void stop();

  Published newest() const;
  // Waits for the first published size above `seq`. Errors: deadline_exceeded; the current problem of the publisher:
  // unavailable, or corrupt if the events do not yield the log's root at a start.
  Result<Published> covering(std::int64_t seq, Deadline deadline) const;
  // Waits until the tiles of everything up to `seq` are durable. Errors: as for `covering`.
  Status make_durable(std::int64_t seq, Deadline deadline);
  const Fd& tiles() const { return writer_.folder(); }

  std::string origin() const { return origin_; }
  const Uuid& log_id() const { return log_id_; }
  std::vector<VerifierKey> keys() const;
  bool can_sign() const;               // the newest private key is present
  std::int64_t signed_before() const;  // size of the last signed checkpoint if the private key is missing; 0: none
  std::string problem() const;         // reason why no checkpoint is published; empty: none
  std::int64_t rewritten() const;      // number of truncated tree files that were written again

  // Signs a text that is not a checkpoint with the log's key, such as an attestation. Waits while files are written.
  // Errors: conflict without a private key.
  Result<NoteSignature> sign_text(std::string_view text) const;

  // Rotates the key in two steps, before and after the event that announces it.
  Result<VerifierKey> prepare_key();  // conflict if another key is being made
  Status adopt_key();
  void drop_key();

  // Called on the publisher's thread for each signed checkpoint; must not block.
  std::function<void(const Published&)> on_signed;

 private:
  Publisher(PublisherOptions options, Clock& clock, store::Appender& appender, const store::Tail& tail, Keyring keys,
            TreeWriter writer);

  void follow();
  bool rest(bool well);
  void wake();
  Status resolve_next_key();
  Status begin();
  enum class Tiles : std::uint8_t { that_fit, none };  // existing tiles to take over
  Status catch_up_from(std::int64_t size, Tiles use);
  std::optional<LastSigned> signed_and_not_published() const;
  Status adopt_if_announced(const events::Event& event);
  void count_mended(std::int64_t files);
  Status advance(std::int64_t size);
  Status publish();
  Result<std::string> sign(const Checkpoint& checkpoint);
  void show_keys();
  Status keep_progress(bool now);
  Status keep_note();
  bool keep_is_wanted();
  std::int64_t kept_size() const;
  void set_kept_size(std::int64_t size);
  void set_problem(const Error& error, bool log_differs);

  const PublisherOptions options_;
  Clock& clock_;
  store::Appender& appender_;
  const store::Tail& tail_;
  const std::string origin_;
  const Uuid log_id_;

  // Used by the publisher's thread alone.
  store::Reader reader_;
  TreeWriter writer_;
  EntryChain chain_{log_id_};
  std::atomic<bool> begun_{false};
  bool rested_ = false;          // no event for a while, and the newest note is not in the database
  std::int64_t noted_size_ = 0;  // size of the newest note in the database
  Monotonic kept_{};

  std::atomic<bool> woken_{false};
  // Held while files are written, so it is never locked on the loop thread. Lock order: before mutex_.
  mutable std::mutex keys_mutex_;
  Keyring keys_;

  mutable std::mutex mutex_;  // guards the following members
  mutable std::condition_variable changed_;
  std::vector<VerifierKey> verifiers_;  // copy of the keyring's
  bool can_sign_ = false;
  std::int64_t signed_before_ = 0;
  bool keys_changed_ = false;
  bool keep_wanted_ = false;    // a caller waits for durability
  std::int64_t kept_size_ = 0;  // size up to which the tiles are durable
  std::int64_t rewritten_ = 0;
  Published newest_;
  std::string problem_;
  bool log_differs_ = false;  // the problem is that the events do not yield the log's root
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace muniment::audit
