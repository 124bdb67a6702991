// The daemon's side of the `http` lane: owns the embedder and its key, and answers the search child on the embedding
// channels, one thread for each. It outlives children: if one dies during a request, the answer is dropped and the
// channels of the next child are served.
//
// If the server's dimension is not known, it is requested until the server answers; children that are started before
// that do not have the lane.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "retrieval/child/embed_messages.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/remote_options.hpp"

namespace muniment::retrieval {

class EmbedServer {
 public:
  // `on_known` is called on one of its threads once `identity` has a value.
  EmbedServer(RemoteOptions options, std::function<void()> on_known);
  ~EmbedServer();  // calls `stop`

  std::optional<EmbedderIdentity> identity() const;
  // Waits for the identity, but at most for the first attempt.
  std::optional<EmbedderIdentity> first_identity(Deadline deadline) const;
  // The reason for which it cannot answer at present; empty if it can.
  std::string problem() const;

  // From now on serves these, the daemon's ends of a child's embedding channels; shuts the previous child's channels
  // down.
  using Sockets = std::array<std::shared_ptr<const Fd>, limits::embed_channels>;
  void serve(Sockets sockets);
  void stop();

 private:
  void run(std::size_t place);
  std::unique_ptr<Embedder> open_at_last(TextKind kind);
  std::shared_ptr<const Fd> next_socket(std::size_t place, const std::shared_ptr<const Fd>& last);
  void serve_socket(int socket, Embedder& embedder, TextKind kind);
  Result<Vectors> embed(Embedder& embedder, const Frame& frame, TextKind kind);
  void note(const std::optional<Error>& error);

  const RemoteOptions options_;
  const std::function<void()> on_known_;
  std::atomic<bool> given_up_ = false;
  mutable std::mutex mutex_;  // guards these
  mutable std::condition_variable changed_;
  bool stopping_ = false;
  bool tried_ = false;
  std::optional<EmbedderIdentity> identity_;
  std::string problem_;
  Sockets sockets_;
  std::array<std::thread, limits::embed_channels> threads_;
};

// Embeds texts of documents even if the server refuses some, usually because they are too long for its model. A refused
// text is halved until its beginning is accepted; a short text that is refused gets the zero vector, which no query
// finds. Errors: those of the embedder; invalid_argument if the server refuses every text.
Result<Vectors> embed_documents(Embedder& embedder, const std::vector<std::string>& texts);

}  // namespace muniment::retrieval
