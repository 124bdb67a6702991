// The search engine as the daemon has it: in a child process, so that a crash of Xapian on a damaged
// file is one repeated query and not a dead daemon. It starts the child, spreads searches over its
// channels, starts it again when it dies or hangs, and repeats once what was lost with it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "retrieval/child/remote_options.hpp"
#include "retrieval/child/search/restart_pace.hpp"
#include "retrieval/child/spawn.hpp"
#include "retrieval/engine/engine.hpp"

namespace muniment::retrieval {

struct SearchClientOptions {
  Engine::Options engine;
  std::vector<std::string> command = {this_program, "--search-child"};
  std::size_t search_channels = 4;  // searches at once; more of them wait their turn
  bool needs_sandbox = false;       // rather no search than one without Landlock and seccomp
  std::int64_t address_space_bytes_max = 0;
  std::chrono::milliseconds search_hang{10'000};  // a call that takes longer has its child killed …
  std::chrono::milliseconds write_hang{300'000};  // … so too one that writes …
  std::chrono::milliseconds start_hang{300'000};  // … and a child that does not open its indexes
  std::chrono::milliseconds stop_patience{5'000};
  RestartPolicy restart;
  RemoteOptions remote;
};

// What can be said without asking the child.
struct SearchHealth {
  bool serving = false;
  pid_t pid = 0;  // of the child; 0: there is none
  std::int64_t restarts = 0;
  std::string reason;                 // why it is not serving, or how the last one ended
  std::vector<std::string> degraded;  // what of the sandbox could not be had
  std::string embedding_problem;      // why the embedding server does not answer; empty: it does, or there is none
};

// Every function may be called from any thread.
class SearchClient {
 public:
  // Returns while the child opens its indexes: searches wait for that. Errors: unavailable, when it cannot be started.
  static Result<std::unique_ptr<SearchClient>> start(SearchClientOptions options);
  ~SearchClient();

  // Errors: deadline_exceeded; unavailable (the child cannot be kept alive, or this query brought it down twice);
  // and what the engine says of the query itself.
  Result<LaneAnswer> search(const LaneQuery& query, Deadline deadline);

  // Where the indexes are. Whoever writes asks this first, and again after each `unavailable`: a child that was started
  // again may have found damage and begun anew, and refuses batches until it was asked.
  Result<EngineStatus> status(Deadline deadline);
  // Durable when they return success. Errors: unavailable (the child ended, whether or not it has the batch:
  // ask its status and go on from there), too_large, and the engine's.
  Status index(const EngineBatch& batch);
  Status set_model(const EngineModel& model);
  Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last);

  SearchHealth health() const;

  // Lets the child finish what it writes, and waits for its end. Searches are refused from then on.
  void stop();

 private:
  struct Parts;
  explicit SearchClient(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace muniment::retrieval
