// Numbers a batch: requests become events with positions and hashes, computed in memory from the heads of the log and
// of the affected runs. The result is not final before the commit, so that batches can be undone, the newest first.
#pragma once

#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "events/merkle.hpp"
#include "store/append/append_connection.hpp"
#include "store/append/appender.hpp"

namespace muniment::store {

struct LogHead {
  Uuid log_id;
  std::int64_t next_seq = 0;
  std::int64_t next_run_no = 1;
  events::MerkleEdge edge;
  std::int64_t erasures = 0;  // number of erasures that had closed the gate when the numbering began
};

class AppendBatch {
 public:
  // Numbers the events of `request` at the end of the batch, or refuses the request without any change.
  void add(AppendRequest request, LogHead& log, Time now);

  bool full() const;  // the limits of one commit are reached
  bool fits(const AppendRequest& request) const;
  bool idle() const { return requests_.empty() && refused_.empty(); }
  bool has_events() const { return !events_.empty(); }
  std::size_t request_count() const { return requests_.size(); }
  RowBatch rows() const { return {events_, rows_}; }
  const EventPtr& last_event() const { return events_.back(); }
  const events::MerkleEdge& edge() const { return edge_; }  // the tree after this batch
  std::int64_t first_seq() const { return before_.next_seq; }
  std::int64_t oldest() const {
    return oldest_;
  }  // recorded_at of its oldest event in microseconds; nothing_undecided: no events

  // Undoes the numbering and returns the requests in their original order, including refused ones.
  std::vector<AppendRequest> undo(LogHead& log);

  // Call after the commit: publishes the views of the runs, passes the events to `tail`, then answers all requests.
  void committed(Tail& tail);
  // Answers all requests with the same error. Call `undo` first.
  static void refuse(std::vector<AppendRequest> requests, const Error& error);
  // Calls `done` of every accepted request with its receipts.
  void answer_accepted();

 private:
  struct Refused {
    AppendRequest request;
    Error error;
    std::size_t place;  // position among all added requests
  };
  struct Accepted {
    AppendRequest request;
    std::vector<events::Receipt> receipts;
    std::vector<std::size_t> event_of;  // index in events_ of each event, or npos
  };
  Status check(const AppendRequest& request, const LogHead& log) const;
  static Result<json::Tree> patched(const AppendRequest& request);
  static Status requeue(const AppendRequest& request, const LogHead& log);
  events::Receipt number(const AppendRequest& request, Addressed& item, LogHead& log, Time now);
  void answer_refused();

  std::vector<Accepted> requests_;
  std::vector<Refused> refused_;
  std::vector<EventPtr> events_;
  std::vector<Row> rows_;
  std::size_t bytes_ = 0;
  std::int64_t oldest_ = Tail::nothing_undecided;

  events::MerkleEdge edge_;
  bool started_ = false;
  LogHead before_;
  struct Touched {
    std::shared_ptr<Run> run;
    Run::Head before;
    std::int64_t next_run_seq;
  };
  std::vector<Touched> touched_;                                       // in order; a run may occur several times
  std::vector<std::pair<std::shared_ptr<Run>, std::size_t>> changes_;  // events that change a view
};

}  // namespace muniment::store
