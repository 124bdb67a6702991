// What one connection sends to one run is numbered in the order in which it was sent, however long each of the requests
// is prepared: they are prepared side by side, and go to the append thread one behind the other. One with nothing
// before it, or only what is with the append thread already, goes straight on. The loop thread's alone.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "gateway/call.hpp"

namespace muniment::gateway {

struct Exchange;
using ExchangePtr = std::shared_ptr<Exchange>;

// What is sent from one connection to one run and not answered yet, in order.
struct SendQueue {
  std::string key;
  std::list<ExchangePtr> places;
  std::size_t held = 0;       // waiting, or prepared and not submitted
  std::size_t submitted = 0;  // with the append thread
  std::size_t settling = 0;   // whose answer those behind wait for
  std::shared_ptr<store::GivenBack> given_back = std::make_shared<store::GivenBack>();
};

// Where a request stands in its queue.
struct SendPlace {
  enum class Stage { preparing, waiting, prepared, submitted };
  SendQueue* queue = nullptr;  // nullptr: it is in none
  std::list<ExchangePtr>::iterator at;
  Stage stage = Stage::preparing;
  bool settled = false;  // it is begun when everything before it is answered
};

class SendOrder {
 public:
  // `begin` begins an exchange that waited; `submit` hands one that is prepared to the append thread, whose answer has
  // to be told by `returned`.
  SendOrder(std::function<void(const ExchangePtr&)> begin, std::function<void(const ExchangePtr&)> submit);

  // A new exchange takes its place. False: it waits, and is begun in its turn.
  bool join(const ExchangePtr& exchange);
  // It cannot be begun before what was sent before it is answered. False: it waits.
  bool settle(const ExchangePtr& exchange);
  // Its append is ready: submitted now, or in its turn.
  void prepared(const ExchangePtr& exchange);
  // The append thread has answered: it leaves next, or is prepared again.
  void returned(const ExchangePtr& exchange);
  // It is answered, and will not submit (any more).
  void leave(const ExchangePtr& exchange);

 private:
  void set_stage(Exchange& exchange, SendPlace::Stage stage);
  void hand_over(const ExchangePtr& exchange);
  void advance(std::string key);
  SendQueue& queue_of(const Exchange& exchange);
  static ExchangePtr next_of(const SendQueue& queue);

  const std::function<void(const ExchangePtr&)> begin_;
  const std::function<void(const ExchangePtr&)> submit_;
  std::unordered_map<std::string, SendQueue> queues_;
  std::unordered_map<std::string, SendQueue>::node_type
      spare_;  // the last that became empty: most requests begin a queue and end it
};

}  // namespace muniment::gateway
