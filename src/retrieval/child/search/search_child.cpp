// Serves the channels of a search child.
#include "retrieval/child/search/search_child.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <filesystem>
#include <future>
#include <new>
#include <thread>
#include <vector>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/process/sandbox.hpp"
#include "base/process/thread.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/messages.hpp"
#include "retrieval/child/remote_embedder.hpp"

namespace muniment::retrieval {

namespace {

constexpr int embedding_again_priority = 10;  // niceness

using Handler = std::function<Result<std::string>(const Frame&)>;

bool answer(int channel, std::uint64_t call, const Result<std::string>& result) {
  if (result) {
    const auto sent =
        send_frame(channel, MessageKind::answer, call, *result, limits::search_answer_bytes_max, no_deadline);
    if (sent) return true;
    if (sent.error().code != Errc::too_large) return false;
    return answer(channel, call, sent.error());
  }
  return send_frame(channel, MessageKind::failure, call, to_wire(result.error()), limits::search_answer_bytes_max,
                    no_deadline)
      .ok();
}

// Runs until the daemon closes the channel.
void serve_channel(int channel, const Handler& handle) {
  for (;;) {
    const auto frame = receive_frame(channel, limits::search_request_bytes_max, no_deadline);
    if (!frame) return;
    Result<std::string> result = Error(Errc::unavailable, "the search child is out of memory");
    try {
      result = handle(*frame);
    } catch (const std::bad_alloc&) {
      log_error("the search child is out of memory");
    }
    if (!answer(channel, frame->call, result)) return;
  }
}

Error unexpected() { return Error(Errc::corrupt, "a message arrived on the wrong channel"); }

Result<std::string> done(const Status& status) {
  if (!status) return status.error();
  return std::string();
}

Result<std::string> write_to(Engine& engine, const Frame& frame) {
  if (frame.kind == MessageKind::index) {
    ASSIGN_OR_RETURN(const auto batch, from_wire<EngineBatch>(frame.payload));
    return done(engine.index(batch));
  }
  if (frame.kind == MessageKind::set_model) {
    ASSIGN_OR_RETURN(const auto model, from_wire<EngineModel>(frame.payload));
    return done(engine.set_model(model));
  }
  if (frame.kind != MessageKind::embed_again) return unexpected();
  std::string corpus;
  std::vector<EngineChunk> chunks;
  bool last = false;
  WireReader reader(frame.payload);
  reader(corpus, chunks, last);
  RETURN_IF_ERROR(reader.end());
  // Takes minutes while queries are served, so it runs on a thread that can have a low priority.
  return std::async(std::launch::async,
                    [&] {
                      ::setpriority(PRIO_PROCESS, 0, embedding_again_priority);
                      return done(engine.embed_again(corpus, chunks, last));
                    })
      .get();
}

Handler searching(Engine& engine) {
  return [&engine, searcher = std::shared_ptr<Engine::Searcher>()](const Frame& frame) mutable -> Result<std::string> {
    if (frame.kind != MessageKind::search) return unexpected();
    if (!searcher) {
      ASSIGN_OR_RETURN(searcher, engine.searcher());
    }
    ASSIGN_OR_RETURN(const auto query, from_wire<LaneQuery>(frame.payload));
    ASSIGN_OR_RETURN(const auto found, searcher->search(query));
    return to_wire(found);
  };
}

Result<SandboxReport> lock_in(const SearchSetup& setup) {
  std::error_code failed;
  std::filesystem::create_directories(setup.engine.folder, failed);
  if (failed) return Error(Errc::unavailable, setup.engine.folder + ": " + failed.message());
  SandboxPolicy policy;
  policy.files.read_only = system_files();
  if (!setup.engine.models_folder.empty()) policy.files.read_only.push_back(setup.engine.models_folder);
  policy.files.read_write = {setup.engine.folder};
  policy.threads = true;
  policy.address_space_bytes_max = setup.address_space_bytes_max;
  policy.open_files_max = 4'096;
  policy.needs_file_rules = policy.needs_call_filter = setup.needs_sandbox;
  return enter_sandbox(policy);
}

struct Opened {
  std::unique_ptr<Engine> engine;
  SandboxReport sandbox;
};

// The embedding channels follow all others.
std::size_t channels_before_embedding(const SearchSetup& setup) { return first_search_channel + setup.search_channels; }
std::size_t channels_of(const SearchSetup& setup) {
  return channels_before_embedding(setup) + (setup.remote.dimension > 0 ? limits::embed_channels : 0);
}

std::shared_ptr<Embedder> remote_embedder(const SearchSetup& setup, int first_channel) {
  if (setup.remote.dimension == 0) return nullptr;
  RemoteEmbedderOptions options;
  options.identity = setup.remote;
  for (std::size_t i = 0; i < limits::embed_channels; ++i)
    options.sockets[i] = first_channel + static_cast<int>(channels_before_embedding(setup) + i);
  options.query_patience = std::chrono::milliseconds(setup.query_ms);
  return std::make_shared<RemoteEmbedder>(options);
}

Result<Opened> open_engine(const SearchChildOptions& options, const SearchSetup& setup, int first_channel) {
  Opened opened;
  ASSIGN_OR_RETURN(opened.sandbox, lock_in(setup));
  Engine::Options engine = setup.engine;
  engine.remote = remote_embedder(setup, first_channel);
  ASSIGN_OR_RETURN(opened.engine, options.open_engine(engine));
  return opened;
}

void serve_all(Engine& engine, const SearchSetup& setup, int first_channel) {
  const auto channel = [&](std::size_t place) { return first_channel + static_cast<int>(place); };
  const std::size_t channels = channels_before_embedding(setup);
  std::vector<std::thread> threads;
  threads.push_back(named_thread("index", [&engine, fd = channel(index_channel)] {
    serve_channel(fd, [&engine](const Frame& frame) { return write_to(engine, frame); });
  }));
  for (std::size_t place = first_search_channel; place < channels; ++place) {
    threads.push_back(named_thread("search " + std::to_string(place - first_search_channel),
                                   [&engine, fd = channel(place)] { serve_channel(fd, searching(engine)); }));
  }
  serve_channel(channel(control_channel), [&engine](const Frame& frame) -> Result<std::string> {
    if (frame.kind != MessageKind::status) return unexpected();
    return to_wire(engine.status());
  });
  // Lets writes in progress finish and accepts no more requests.
  for (std::size_t place = 0; place < channels_of(setup); ++place) ::shutdown(channel(place), SHUT_RD);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int serve_search(const SearchChildOptions& options, int first_channel) {
  const int control = first_channel + static_cast<int>(control_channel);
  const auto frame = receive_frame(control, limits::search_request_bytes_max, no_deadline);
  if (!frame || frame->kind != MessageKind::setup) return 2;
  const auto setup = from_wire<SearchSetup>(frame->payload);
  if (!setup || setup->search_channels > limits::search_channels_max ||
      setup->remote.dimension > limits::embedding_dimension_max)
    return 2;
  close_descriptors_from(first_channel + static_cast<int>(channels_of(*setup)));
  auto opened = open_engine(options, *setup, first_channel);
  if (!opened) {
    answer(control, frame->call, opened.error());
    return 1;
  }
  const SearchHello hello{opened->engine->status(), opened->sandbox.missing};
  if (!answer(control, frame->call, to_wire(hello))) return 1;
  serve_all(*opened->engine, *setup, first_channel);
  return 0;
}

}  // namespace muniment::retrieval
