// The daemon's side of one search child, from its start to its end: the process, its channels, and a
// call on one of them. It believes nothing of what comes back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "retrieval/child/embed_server.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/messages.hpp"
#include "retrieval/child/spawn.hpp"

namespace muniment::retrieval {

class SearchProcess {
 public:
  // Starts it; it opens its indexes meanwhile, and `hello` says when. `embeds` serves it where the setup names a remote
  // embedder. Errors: unavailable.
  static Result<std::shared_ptr<SearchProcess>> start(const std::vector<std::string>& command, const SearchSetup& setup,
                                                      EmbedServer* embeds = nullptr);

  // Errors: what the child says (it could not open its indexes), unavailable (it died), corrupt.
  Result<SearchHello> hello();

  // One call at a time on a channel. `answered`: the child's answer, or its own error. `late`: the caller's
  // deadline has passed, and the answer may still come: the channel is not free before it has (take_late). `lost`:
  // the child is dead, or spoke nonsense, or hangs, and is to be killed.
  struct Reply {
    enum class State { answered, late, lost };
    State state = State::lost;
    Result<std::string> payload = std::string();
  };
  Reply call(std::size_t channel, MessageKind kind, std::string_view payload, Deadline deadline,
             std::chrono::milliseconds hang);
  // Takes the answer that a late call left behind, when there is something to be read.
  Reply take_late(std::size_t channel);

  int socket_of(std::size_t channel) const { return channels_[channel].socket.get(); }
  Child& child() { return child_; }
  pid_t pid() const { return pid_; }

  // The child finishes what it is writing and exits; those who wait on a channel are let go.
  void ask_to_stop();

 private:
  struct Channel {
    Fd socket;
    std::uint64_t calls = 0;  // whoever has the channel
  };
  Reply receive(Channel& channel);

  Child child_;  // the supervisor's
  pid_t pid_ = -1;
  std::vector<Channel> channels_;
  EmbedServer::Sockets embedding_;  // null: it has no remote embedder
};

}  // namespace muniment::retrieval
