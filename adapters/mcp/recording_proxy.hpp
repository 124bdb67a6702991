// Relays messages between a host and an MCP server that it starts. Messages pass unchanged in both directions; every
// tool call is recorded, and its result is held until the record is durable.
//
// Without `required`, a call that cannot be recorded is passed on. With it, the call is recorded before the server
// receives it, and a call or result that cannot be recorded is answered with an error. A line that the other side might
// read differently, a request whose id is in flight, and a response without a request in flight are withheld with
// `required` and noted without it.
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

#include "adapters/mcp/call_record.hpp"
#include "adapters/mcp/child_server.hpp"
#include "adapters/mcp/line_gate.hpp"
#include "adapters/mcp/line_stream.hpp"
#include "adapters/mcp/recorder.hpp"
#include "base/json/message_skim.hpp"
#include "base/process/stop_signals.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

class RecordingProxy {
 public:
  RecordingProxy(ChildServer server, Recorder& recorder, bool required);

  // Returns the exit code of the server after it has ended and all events are recorded or abandoned.
  int run();

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Direction { to_server, to_host };
  struct OpenCall {
    ToolCall call;
    Time began;
    std::uint64_t token = 0;  // token of tool.called
    bool lost = false;        // tool.called is not recorded, so its end is not recorded either
  };
  // The line that waits until an event is recorded.
  struct Hold {
    Direction direction = Direction::to_host;
    std::uint64_t line = 0;
    bool operator<(const Hold& other) const {
      return std::pair(direction, line) < std::pair(other.direction, other.line);
    }
  };
  // A line in transit and the data for an error in its place with `required`.
  struct LineFacts {
    std::vector<std::uint64_t> tokens;  // tokens of the events that it waits for
    std::vector<std::string> ids;       // ids of the requests to the server or of the responses to the host
    std::string problem;
  };
  // Beginning and end of a line too long for memory.
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
  void withhold_response(const json::Envelope& envelope, std::string_view why);
  void take_host_message(std::string_view message, LineFacts& line);
  void take_server_message(std::string_view message, LineFacts& line);
  void take_cut_line(const LinePiece& piece, Direction direction);
  void take_call(const json::Envelope& envelope, std::string_view params, LineFacts& line);
  void begin(const json::Envelope& envelope);
  void identify(const json::Envelope& envelope);
  void cancel(const json::Envelope& envelope);
  void hold(Direction direction, std::string bytes, LineFacts line);
  void complete();
  void complete_one(const Recorded& recorded);
  void complete_late(const Recorded& recorded);
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

  std::map<std::string, OpenCall> open_;  // key: id_key of the request
  std::set<std::string> asked_;           // id_keys of other requests of the host in flight
  std::map<std::string, std::string>
      handshakes_;  // key: id_key of a request whose result names the server; value: protocol version
  bool began_ = false;
  std::map<std::uint64_t, Hold> holds_;  // key: token
  std::map<Hold, LineFacts> lines_;
  // Ends of lost calls by the token of tool.called; recorded if tool.called turns out to be recorded.
  std::map<std::uint64_t, DraftEvent> ends_of_lost_;
  std::uint64_t tokens_ = 0;

  bool lines_left_[2] = {false,
                         false};  // by direction: lines were read but not processed, because too much data was queued
  bool host_ended_ = false;       // the host closed its output or a signal requested the end
  bool stopping_ = false;
  bool died_ = false;  // the server ended before the host
  int next_signal_ = 0;
  Time next_signal_at_{};
  std::optional<ServerExit> exit_;
  Time exit_at_{};
};

}  // namespace muniment::cli
