// One TCP connection, from accept to close: collects a request from libmicrohttpd (MHD), has the handler answer it,
// gives MHD the answer, and continues with the next request.
//
// While nothing is to be sent, the connection is suspended in MHD and itself detects that the client disconnects.
// Engine calls it from MHD's callbacks, Exchange on behalf of the handler. Loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/handles.hpp"
#include "http/request.hpp"

struct MHD_Connection;
struct MHD_Response;

namespace muniment::http {

class Engine;
class Exchange;

class Connection {
 public:
  // `number` is greater than those of all earlier connections.
  Connection(Engine& engine, MHD_Connection* mhd, int socket, std::uint64_t number);
  ~Connection();
  Connection(const Connection&) = delete;

  void begin(std::string_view target);
  // Called with the head (no data), with each piece of the body, at its end (no data), and again after each suspension.
  // Takes every byte of `data`. Returns false if MHD has to close the connection.
  bool receive(std::string_view method, std::string_view data);
  // Returns the next bytes of the event stream: their number, 0 after suspending the connection, or one of MHD's end
  // codes.
  std::int64_t read_events(char* buffer, std::size_t bytes_max);
  void finish(bool complete);

  void reply(Answer answer);
  void begin_events(int status, std::vector<Header> headers);
  bool send(std::string_view bytes);
  void end_events();
  void release();
  std::uint64_t number() const { return number_; }
  std::size_t unread_bytes() const { return unread_.size() - unread_begin_; }
  // The answer is complete but not written yet.
  bool answering() const { return !aborted_ && (kind_ == Kind::reply || kind_ == Kind::ended_events); }
  // Bytes of an answer that is not written yet. A reply is held until its end.
  std::size_t answer_bytes() const { return answer_bytes_; }

  void abort();       // sent data is still delivered
  void abort_slow();  // after the deadline: sent data is discarded

 private:
  enum class Phase : std::uint8_t { head, body, handling, answering };
  enum class Kind : std::uint8_t { none, reply, events, ended_events };

  bool take_head(std::string_view method);
  bool take_body(std::string_view data);
  bool read_away() const;
  bool handle();
  bool answer();
  bool queue(const Answer& refusal);
  void await_head();
  void prepare(int status, MHD_Response* response);
  void suspend();
  void resume();
  void client_left();
  void begin_phase(Phase phase);
  void count_answer(std::size_t bytes);
  void detach(bool complete);
  void set_deadline(std::int64_t new_ms);
  void set_deadline_for(std::size_t bytes);

  Engine& engine_;
  MHD_Connection* const mhd_;
  const int socket_;  // owned by MHD
  const std::uint64_t number_;
  const Handle<uv_poll_s> watch_;
  Phase phase_ = Phase::head;
  Kind kind_ = Kind::none;
  bool stranger_ = true;  // no request was accepted yet
  bool suspended_ = false;
  bool left_ = false;  // the client has closed its direction, or both
  bool aborted_ = false;
  int status_ = 0;
  MHD_Response* response_ = nullptr;  // response to queue next
  std::size_t response_bytes_ = 0;
  std::size_t answer_bytes_ = 0;   // counted in the engine's total
  std::size_t body_bytes_ = 0;     // received, kept or not
  std::size_t counted_bytes_ = 0;  // body bytes in the engine's total
  std::int64_t began_ms_ = 0;      // time at which the phase began
  std::int64_t deadline_ms_ = 0;   // 0: none
  std::optional<Answer> refusal_;  // sent after the rest of the body was read
  Request request_;
  std::weak_ptr<Exchange> exchange_;
  std::string unread_;  // bytes of the event stream, from unread_begin_ on
  std::size_t unread_begin_ = 0;
};

}  // namespace muniment::http
