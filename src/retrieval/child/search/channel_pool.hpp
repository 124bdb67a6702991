// Who may search next. The search channels of the child that serves at the moment are handed out one
// call each, first come, first served; while there is no child, callers wait for the next one, each
// until its own deadline.
//
// A call that lost its child is repeated alone: while nothing else runs in the new one. If it was that
// query which brought the child down, it then takes nobody else's query with it.
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
  // Errors: deadline_exceeded; unavailable, with the reason, while searches are refused or too many wait.
  Result<Lease> take(Deadline deadline, bool alone);
  // Exactly one of these ends a lease: the channel is free …
  void give_back(const Lease& lease);
  // … or an answer is still to come on it, which the supervisor awaits until `hangs_at` …
  void leave_late(Lease lease, Monotonic hangs_at);
  // … or its child is lost: nothing more is handed out of it.
  void lose(const Lease& lease);

  // The supervisor's side.
  void open(std::shared_ptr<SearchProcess> process, std::size_t search_channels);
  void close(const std::shared_ptr<SearchProcess>& process);
  void refuse(std::optional<Error> why);  // nullopt: callers wait again
  struct Late {
    Lease lease;
    Monotonic hangs_at;
  };
  std::vector<Late> take_late();  // all of them; the supervisor has them then

 private:
  struct Waiter {
    bool alone = false;
    std::optional<Result<Lease>> granted;
    std::condition_variable ready;
  };
  void grant();
  void forget(const Lease& lease);

  std::mutex mutex_;
  std::shared_ptr<SearchProcess> process_;  // null: there is none that serves
  std::vector<std::size_t> idle_;
  std::size_t in_flight_ = 0;   // leases of process_, late ones among them
  bool alone_ = false;          // one of them is to be alone
  std::list<Waiter*> waiting_;  // those who repeat first, then by arrival
  std::optional<Error> refusal_;
  std::vector<Late> late_;
};

}  // namespace muniment::retrieval
