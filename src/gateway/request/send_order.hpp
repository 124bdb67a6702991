// Keeps the order of one connection's requests to one run: they are numbered in the order of sending, however long each
// takes to prepare. Requests are prepared in parallel and submitted to the append thread one after the other. A request
// with no predecessor, or only submitted ones, proceeds at once. Loop thread only.
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

// The unanswered requests of one connection to one run, in order.
struct SendQueue {
  std::string key;
  std::list<ExchangePtr> places;
  std::size_t held = 0;          // waiting, or prepared and not submitted
  std::size_t submitted = 0;     // submitted to the append thread
  std::size_t before_later = 0;  // requests whose answer later ones wait for
  std::shared_ptr<store::Requeued> requeued = std::make_shared<store::Requeued>();
};

// The place of a request in its queue.
struct SendPlace {
  enum class Stage { preparing, waiting, prepared, submitted };
  SendQueue* queue = nullptr;  // nullptr: not queued
  std::list<ExchangePtr>::iterator at;
  Stage stage = Stage::preparing;
  bool after_earlier = false;  // begins only after every earlier request is answered
};

class SendOrder {
 public:
  // `begin` starts an exchange that waited. `submit` submits a prepared one to the append thread; its answer has to be
  // reported by `returned`.
  SendOrder(std::function<void(const ExchangePtr&)> begin, std::function<void(const ExchangePtr&)> submit);

  // Queues a new exchange. Returns false if it has to wait; then `begin` starts it in its turn.
  bool join(const ExchangePtr& exchange);
  // Requires every earlier request to be answered first. Returns false if the exchange has to wait.
  bool wait_for_earlier(const ExchangePtr& exchange);
  // The append of the exchange is ready: it is submitted now or in its turn.
  void prepared(const ExchangePtr& exchange);
  // The append thread has answered: the exchange leaves, or is prepared again.
  void returned(const ExchangePtr& exchange);
  // Removes an exchange that is answered and will submit no more.
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
      spare_;  // The queue that became empty last is reused: most requests begin a queue and end it.
};

}  // namespace muniment::gateway
