// Keeps the order in which one connection sends to one run.
#include "gateway/request/send_order.hpp"

#include "gateway/access.hpp"
#include "gateway/request/exchange.hpp"

namespace muniment::gateway {
namespace {

using Stage = SendPlace::Stage;

bool is_held(Stage stage) { return stage == Stage::waiting || stage == Stage::prepared; }

// Returns the queue's key: the connection and the run whose numbering the order decides, or the log itself.
std::string key_of(const Exchange& exchange) {
  std::string key = std::to_string(exchange.caller.connection);
  return key.append("/").append(exchange.params["run_id"].string_or(std::string(log_run_id)));
}

// Appends that were submitted after a returned one are returned too: wait for all of them.
bool may_submit(const SendQueue& queue) { return queue.submitted == 0 || !queue.requeued->any; }

}  // namespace

SendOrder::SendOrder(std::function<void(const ExchangePtr&)> begin, std::function<void(const ExchangePtr&)> submit)
    : begin_(std::move(begin)), submit_(std::move(submit)) {}

void SendOrder::set_stage(Exchange& exchange, Stage stage) {
  SendPlace& place = exchange.place;
  if (place.queue == nullptr) return;
  SendQueue& queue = *place.queue;
  if (is_held(place.stage)) --queue.held;
  if (place.stage == Stage::submitted) --queue.submitted;
  if (is_held(stage)) ++queue.held;
  if (stage == Stage::submitted) ++queue.submitted;
  place.stage = stage;
}

SendQueue& SendOrder::queue_of(const Exchange& exchange) {
  std::string key = key_of(exchange);
  const auto found = queues_.find(key);
  if (found != queues_.end()) return found->second;
  if (spare_.empty()) {
    SendQueue& queue = queues_[key];
    queue.key = std::move(key);
    return queue;
  }
  spare_.mapped().key = key;
  spare_.key() = std::move(key);
  return queues_.insert(std::move(spare_)).position->second;
}

bool SendOrder::join(const ExchangePtr& exchange) {
  const Order order = exchange->method->order;
  // No other request can name a run whose id does not exist yet.
  const bool new_run = order == Order::before_later && !exchange->params["run_id"];
  const bool of_no_run = order == Order::reading && !exchange->params["run_id"];
  if (order == Order::none || new_run || of_no_run) return true;
  SendQueue& queue = queue_of(*exchange);
  SendPlace& place = exchange->place;
  const bool after_earlier = order == Order::after_earlier || order == Order::reading;
  const bool waits = queue.before_later > 0 || (after_earlier && !queue.places.empty());
  place.queue = &queue;
  place.after_earlier = after_earlier;
  place.at = queue.places.insert(queue.places.end(), exchange);
  if (order == Order::before_later) ++queue.before_later;
  if (waits) set_stage(*exchange, Stage::waiting);
  return !waits;
}

bool SendOrder::wait_for_earlier(const ExchangePtr& exchange) {
  SendPlace& place = exchange->place;
  if (place.queue == nullptr || place.queue->places.front() == exchange) return true;
  place.after_earlier = true;
  set_stage(*exchange, Stage::waiting);
  return false;
}

void SendOrder::prepared(const ExchangePtr& exchange) {
  SendQueue* const queue = exchange->place.queue;
  if (queue == nullptr) return submit_(exchange);
  const bool next = queue->submitted + 1 == queue->places.size() && may_submit(*queue);
  if (next) return hand_over(exchange);
  set_stage(*exchange, Stage::prepared);
  advance(queue->key);
}

void SendOrder::hand_over(const ExchangePtr& exchange) {
  SendQueue& queue = *exchange->place.queue;
  if (queue.submitted == 0) queue.requeued->any = false;
  set_stage(*exchange, Stage::submitted);
  submit_(exchange);
}

void SendOrder::returned(const ExchangePtr& exchange) { set_stage(*exchange, Stage::preparing); }

void SendOrder::leave(const ExchangePtr& exchange) {
  SendPlace& place = exchange->place;
  if (place.queue == nullptr) return;
  SendQueue& queue = *place.queue;
  set_stage(*exchange, Stage::preparing);
  if (exchange->method->order == Order::before_later) --queue.before_later;
  place.queue = nullptr;
  queue.places.erase(place.at);
  if (queue.places.empty()) {
    spare_ = queues_.extract(queue.key);
  } else if (queue.held > 0) {
    advance(queue.key);
  }
}

// Returns the first exchange that can proceed: a waiting one begins, a prepared one is submitted.
ExchangePtr SendOrder::next_of(const SendQueue& queue) {
  bool all_submitted = true;
  bool before_later = false;
  for (const ExchangePtr& exchange : queue.places) {
    const SendPlace& place = exchange->place;
    const bool first = exchange == queue.places.front();
    if (place.stage == Stage::waiting && (place.after_earlier ? first : !before_later)) return exchange;
    if (place.stage == Stage::prepared && all_submitted && may_submit(queue)) return exchange;
    all_submitted = all_submitted && place.stage == Stage::submitted;
    before_later = before_later || exchange->method->order == Order::before_later;
  }
  return nullptr;
}

// Takes the key, because the callbacks may empty the queue and delete it.
void SendOrder::advance(std::string key) {
  while (true) {
    const auto found = queues_.find(key);
    if (found == queues_.end() || found->second.held == 0) return;
    const ExchangePtr next = next_of(found->second);
    if (!next) return;
    if (next->place.stage == Stage::prepared) {
      hand_over(next);
    } else {
      set_stage(*next, Stage::preparing);
      begin_(next);
    }
  }
}

}  // namespace muniment::gateway
