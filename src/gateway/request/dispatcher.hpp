// Processes a request: parses and admits the line, runs the method on the loop or on a worker, submits its append to
// the append thread, and writes the reply once that is committed. Every member runs on the loop thread unless its
// comment names another.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "base/json/schema.hpp"
#include "gateway/request/exchange.hpp"
#include "gateway/request/request_line.hpp"
#include "gateway/request/worker_pool.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway {

class Dispatcher {
 public:
  // `wake_loop` may be called from any thread and schedules `run_completions` on the loop thread. Appender::on_answered
  // has to schedule it too.
  Dispatcher(Services& services, WorkerPool& workers, const SchemaSet& schemas, std::function<void()> wake_loop);

  // The outcome of a line.
  struct Admitted {
    ExchangePtr exchange;         // its method runs, or waits for the body
    bool subscription = false;    // event.subscribe or event.unsubscribe, which the session serves
    std::int64_t body_bytes = 0;  // raw bytes that follow, also after a refused line
    bool close = false;           // the stream is out of step and has to be closed
  };

  // Parses and admits `line`. A refused line is answered at once and yields no exchange.
  Admitted admit(std::string line, const Caller& caller, std::function<void(std::string)> reply);

  void run(const ExchangePtr& exchange);
  // Adds raw bytes to the exchange. The session stops reading while `body_full` returns true.
  void body_arrived(const ExchangePtr& exchange, std::string chunk);
  static bool body_full(const Exchange& exchange);
  void give_up(const ExchangePtr& exchange);  // the client disconnected
  void resume(Unread& unread);  // the client has read replies: requests that were paused for them continue

  // Watches the deadline of an exchange. `run` calls it.
  void watch(const ExchangePtr& exchange);
  void answer(const ExchangePtr& exchange, Result<Reply> result);
  // Bytes of the memory limit that the requests in flight hold.
  std::size_t held_bytes() const { return *held_bytes_; }

  // Finishes the exchanges that other threads have completed.
  void run_completions();
  // Answers every exchange whose deadline has passed. Returns false if no exchange is waiting.
  bool expire(Monotonic now);
  std::size_t waiting() const { return waiting_.size(); }
  std::function<void()> on_waiting;  // called when the first request waits, to start the deadline timer

  WorkerPool& workers() { return workers_; }
  // Runs `work` on the loop thread. May be called from any thread.
  void post_to_loop(std::function<void()> work);

 private:
  struct Committed {
    ExchangePtr exchange;
    std::shared_ptr<PendingAppend> append;
    Result<std::vector<events::Receipt>> result;
  };
  using Completion = std::variant<Committed, std::function<void()>>;

  Result<ExchangePtr> parse(std::string line, const Caller& caller, RequestHead& head);
  Status hold(Exchange& exchange, std::int64_t body_bytes);
  void begin(const ExchangePtr& exchange);
  void run_on_worker(const ExchangePtr& exchange);
  void pause(const ExchangePtr& exchange);
  Status post_body(const ExchangePtr& exchange);
  void serve_arrived(const ExchangePtr& exchange);
  void serve_body(const ExchangePtr& exchange, store::Reader& reader);
  bool end_body(const ExchangePtr& exchange);
  Call call_for(Exchange& exchange, store::Reader* reader);
  void proceed(const ExchangePtr& exchange, Result<Answer> answer);
  void submit(const ExchangePtr& exchange);
  void withdraw(const ExchangePtr& exchange);
  void finish(Committed committed);
  void prepare_again(const Committed& committed);
  void clean_up(const Committed& committed);
  void conclude_and_answer(Committed committed);
  Result<Reply> conclude(Committed& committed);
  void answer_early(const ExchangePtr& exchange, const std::function<Error(bool may_land)>& why);
  void answer_without_database(const ExchangePtr& exchange);
  void tell(const ExchangePtr& exchange, const Result<Reply>& result);
  void complete(Completion completion);  // any thread; does not wake the loop

  Services& services_;
  WorkerPool& workers_;
  const SchemaSet& schemas_;
  std::function<void()> wake_loop_;

  std::list<ExchangePtr> waiting_;
  SendOrder send_order_;
  const std::shared_ptr<std::atomic<std::size_t>> held_bytes_ = std::make_shared<std::atomic<std::size_t>>(0);

  std::mutex completions_mutex_;
  std::vector<Completion> completions_;
};

// Return the reply lines, with their newline.
std::string result_line(std::string_view id, std::string_view result);
std::string error_line(std::string_view id, const Error& error);
// Adds `log_no` to the reply, now or after its append. 0: adds nothing.
void say_log(Answer& answer, std::int16_t log_no);

}  // namespace muniment::gateway
