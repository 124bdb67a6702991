// Hands out the search channels of the present child, one call each, first come, first served. Without a child, callers
// wait for the next one, each until its own deadline.
//
// A call that lost its child is repeated alone, while nothing else runs in the new one: if its query crashes the child,
// no other query is lost.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "retrieval/child/search/search_process.hpp"

namespace muniment::retrieval {

class ChannelPool {
 public:
  struct Lease {
    std::shared_ptr<SearchProcess> process;
    std::size_t channel = 0;
    bool alone = false;
  };
  // Errors: deadline_exceeded; unavailable, with the reason, while searches are refused or too many callers wait.
  Result<Lease> take(Deadline deadline, bool alone);
  // Ends a lease: the channel is free. Exactly one of these three calls ends each lease.
  void give_back(const Lease& lease);
  // Ends a lease whose answer is pending; the supervisor waits for it until `hangs_at`.
  void leave_late(Lease lease, Monotonic hangs_at);
  // Ends a lease whose child is lost: none of its channels is handed out again.
  void lose(const Lease& lease);

  // For the supervisor.
  void open(std::shared_ptr<SearchProcess> process, std::size_t search_channels);
  void close(const std::shared_ptr<SearchProcess>& process);
  void refuse(std::optional<Error> why);  // nullopt: callers wait again
  struct Late {
    Lease lease;
    Monotonic hangs_at;
  };
  std::vector<Late> take_late();  // passes all of them to the supervisor

 private:
  struct Waiter {
    bool alone = false;
    std::optional<Result<Lease>> granted;
    std::condition_variable ready;
  };
  void grant();
  void forget(const Lease& lease);

  std::mutex mutex_;
  std::shared_ptr<SearchProcess> process_;  // null: no child serves
  std::vector<std::size_t> idle_;
  std::size_t in_flight_ = 0;   // leases of process_, including late ones
  bool alone_ = false;          // one of them has to run alone
  std::list<Waiter*> waiting_;  // repeated calls first, then by arrival
  std::optional<Error> refusal_;
  std::vector<Late> late_;
};

}  // namespace muniment::retrieval
