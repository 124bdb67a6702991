// Subscriptions: each reads the log by position, from the table while it is behind and from the tail in memory once it
// has caught up, without a gap between them. It sends one `event` notification per event, one `caught_up`, then live
// events; a keep-alive carries the position. Loop thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/subscriber.hpp"
#include "gateway/request/dispatcher.hpp"

namespace muniment::daemon {

class Subscriptions {
 public:
  Subscriptions(gateway::Services& services, gateway::Dispatcher& dispatcher);
  ~Subscriptions();

  // Serves event.subscribe and event.unsubscribe.
  void serve(const std::shared_ptr<Subscriber>& session, const gateway::ExchangePtr& exchange);
  void closed(const Subscriber& session);   // not called by the functions below
  void drained(const Subscriber& session);  // output was written: the session's subscriptions may continue
  void committed();                         // the log has grown
  bool any() const { return !subscriptions_.empty(); }
  void keep_alive();  // called about every 15 s: sends positions, and ends subscriptions that are too slow

 private:
  struct Subscription;
  void answer(const std::shared_ptr<Subscriber>& session, const gateway::ExchangePtr& exchange);
  Status check_room(const Subscriber& session) const;
  Status check_not_closed(store::Reader& reader, const gateway::Caller& caller, const std::string& run_id);
  Result<std::shared_ptr<Subscription>> subscribe(const std::shared_ptr<Subscriber>& session,
                                                  const json::Value& params);
  Result<std::int64_t> unsubscribe(const Subscriber& session, const json::Value& params);
  void count() const;
  void send_metrics(Subscription& subscription);
  void pump(const std::shared_ptr<Subscription>& subscription);
  void read_table(const std::shared_ptr<Subscription>& subscription);
  void deliver(Subscription& subscription, const events::Event& event);

  gateway::Services& services_;
  gateway::Dispatcher& dispatcher_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Subscription>> subscriptions_;
  std::uint64_t next_ = 1;
};

}  // namespace muniment::daemon
