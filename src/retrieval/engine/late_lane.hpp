// A lane whose embedder is slow (the sentence encoder embeds some 100 passages a second on a core) or is a server that
// may be unreachable for hours. Batches are queued and embedded by a low-priority thread; closings and removals apply
// at once. The lane answers for a corpus if none of the corpus' chunks are waiting. The corpus of the newest question
// is embedded first, then the one with the fewest waiting chunks.
//
// Its position on disk covers what was embedded. The queue is in memory: after a restart the lane is behind the others
// and receives those batches again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/process/worker_thread.hpp"
#include "retrieval/embed/embedder.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/vector/vector_shard.hpp"

namespace muniment::retrieval {

class LateLane {
 public:
  LateLane(std::shared_ptr<Embedder> embedder, VectorShard& shard);

  Embedder& embedder() const { return *embedder_; }
  const std::string& name() const { return embedder_->identity().name; }

  // Queues the chunks that it lacks. If the queue is full, it skips the batch, and once the queue is empty requires
  // everything from `given` on. One thread. Errors: conflict, which requires that; corrupt, also one that the lane's
  // own thread met.
  Status take(const EngineBatch& batch);

  // Position up to which it has received everything.
  std::int64_t given() const;
  // Called for a question: waiting corpora that it concerns are embedded next.
  bool covers(const std::vector<std::string>& corpora, std::int64_t next_seq);
  // "encoder: behind (40 chunks wait, 2.5 s)"; empty if it is not behind.
  std::string behind(std::int64_t next_seq) const;
  std::int64_t waiting() const;  // number of chunks in the queue

 private:
  struct Entry {
    ChunkId id = 0;
    std::string corpus, text;
    Facts facts;
    bool settled = false;  // written, or removed before it was
  };
  struct Item {
    std::int64_t next_seq = 0;
    std::vector<Entry> entries;
  };
  using Picked = std::vector<Entry*>;

  void run();
  Picked pick();
  std::string corpus_to_embed() const;
  void note_speed(std::size_t chunks, std::chrono::steady_clock::duration took);
  Status write(const Picked& picked, const std::vector<Vectors>& vectors);
  Status finish_first();
  Status apply_endings(const EngineBatch& batch);
  std::int64_t position_of(const std::string& space) const;
  void settle(Entry& entry);
  static std::size_t memory_of(const Entry& entry);

  const std::shared_ptr<Embedder> embedder_;
  VectorShard& shard_;
  const std::string mark_;  // the space whose position is the lane's

  std::deque<Item> queue_;  // guarded by the worker's lock, like the next four
  std::unordered_map<ChunkId, Entry*> waiting_;
  std::size_t bytes_ = 0;  // memory of the queue
  bool missed_ = false;    // a batch was skipped: continuing would leave a gap
  Status failed_ = success();

  mutable std::mutex counts_mutex_;                // guards these; held only briefly
  std::map<std::string, std::size_t> waiting_in_;  // by corpus
  std::map<std::string, std::uint64_t> asked_;     // waiting corpora that a question concerned, with its number
  std::uint64_t questions_ = 0;
  double chunk_micros_ = 0;  // time to embed a chunk, a moving average; 0: unknown
  bool told_ = false;        // the log names the lag
  std::int64_t given_ = 0;
  std::string problem_;  // the embedder's present error

  WorkerThread worker_;
};

}  // namespace muniment::retrieval
