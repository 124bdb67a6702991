// Sends a message to each webhook for the events that it asks for. The log is the queue: each webhook has a thread that
// reads the log from its own stored position, so that a receiver that does not answer delays neither appends nor other
// webhooks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "events/event.hpp"
#include "store/append/tail.hpp"
#include "store/logs/log_place.hpp"
#include "webhook/message.hpp"

namespace muniment::webhook {

// Name of a webhook's position in the table follower: this prefix and the webhook's name.
inline constexpr std::string_view follower_prefix = "webhook:";

struct WebhookStatus {
  std::string name;
  std::string url;                   // scheme and host
  std::int64_t next_seq = 0;         // the events before it are delivered, skipped, or of other types
  std::int64_t delivered = 0;        // messages since the start of the daemon
  std::int64_t failed = 0;           // attempts
  std::int64_t skipped = 0;          // events
  std::string problem;               // empty: the last attempt succeeded
  std::optional<Time> next_attempt;  // of a failed delivery
};

class Sender {
 public:
  // Stores the position of each new webhook: the end of the log. `refused`: reason why the log is read-only; nothing is
  // sent then. Errors: unavailable.
  static Result<std::unique_ptr<Sender>> open(std::vector<Webhook> webhooks, const store::LogPlace& place,
                                              const Uuid& log_id, const std::string& refused, Clock& clock,
                                              const store::Tail& tail);
  ~Sender();
  void start();
  // Aborts deliveries in progress, which the next start repeats, and ends the threads.
  void stop();

  std::vector<WebhookStatus> status() const;

 private:
  struct Line;  // one webhook and its thread
  struct Batch {
    std::vector<store::EventPtr> events;
    std::int64_t next_seq = 0;
  };
  Sender(const Uuid& log_id, Clock& clock, const store::Tail& tail);
  Status open_line(Webhook webhook, const store::LogPlace& place, const std::string& refused);
  void serve(Line& line);
  void rest(Line& line);
  Result<Batch> read(Line& line) const;
  enum class Outcome : std::uint8_t { done, stop };
  Outcome deliver(Line& line, const events::Event& event);
  Result<int> post(const Line& line, const events::Event& event) const;
  bool skips(const Line& line, const events::Event& event) const;
  void fail(Line& line, const std::string& problem);
  void count_failure(Line& line, std::optional<Time> next_attempt);
  void advance(Line& line, std::int64_t next_seq);
  void store_position(Line& line);
  void set_problem(Line& line, std::string problem);

  const Uuid log_id_;
  Clock& clock_;
  const store::Tail& tail_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // guards the status of every line
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace muniment::webhook
