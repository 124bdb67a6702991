// The search engine as seen by the daemon: it runs in a child process, so that a crash of Xapian on a damaged file
// costs one repeated query and not the daemon. The client starts the child, distributes searches over its channels,
// restarts it when it dies or hangs, and repeats the lost calls once.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/process/spawn.hpp"
#include "retrieval/child/remote_options.hpp"
#include "retrieval/child/search/restart_pace.hpp"
#include "retrieval/engine/engine.hpp"

namespace muniment::retrieval {

struct SearchClientOptions {
  Engine::Options engine;
  std::vector<std::string> command = {this_program, "--search-child"};
  std::size_t search_channels = 4;  // concurrent searches; further ones wait
  bool needs_sandbox = false;       // refuse to search without Landlock and seccomp
  std::int64_t address_space_bytes_max = 0;
  std::chrono::milliseconds search_hang{10'000};  // a call that takes longer has its child killed
  std::chrono::milliseconds write_hang{300'000};  // a writing call that takes longer has its child killed
  std::chrono::milliseconds start_hang{300'000};  // a child that takes longer to open its indexes is killed
  std::chrono::milliseconds stop_patience{5'000};
  RestartPolicy restart;
  RemoteOptions remote;
};

// The state that is known without asking the child.
struct SearchHealth {
  bool serving = false;
  pid_t pid = 0;  // pid of the child; 0: none
  std::int64_t restarts = 0;
  std::string reason;                 // the reason for which it does not serve, or the end of the last child
  std::vector<std::string> degraded;  // parts of the sandbox that are not available
  // The reason for which the embedding server does not answer; empty: it does, or there is none.
  std::string embedding_problem;
};

// Every function may be called from any thread.
class SearchClient {
 public:
  // Returns while the child opens its indexes; searches wait for that. Errors: unavailable if the child cannot be
  // started.
  static Result<std::unique_ptr<SearchClient>> start(SearchClientOptions options);
  ~SearchClient();

  // Errors: deadline_exceeded; unavailable (the child cannot be kept alive, or this query crashed it twice); those of
  // the engine about the query.
  Result<LaneAnswer> search(const LaneQuery& query, Deadline deadline);

  // Returns the positions of the indexes. A writer calls this first, and again after each `unavailable`: a restarted
  // child may have found damage and started over, and refuses batches until it was asked.
  Result<EngineStatus> status(Deadline deadline);
  // Durable on success. Errors: unavailable (the child ended and may have the batch: ask its status and continue from
  // there), too_large, and the engine's.
  Status index(const EngineBatch& batch);
  Status set_model(const EngineModel& model);
  Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last);

  SearchHealth health() const;

  // Lets the child finish its writes and waits for its end. Refuses searches from then on.
  void stop();

 private:
  struct Parts;
  explicit SearchClient(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace muniment::retrieval
