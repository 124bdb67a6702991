// Keeps one search child alive: a thread starts it, opens the pool when it serves, kills it when it is reported lost,
// and starts the next one at the pace of restart_pace.hpp. The thread lives as long as the client, because the kernel
// kills the child when its parent thread ends.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "retrieval/child/search/channel_pool.hpp"
#include "retrieval/child/search/search_client.hpp"

namespace muniment::retrieval {

class SearchSupervisor {
 public:
  SearchSupervisor(const SearchClientOptions& options, ChannelPool& pool);
  ~SearchSupervisor();
  Status start();  // returns once the first child was started or could not be
  void stop();

  // Reports that a child is unusable; the first reason is kept. Any thread.
  void lost(const std::shared_ptr<SearchProcess>& process, const Error& why);
  void wake();  // a late call has to be watched

  // Waits for a child that serves. Errors: deadline_exceeded, unavailable.
  Result<std::shared_ptr<SearchProcess>> serving(Deadline deadline);
  SearchHealth health() const;

 private:
  void run();
  RestartPace::Death live_and_die();
  Result<SearchHello> await_hello(SearchProcess& process);
  void watch(const std::shared_ptr<SearchProcess>& process);
  bool settle_late(std::vector<ChannelPool::Late>& late);
  void open(const std::shared_ptr<SearchProcess>& process, const SearchHello& hello);
  RestartPace::Death bury(const std::shared_ptr<SearchProcess>& process, bool served);
  RestartPace::Death failed_start(const Error& why);
  void rest(const RestartPace::Verdict& verdict);
  bool ended(const std::shared_ptr<SearchProcess>& process) const;
  void name_remote(SearchSetup& setup);
  bool lacks_remote() const;
  bool stopping() const;
  void clear_wake() const;

  const SearchClientOptions& options_;
  ChannelPool& pool_;
  Fd wake_;  // an eventfd
  std::thread thread_;
  bool empty_first_ = false;  // the thread's own
  bool has_remote_ = false;   // used only by the thread: the child has the address of the embedding server

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool tried_ = false;                      // the first start was attempted
  std::optional<Error> first_failure_;      // and failed with this error
  std::shared_ptr<SearchProcess> process_;  // the child that serves
  std::optional<Error> lost_;               // the reason for which process_ has to end
  std::optional<Error> refusal_;            // during a pause
  SearchHealth health_;

  std::unique_ptr<EmbedServer> embeds_;  // null: no embedding server. Declared last, so that its threads end first
};

}  // namespace muniment::retrieval
