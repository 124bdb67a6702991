// The requests of a recorder, in their order: each is sent on the link, again on the next connection where the first
// one ended, and is settled when the daemon has acknowledged or refused it, or has not within 10 s.
//
// A request may refer to artifacts, which are stored first; no later request overtakes it meanwhile. Sending one twice
// is harmless: events have ids, everything else has an idempotency key.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/mcp/call_record.hpp"
#include "cli/mcp/daemon_link.hpp"

namespace muniment::cli {

struct RecordRequest {
  std::string method;
  std::string params;  // a JSON object, with a reference_mark for each artifact
  std::vector<DraftArtifact> artifacts;
  std::string run_id;  // to which the artifacts belong
  std::uint64_t token = 0;
  // It waits 1 ms for a request that follows it: the result of a quick call is then recorded in the same commit.
  bool may_wait = false;
};

struct SettledRequest {
  RecordRequest request;
  Status outcome = success();
  bool in_doubt = false;  // it was sent and is given up: the daemon may still do it. It is settled once more, `late`
  bool late = false;      // the second time: done all the same; or an error, and it stays in doubt
};

class RecordQueue {
 public:
  explicit RecordQueue(DaemonLink& link) : link_(link) {}

  void add(RecordRequest request);
  // Sends, reads replies and watches the time. Call it after every poll().
  void step();
  std::optional<SettledRequest> next_settled();
  bool empty() const { return entries_.empty() && settled_.empty() && given_up_.empty(); }
  // The longest wait until `step` is due, in ms; -1: none.
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
    std::vector<std::string> references{};  // of the artifacts; empty until it is stored
  };

  void send_all();
  void send_artifacts(Entry& entry);
  void take_reply(const std::string& line);
  void take_late_reply(std::uint64_t serial, bool done);
  void abandon_given_up();
  void take_stored(Entry& entry, std::size_t index, const json::Value& result);
  void settle(std::deque<Entry>::iterator entry, Status outcome);
  void expire();

  DaemonLink& link_;
  std::int64_t connection_ = 0;
  std::uint64_t serial_ = 0;
  std::deque<Entry> entries_;
  std::map<std::uint64_t, RecordRequest> given_up_;  // by serial: sent on this connection, and not answered in time
  std::deque<SettledRequest> settled_;
};

}  // namespace muniment::cli
