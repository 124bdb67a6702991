// Queues the requests of a recorder: sends each in order and sends it again after a reconnect. A request is complete
// when the daemon acknowledges or refuses it, or after 10 s without a reply.
//
// A request may refer to artifacts, which are stored first; later requests do not overtake it. A repeated request is
// harmless: events have ids, and all other requests have an idempotency key.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/mcp/call_record.hpp"
#include "adapters/mcp/daemon_link.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct RecordRequest {
  std::string method;
  std::string params;  // JSON object with a reference_mark for each artifact
  std::vector<DraftArtifact> artifacts;
  std::string run_id;  // run of the artifacts
  std::uint64_t token = 0;
  // Waits 1 ms for a following request, so that the result of a quick call is recorded in the same commit.
  bool may_wait = false;
};

struct CompletedRequest {
  RecordRequest request;
  Status outcome = success();
  bool in_doubt =
      false;  // sent without a reply in time, so the daemon may still execute it; it is returned again with `late`
  bool late = false;  // returned again: it was executed after all, or has an error if the outcome remains unknown
};

class RecordQueue {
 public:
  explicit RecordQueue(DaemonLink& link) : link_(link) {}

  void add(RecordRequest request);
  // Sends requests, reads replies and checks time limits. Call it after every poll().
  void step();
  std::optional<CompletedRequest> next_completed();
  bool empty() const { return entries_.empty() && completed_.empty() && given_up_.empty(); }
  // Returns the time until the next `step` in ms; -1: unlimited.
  int wait_ms() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Entry {
    RecordRequest request;
    std::uint64_t serial = 0;
    Time due;
    Time expires;
    bool artifacts_sent = false;
    bool sent = false;
    std::size_t stored = 0;
    std::vector<std::string> references{};  // references to the artifacts; empty until stored
  };

  void send_all();
  void send_artifacts(Entry& entry);
  void take_reply(const std::string& line);
  void take_late_reply(std::uint64_t serial, bool done);
  void abandon_given_up();
  void take_stored(Entry& entry, std::size_t index, const json::Value& result);
  void complete(std::deque<Entry>::iterator entry, Status outcome);
  void expire();

  DaemonLink& link_;
  std::int64_t connection_ = 0;
  std::uint64_t serial_ = 0;
  std::deque<Entry> entries_;
  std::map<std::uint64_t, RecordRequest> given_up_;  // by serial: sent on this connection without a reply in time
  std::deque<CompletedRequest> completed_;
};

}  // namespace muniment::cli
