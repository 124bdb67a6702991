// A relay between a host and an MCP server that it starts. Every message passes as it is, byte for byte, in both
// directions; every tool call is recorded, and its result is held back until the record is durable.
//
// Without `required` a call that cannot be recorded passes all the same. With it the call is recorded before the server
// gets it, and a call or result that cannot be recorded is answered with an error instead. Likewise a line that the
// other side might read otherwise than the relay does, a request whose id is in flight, and a response to no request
// that is: with `required` they do not pass, without it they are noted.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/stop_signals.hpp"
#include "cli/connect/session.hpp"
#include "cli/mcp/call_record.hpp"
#include "cli/mcp/child_server.hpp"
#include "cli/mcp/line_gate.hpp"
#include "cli/mcp/line_stream.hpp"
#include "cli/mcp/message_skim.hpp"
#include "cli/mcp/recorder.hpp"

namespace muniment::cli {

class RecordingProxy {
 public:
  RecordingProxy(ChildServer server, Recorder& recorder, bool required);

  // Returns the server's exit code, once it has ended and everything is recorded or given up.
  int run();

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Direction { to_server, to_host };
  struct OpenCall {
    ToolCall call;
    Time began;
    std::uint64_t token = 0;  // of tool.called
    bool lost = false;        // that is not recorded, so that its end is not either
  };
  // The line that waits for the record of an event.
  struct Hold {
    Direction direction = Direction::to_host;
    std::uint64_t line = 0;
    bool operator<(const Hold& other) const {
      return std::pair(direction, line) < std::pair(other.direction, other.line);
    }
  };
  // A line on its way, and what to say in its place where `required` forbids it.
  struct LineFacts {
    std::vector<std::uint64_t> tokens;  // of the events that it waits for
    std::vector<std::string> ids;       // of the requests to the server or the responses to the host
    std::string problem;
  };
  // The beginning and the end of a line that is too long to be held.
  struct CutLine {
    std::string beginning;
    std::string end;
    void add(const LinePiece& piece);
  };

  LineGate& gate(Direction direction) { return direction == Direction::to_server ? to_server_ : to_host_; }

  void take_lines(LineReader& reader, Direction direction);
  void take_line(std::string bytes, Direction direction);
  std::string doubt_about_ids(std::string_view line, Direction direction) const;
  void withhold(std::string_view line, Direction direction, std::string_view doubt);
  void withhold_response(const Envelope& envelope, std::string_view why);
  void take_host_message(std::string_view message, LineFacts& line);
  void take_server_message(std::string_view message, LineFacts& line);
  void take_cut_line(const LinePiece& piece, Direction direction);
  void take_call(const Envelope& envelope, std::string_view params, LineFacts& line);
  void begin(const Envelope& envelope);
  void identify(const Envelope& envelope);
  void cancel(const Envelope& envelope);
  void hold(Direction direction, std::string bytes, LineFacts line);
  void settle();
  void settle_one(const Recorded& recorded);
  void settle_late(const Recorded& recorded);
  void refuse(const Hold& hold, const LineFacts& line);
  void pass_on();

  bool full(Direction direction) const;
  bool more_to_do() const;
  void poll_once();
  void follow_end();
  void stop_server(int first_signal);
  int finish();
  void drain(Time until);
  void record_unanswered(const OpenCall& open, std::string_view status, std::string_view why);

  ChildServer server_;
  Recorder& recorder_;
  bool required_;
  StopSignals signals_;
  LineReader host_in_;
  ByteWriter host_out_;
  LineReader server_out_;
  ByteWriter server_in_;
  LineGate to_server_;
  LineGate to_host_;
  CutLine cut_to_server_;
  CutLine cut_to_host_;

  bool in_flight(const std::string& key) const { return open_.count(key) + asked_.count(key) > 0; }

  std::map<std::string, OpenCall> open_;           // by id_key of the request
  std::set<std::string> asked_;                    // id_key of the host's other requests in flight
  std::map<std::string, std::string> handshakes_;  // id_key of a request whose result names the server → protocol
  bool began_ = false;
  std::map<std::uint64_t, Hold> holds_;  // by token
  std::map<Hold, LineFacts> lines_;
  // Ends of calls that were lost, by the token of tool.called: recorded if that turns out to be.
  std::map<std::uint64_t, DraftEvent> ends_of_lost_;
  std::uint64_t tokens_ = 0;

  bool lines_left_[2] = {false, false};  // by direction: read, and not taken, because too much was waiting
  bool host_ended_ = false;              // it sends nothing more, or a signal asks for the end
  bool stopping_ = false;
  bool died_ = false;  // the server ended while the host was there
  int next_signal_ = 0;
  Time next_signal_at_{};
  std::optional<ServerExit> exit_;
  Time exit_at_{};
};

}  // namespace muniment::cli
