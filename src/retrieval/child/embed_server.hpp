// The daemon's side of the `http` lane: it has the embedder, with its key, and answers what the search child
// asks on the embedding channels, a thread for each. It outlives children: a request that is on its way
// when one dies is finished for nobody, and then the next one's channels are served.
//
// Where the server's dimension is not known it is asked until it says it; the children that are
// started before that have no such lane.
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
  // `on_known` comes on one of its threads: `identity` has one now.
  EmbedServer(RemoteOptions options, std::function<void()> on_known);
  ~EmbedServer();  // stops as by `stop`

  std::optional<EmbedderIdentity> identity() const;
  // Waits for it, but no longer than the first attempt takes.
  std::optional<EmbedderIdentity> first_identity(Deadline deadline) const;
  // Why it has no answers at the moment; empty when it has.
  std::string problem() const;

  // From now on these, the daemon's ends of a child's embedding channels; those of the child before are shut down.
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

// Texts of documents, of which the server refuses some: too long for its model, mostly. Such a text is embedded by its
// beginning, halved until it is taken; one that is refused even when it is short has the zero vector, and is never
// found by it. Errors: those of the embedder; invalid_argument where it refuses whatever it is given.
Result<Vectors> embed_documents(Embedder& embedder, const std::vector<std::string>& texts);

}  // namespace muniment::retrieval
