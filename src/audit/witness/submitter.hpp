// Submits signed checkpoints to keepers outside of the operator's reach: folders and S3 buckets receive every
// checkpoint, witnesses the newest. Folders and witnesses are also asked every minute for the newest that they hold,
// and when they refuse one. Each keeper has a thread, so that a slow one delays neither the others nor the log.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "audit/publisher.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace muniment::audit {

enum class KeeperKind : std::uint8_t { folder, bucket, witness };

// A destination of checkpoints: "folder:/mnt/worm", "s3://bucket/prefix", "unix:/run/witness.sock VKEY",
// "https://witness.example/prefix VKEY".
struct Keeper {
  KeeperKind kind = KeeperKind::folder;
  std::string where;  // path, bucket/prefix, socket or URL
  bool unix_socket = false;
  std::optional<VerifierKey> key;  // key of a witness

  std::string shown() const;
};

// Parses destinations separated by commas. Errors: invalid_argument, naming the invalid one.
Result<std::vector<Keeper>> parse_keepers(std::string_view text);

struct KeeperStatus {
  std::string name;
  std::int64_t size = 0;  // size of the newest checkpoint that it has
  Time at;                // time of its last update
  std::string problem;    // reason for the lack of a newer one; empty: it is up to date
};

class Submitter {
 public:
  // `on_other_tree` is called on the thread of a keeper, each time when it holds a checkpoint by a key of this log that
  // is larger than the log, or of another tree. Must not block.
  Submitter(std::vector<Keeper> keepers, const Publisher& publisher, Clock& clock,
            std::function<void(const Error&)> on_other_tree);
  ~Submitter();
  // Called on the publisher's thread.
  void submit(const Published& published);

  std::vector<KeeperStatus> status() const;
  // Returns the newest cosigned note of each witness.
  std::vector<std::string> cosigned() const;

 private:
  struct Line;  // one keeper, its queue and its thread
  void serve(Line& line);
  void ask(Line& line) const;
  Status give(Line& line, const Published& published);
  Status put_file(const Line& line, const Published& published) const;
  Status put_object(const Line& line, const Published& published) const;
  Status cosign(Line& line, const Published& published);

  const Publisher& publisher_;
  Clock& clock_;
  const std::function<void(const Error&)> on_other_tree_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace muniment::audit
