// Serves the embedding channels of the search child.
#include "retrieval/child/embed_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/process/thread.hpp"
#include "base/utf8.hpp"
#include "retrieval/child/messages.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::size_t shortest_beginning_bytes = 256;
constexpr std::chrono::seconds send_time_max{5};  // a child reads its answers at once

TextKind kind_of(std::size_t place) { return place == query_channel ? TextKind::query : TextKind::document; }

Result<std::vector<float>> embed_one(Embedder& embedder, std::string_view text) {
  ASSIGN_OR_RETURN(Vectors vectors, embedder.embed({&text, 1}, TextKind::document));
  return std::move(vectors.at(0));
}

Result<std::vector<float>> embed_beginning(Embedder& embedder, std::string_view text) {
  for (;;) {
    auto vector = embed_one(embedder, text);
    if (vector || vector.error().code != Errc::invalid_argument) return vector;
    if (text.size() <= shortest_beginning_bytes) {
      // Distinguishes a refused text from a server that refuses everything.
      RETURN_IF_ERROR(embed_one(embedder, "text"));
      return std::vector<float>(embedder.identity().dimension, 0.0F);
    }
    text = first_characters(text, text.size() / 2);
  }
}

}  // namespace

Result<Vectors> embed_documents(Embedder& embedder, const std::vector<std::string>& texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  auto vectors = embedder.embed(views, TextKind::document);
  if (vectors || vectors.error().code != Errc::invalid_argument) return vectors;
  Vectors singly;
  for (const std::string_view text : views) {
    ASSIGN_OR_RETURN(auto vector, embed_beginning(embedder, text));
    singly.push_back(std::move(vector));
  }
  return singly;
}

EmbedServer::EmbedServer(RemoteOptions options, std::function<void()> on_known)
    : options_(std::move(options)), on_known_(std::move(on_known)) {
  for (std::size_t place = 0; place < threads_.size(); ++place) {
    threads_[place] =
        named_thread(place == query_channel ? "embed queries" : "embed documents", [this, place] { run(place); });
  }
}

EmbedServer::~EmbedServer() { stop(); }

void EmbedServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  given_up_ = true;
  serve({});
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

std::optional<EmbedderIdentity> EmbedServer::identity() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

std::optional<EmbedderIdentity> EmbedServer::first_identity(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return tried_ || stopping_; });
  return identity_;
}

std::string EmbedServer::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void EmbedServer::note(const std::optional<Error>& error) {
  const std::lock_guard lock(mutex_);
  if (error && problem_.empty()) log_warning("the embedding server does not serve", {{"error", error->message}});
  if (!error && !problem_.empty()) log_info("the embedding server serves again");
  problem_ = error ? error->message : std::string();
}

void EmbedServer::serve(Sockets sockets) {
  {
    const std::lock_guard lock(mutex_);
    std::swap(sockets_, sockets);
  }
  changed_.notify_all();
  for (const auto& socket : sockets) {
    if (socket) ::shutdown(socket->get(), SHUT_RDWR);
  }
}

// Returns null when the server is to stop.
std::shared_ptr<const Fd> EmbedServer::next_socket(std::size_t place, const std::shared_ptr<const Fd>& last) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || (sockets_[place] && sockets_[place] != last); });
  return stopping_ ? nullptr : sockets_[place];
}

// The documents' thread determines the dimension; the queries' thread waits for it. Returns null when the server is to
// stop.
std::unique_ptr<Embedder> EmbedServer::open_at_last(TextKind kind) {
  for (;;) {
    std::size_t dimension = 0;
    if (kind == TextKind::query) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || identity_; });
      if (stopping_) return nullptr;
      dimension = identity_->dimension;
    }
    auto opened = options_.open({kind, dimension, [this] { return given_up_.load(); }});
    note(opened ? std::nullopt : std::optional<Error>(opened.error()));
    {
      std::unique_lock lock(mutex_);
      tried_ = true;
      if (opened && kind == TextKind::document) identity_ = (*opened)->identity();
      changed_.notify_all();
      if (!opened) changed_.wait_for(lock, options_.pause, [this] { return stopping_; });
      if (stopping_) return nullptr;
    }
    if (!opened) continue;
    if (kind == TextKind::document) on_known_();
    return *std::move(opened);
  }
}

void EmbedServer::run(std::size_t place) {
  const TextKind kind = kind_of(place);
  const std::unique_ptr<Embedder> embedder = open_at_last(kind);
  if (!embedder) return;
  for (std::shared_ptr<const Fd> socket; (socket = next_socket(place, socket));) {
    serve_socket(socket->get(), *embedder, kind);
    ::shutdown(socket->get(), SHUT_RDWR);
  }
}

Result<Vectors> EmbedServer::embed(Embedder& embedder, const Frame& frame, TextKind kind) {
  ASSIGN_OR_RETURN(const auto task, from_wire<EmbedTask>(frame.payload));
  if (frame.kind != MessageKind::embed || task.kind != kind)
    return Error(Errc::corrupt, "a message arrived on the wrong channel");
  for (const std::string& text : task.texts) {
    if (first_invalid_utf8(text) != std::string_view::npos) return Error(Errc::corrupt, "a text is not UTF-8");
  }
  const std::vector<std::string_view> views(task.texts.begin(), task.texts.end());
  auto vectors = kind == TextKind::document ? embed_documents(embedder, task.texts) : embedder.embed(views, kind);
  const bool refused = !vectors && vectors.error().code == Errc::invalid_argument && kind == TextKind::query;
  if (!refused) note(vectors ? std::nullopt : std::optional<Error>(vectors.error()));
  return vectors;
}

// Runs until the child closes the channel, does not read its answer, or sends an invalid message.
void EmbedServer::serve_socket(int socket, Embedder& embedder, TextKind kind) {
  for (;;) {
    const auto frame = receive_frame(socket, limits::embed_request_bytes_max, no_deadline);
    if (!frame) return;
    const auto vectors = embed(embedder, *frame, kind);
    if (!vectors && vectors.error().code == Errc::corrupt) {
      log_error("the search child sent an invalid request to the embedding server",
                {{"error", vectors.error().message}});
      return;
    }
    const std::string payload =
        vectors ? to_wire(packed(*vectors, embedder.identity().dimension)) : to_wire(vectors.error());
    const MessageKind answer = vectors ? MessageKind::answer : MessageKind::failure;
    if (!send_frame(socket, answer, frame->call, payload, limits::embed_answer_bytes_max, steady_now() + send_time_max))
      return;
  }
}

}  // namespace muniment::retrieval
