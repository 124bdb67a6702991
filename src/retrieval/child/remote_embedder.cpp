// Embeds texts through the daemon's embedding server.
#include "retrieval/child/remote_embedder.hpp"

#include <algorithm>
#include <utility>

#include "retrieval/child/messages.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::size_t text_bytes_max = 32 * 1024;
constexpr std::size_t task_texts_max = 16;
static_assert(task_texts_max * (text_bytes_max + 4) < limits::embed_request_bytes_max);

// An answer that has begun arrives without pauses.
constexpr std::chrono::seconds frame_time_max{5};

}  // namespace

// The right to use the channel, until destroyed.
struct EmbedChannel::Turn {
  explicit Turn(EmbedChannel& of) : channel(of) {}
  ~Turn() {
    const std::lock_guard lock(channel.mutex_);
    channel.busy_ = false;
    channel.free_.notify_one();
  }
  EmbedChannel& channel;
};

Result<Vectors> EmbedChannel::ask(const EmbedTask& task, std::size_t dimension) {
  const Deadline deadline = steady_now() + patience_;
  {
    std::unique_lock lock(mutex_);
    if (!free_.wait_until(lock, deadline, [this] { return !busy_; }))
      return Error(Errc::unavailable, "too many texts wait for the server");
    if (steady_now() < not_before_) return Error(Errc::unavailable, problem_);
    busy_ = true;
  }
  const Turn turn(*this);
  auto vectors = exchange(task, dimension, deadline);
  if (vectors) return vectors;
  // A refused text does not affect the next one.
  const bool refused = vectors.error().code == Errc::invalid_argument;
  const std::lock_guard lock(mutex_);
  problem_ = vectors.error().message;
  if (!refused) not_before_ = steady_now() + pause_;
  return Error(Errc::unavailable, problem_);
}

Error EmbedChannel::break_off(Error why) {
  broken_ = true;
  return Error(Errc::unavailable, "the channel to the daemon cannot be used any more: " + why.message);
}

// Receives an answer: to this call or to an earlier one that timed out.
Result<Frame> EmbedChannel::receive(Deadline deadline) {
  if (const auto ready = await_readable(socket_, deadline); !ready) {
    if (ready.error().code != Errc::deadline_exceeded) return break_off(ready.error());
    return Error(Errc::unavailable, "no answer within " + std::to_string(patience_.count()) + " ms");
  }
  auto frame = receive_frame(socket_, limits::embed_answer_bytes_max, steady_now() + frame_time_max);
  if (!frame) return break_off(std::move(frame).error());
  if (frame->call != calls_) return break_off(Error(Errc::corrupt, "an answer to another call"));
  pending_ = false;
  return frame;
}

Result<Vectors> EmbedChannel::exchange(const EmbedTask& task, std::size_t dimension, Deadline deadline) {
  if (broken_) return Error(Errc::unavailable, "the channel to the daemon is broken");
  if (pending_) RETURN_IF_ERROR(receive(deadline));
  const auto sent =
      send_frame(socket_, MessageKind::embed, ++calls_, to_wire(task), limits::embed_request_bytes_max, deadline);
  if (!sent) return break_off(sent.error());
  pending_ = true;
  ASSIGN_OR_RETURN(const Frame frame, receive(deadline));
  if (frame.kind == MessageKind::failure) {
    auto error = error_from_wire(frame.payload);
    return error ? *std::move(error) : Error(Errc::unavailable, "the daemon sent an invalid error");
  }
  if (frame.kind != MessageKind::answer) return break_off(Error(Errc::corrupt, "a request instead of an answer"));
  ASSIGN_OR_RETURN(const auto answer, from_wire<EmbeddedTexts>(frame.payload));
  return unpacked(answer, task.texts.size(), dimension);
}

Result<Vectors> RemoteEmbedder::embed(std::span<const std::string_view> texts, TextKind kind) {
  EmbedChannel& channel = kind == TextKind::query ? queries_ : documents_;
  Vectors vectors;
  for (std::size_t begin = 0; begin < texts.size(); begin = vectors.size()) {
    EmbedTask task{kind, {}};
    for (const std::string_view text : texts.subspan(begin, std::min(task_texts_max, texts.size() - begin)))
      task.texts.emplace_back(first_characters(text, text_bytes_max));
    ASSIGN_OR_RETURN(Vectors some, channel.ask(task, identity_.dimension));
    for (auto& vector : some) vectors.push_back(std::move(vector));
  }
  return vectors;
}

}  // namespace muniment::retrieval
