// The embedder of the `http` lane in the search child. The child opens no connection and holds no key; it asks the
// daemon over one channel for documents and one for queries. A channel has one user at a time. An answer that is late
// or invalid is `unavailable`; for a while after it, further calls fail at once with the same error.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/limits.hpp"
#include "retrieval/child/embed_messages.hpp"
#include "retrieval/child/frame.hpp"

namespace muniment::retrieval {

// One channel to the daemon. Any thread.
class EmbedChannel {
 public:
  EmbedChannel(int socket, std::chrono::milliseconds patience, std::chrono::milliseconds pause)
      : socket_(socket), patience_(patience), pause_(pause) {}

  // Errors: unavailable.
  Result<Vectors> ask(const EmbedTask& task, std::size_t dimension);

 private:
  struct Turn;
  Result<Vectors> exchange(const EmbedTask& task, std::size_t dimension, Deadline deadline);
  Result<Frame> receive(Deadline deadline);
  Error break_off(Error why);

  const int socket_;
  const std::chrono::milliseconds patience_, pause_;

  std::mutex mutex_;  // guards these
  std::condition_variable free_;
  bool busy_ = false;
  Monotonic not_before_{};
  std::string problem_;  // error of the last attempt

  std::uint64_t calls_ = 0;  // number of the last call; used by the channel's present user, like the next two
  bool pending_ = false;     // the answer to a call that timed out is still pending
  bool broken_ = false;      // answers can no longer be matched with calls
};

struct RemoteEmbedderOptions {
  EmbedderIdentity identity;
  std::array<int, limits::embed_channels> sockets{};       // documents, queries
  std::chrono::milliseconds document_patience{1'800'000};  // the daemon has its own limits, and documents may take long
  std::chrono::milliseconds query_patience{2'500};
  std::chrono::milliseconds pause{2'000};  // after a failure
};

class RemoteEmbedder : public Embedder {
 public:
  explicit RemoteEmbedder(const RemoteEmbedderOptions& options)
      : identity_(options.identity),
        documents_(options.sockets[document_channel], options.document_patience, options.pause),
        queries_(options.sockets[query_channel], options.query_patience, options.pause) {}

  const EmbedderIdentity& identity() const override { return identity_; }
  // Uses the first 32 KiB of a text, which exceeds what models read. Errors: unavailable.
  Result<Vectors> embed(std::span<const std::string_view> texts, TextKind kind) override;

 private:
  const EmbedderIdentity identity_;
  EmbedChannel documents_, queries_;
};

}  // namespace muniment::retrieval
