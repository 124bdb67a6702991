// Keeps one search child alive: a thread that starts it, opens the pool when it serves, kills it when
// it is said to be lost, and starts the next at the pace that restart_pace.hpp allows. The thread lives
// as long as the client, which the child's death with its parent thread requires.
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
  Status start();  // answers once the first child was started, or could not be
  void stop();

  // Any thread says that a child is of no use any more; the first one's reason is kept.
  void lost(const std::shared_ptr<SearchProcess>& process, const Error& why);
  void wake();  // there is a late call to be watched

  // The child that serves, once there is one. Errors: deadline_exceeded, unavailable.
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
  bool has_remote_ = false;   // likewise: the child was told of the embedding server

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool tried_ = false;                      // the first start was attempted …
  std::optional<Error> first_failure_;      // … and failed
  std::shared_ptr<SearchProcess> process_;  // that serves
  std::optional<Error> lost_;               // why process_ is to end
  std::optional<Error> refusal_;            // while it is given up
  SearchHealth health_;

  std::unique_ptr<EmbedServer> embeds_;  // null: there is no embedding server; it goes first, and its threads with it
};

}  // namespace muniment::retrieval
