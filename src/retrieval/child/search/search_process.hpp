// The daemon's side of one search child, from its start to its end: the process, its channels, and calls on them. Every
// answer is checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/process/spawn.hpp"
#include "retrieval/child/embed_server.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/messages.hpp"

namespace muniment::retrieval {

class SearchProcess {
 public:
  // Starts the child, which then opens its indexes; `hello` waits for that. `embeds` serves it if the setup names a
  // remote embedder. Errors: unavailable.
  static Result<std::shared_ptr<SearchProcess>> start(const std::vector<std::string>& command, const SearchSetup& setup,
                                                      EmbedServer* embeds = nullptr);

  // Errors: those of the child (it could not open its indexes), unavailable (it died), corrupt.
  Result<SearchHello> hello();

  // The result of one call; a channel has one call at a time. `answered`: the child's answer, or its error. `late`: the
  // caller's deadline has passed while the answer is pending; the channel is free only after take_late. `lost`: the
  // child is dead, hangs or sent invalid data, and has to be killed.
  struct Reply {
    enum class State { answered, late, lost };
    State state = State::lost;
    Result<std::string> payload = std::string();
  };
  Reply call(std::size_t channel, MessageKind kind, std::string_view payload, Deadline deadline,
             std::chrono::milliseconds hang);
  // Receives the answer of a late call, once the channel is readable.
  Reply take_late(std::size_t channel);

  int socket_of(std::size_t channel) const { return channels_[channel].socket.get(); }
  Child& child() { return child_; }
  pid_t pid() const { return pid_; }

  // The child finishes its writes and exits; callers that wait on a channel are released.
  void ask_to_stop();

 private:
  struct Channel {
    Fd socket;
    std::uint64_t calls = 0;  // used by the channel's present user
  };
  Reply receive(Channel& channel);

  Child child_;  // the supervisor's
  pid_t pid_ = -1;
  std::vector<Channel> channels_;
  EmbedServer::Sockets embedding_;  // null: no remote embedder
};

}  // namespace muniment::retrieval
