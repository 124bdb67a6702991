// Starts a search child and exchanges messages with it.
#include "retrieval/child/search/search_process.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/limits.hpp"
#include "retrieval/child/search/search_child.hpp"

namespace muniment::retrieval {

namespace {

// An answer that has begun arrives without pauses; a child that stops in the middle is stuck or worse.
constexpr std::chrono::seconds answer_time_max{5};

Result<std::pair<Fd, Fd>> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(Errc::unavailable, "socketpair: " + std::generic_category().message(errno));
  }
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

SearchProcess::Reply lost(Error error) { return {SearchProcess::Reply::State::lost, std::move(error)}; }

}  // namespace

Result<std::shared_ptr<SearchProcess>> SearchProcess::start(const std::vector<std::string>& command,
                                                            const SearchSetup& setup, EmbedServer* embeds) {
  auto process = std::make_shared<SearchProcess>();
  std::vector<Fd> childs_ends;
  ChildCommand start{command, {}, true};
  const auto hand_over = [&]() -> Result<Fd> {
    ASSIGN_OR_RETURN(auto ends, socket_pair());
    start.handed_over.push_back(ends.second.get());
    childs_ends.push_back(std::move(ends.second));
    return std::move(ends.first);
  };
  for (std::size_t i = 0; i < first_search_channel + setup.search_channels; ++i) {
    ASSIGN_OR_RETURN(Fd ours, hand_over());
    process->channels_.push_back({std::move(ours)});
  }
  if (embeds != nullptr && setup.remote.dimension > 0) {
    for (auto& socket : process->embedding_) {
      ASSIGN_OR_RETURN(Fd ours, hand_over());
      socket = std::make_shared<const Fd>(std::move(ours));
    }
    embeds->serve(process->embedding_);
  }
  ASSIGN_OR_RETURN(process->child_, spawn(start));
  process->pid_ = process->child_.pid();
  Channel& control = process->channels_[control_channel];
  RETURN_IF_ERROR(send_frame(control.socket.get(), MessageKind::setup, ++control.calls, to_wire(setup),
                             limits::search_request_bytes_max, steady_now() + answer_time_max));
  return process;
}

Result<SearchHello> SearchProcess::hello() {
  const Reply reply = receive(channels_[control_channel]);
  if (!reply.payload) return reply.payload.error();
  return from_wire<SearchHello>(*reply.payload);
}

SearchProcess::Reply SearchProcess::receive(Channel& channel) {
  auto frame = receive_frame(channel.socket.get(), limits::search_answer_bytes_max, steady_now() + answer_time_max);
  if (!frame) return lost(std::move(frame).error());
  if (frame->call != channel.calls) return lost(Error(Errc::corrupt, "the search child answered another call"));
  if (frame->kind == MessageKind::answer) return {Reply::State::answered, std::move(frame->payload)};
  if (frame->kind != MessageKind::failure)
    return lost(Error(Errc::corrupt, "the search child sent a request instead of an answer"));
  auto error = error_from_wire(frame->payload);
  if (!error) return lost(Error(Errc::corrupt, "the search child sent an invalid error"));
  return {Reply::State::answered, *std::move(error)};
}

SearchProcess::Reply SearchProcess::call(std::size_t place, MessageKind kind, std::string_view payload,
                                         Deadline deadline, std::chrono::milliseconds hang) {
  Channel& channel = channels_[place];
  const Deadline hangs_at = steady_now() + hang;
  if (auto sent =
          send_frame(channel.socket.get(), kind, ++channel.calls, payload, limits::search_request_bytes_max, hangs_at);
      !sent) {
    return lost(std::move(sent).error());
  }
  if (const auto ready = await_readable(channel.socket.get(), std::min(deadline, hangs_at)); !ready) {
    if (ready.error().code != Errc::deadline_exceeded) return lost(ready.error());
    if (steady_now() < hangs_at) return {Reply::State::late, ready.error()};
    return lost(
        Error(Errc::unavailable, "the search child hangs: no answer within " + std::to_string(hang.count()) + " ms"));
  }
  return receive(channel);
}

SearchProcess::Reply SearchProcess::take_late(std::size_t place) { return receive(channels_[place]); }

void SearchProcess::ask_to_stop() {
  for (const Channel& channel : channels_) ::shutdown(channel.socket.get(), SHUT_RDWR);
  for (const auto& socket : embedding_) {
    if (socket) ::shutdown(socket->get(), SHUT_RDWR);
  }
}

}  // namespace muniment::retrieval
