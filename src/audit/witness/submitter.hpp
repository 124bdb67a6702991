// Gives signed checkpoints to those who keep them out of the operator's reach: folders and S3
// buckets get every one, witnesses the newest. One thread each, so that a slow one holds up no other
// and none holds up the log.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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

// Where checkpoints go: "folder:/mnt/worm", "s3://bucket/prefix", "unix:/run/witness.sock VKEY",
// "https://witness.example/prefix VKEY".
struct Keeper {
  KeeperKind kind = KeeperKind::folder;
  std::string where;  // the path, bucket/prefix, socket or URL
  bool unix_socket = false;
  std::optional<VerifierKey> key;  // of a witness

  std::string shown() const;
};

// Separated by commas. Errors: invalid_argument, naming the one that is wrong.
Result<std::vector<Keeper>> parse_keepers(std::string_view text);

struct KeeperStatus {
  std::string name;
  std::int64_t size = 0;  // of the newest checkpoint that it has
  Time at;                // when it got it
  std::string problem;    // why not a newer one; empty: it has what there is
};

class Submitter {
 public:
  Submitter(std::vector<Keeper> keepers, const Publisher& publisher, Clock& clock);
  ~Submitter();
  // From the publisher's thread.
  void submit(const Published& published);

  std::vector<KeeperStatus> status() const;
  // The newest cosigned note of each witness.
  std::vector<std::string> cosigned() const;

 private:
  struct Line;  // one keeper, its queue and its thread
  void serve(Line& line);
  Status give(Line& line, const Published& published);
  Status put_file(const Line& line, const Published& published) const;
  Status put_object(const Line& line, const Published& published) const;
  Status cosign(Line& line, const Published& published);

  const Publisher& publisher_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace muniment::audit
