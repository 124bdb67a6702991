// An engine that is controlled by its queries: it answers, delays, crashes, hangs, or writes invalid
// data to the daemon. For tests of the code around the engine.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "base/process/spawn.hpp"
#include "retrieval/child/frame.hpp"
#include "retrieval/child/search/search_child.hpp"
#include "retrieval/engine/engine.hpp"

namespace muniment::test {

using namespace muniment::retrieval;

class MisbehavingEngine : public Engine {
 public:
  explicit MisbehavingEngine(const Options& options) : folder_(options.folder), emptied_(options.empty_first) {
    if (emptied_) std::filesystem::remove(folder_ + "/crash-at-open");
    if (there("crash-at-open")) std::abort();
    std::int64_t kept = 0;
    std::ifstream(folder_ + "/watermark") >> kept;
    next_seq_ = kept;
  }

  Status index(const EngineBatch& batch) override {
    for (const EngineChunk& chunk : batch.add) {
      if (chunk.text == "crash") std::abort();
    }
    next_seq_ = batch.next_seq;
    std::ofstream(folder_ + "/watermark") << batch.next_seq;
    return success();
  }
  Status set_model(const EngineModel&) override { return success(); }
  Status embed_again(const std::string&, const std::vector<EngineChunk>&, bool) override { return success(); }

  EngineStatus status() const override {
    EngineStatus status;
    status.lexical_next_seq = status.vector_next_seq = next_seq_;
    if (emptied_) status.rebuilt = {"lexical", "vector"};
    return status;
  }

  class ObedientSearcher : public Searcher {
   public:
    explicit ObedientSearcher(MisbehavingEngine& engine) : engine_(engine) {}
    Result<LaneAnswer> search(const LaneQuery& query) override { return engine_.obey(query); }

   private:
    MisbehavingEngine& engine_;
  };
  Result<std::unique_ptr<Searcher>> searcher() override {
    return std::unique_ptr<Searcher>(new ObedientSearcher(*this));
  }

 private:
  bool there(const char* name) const { return std::filesystem::exists(folder_ + "/" + name); }
  // True for the first call in any child.
  bool first(const std::string& name) const {
    const int made = ::open((folder_ + "/" + name).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (made >= 0) ::close(made);
    return made >= 0;
  }
  void note(const std::string& name) const {
    const int file = ::open((folder_ + "/" + name).c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    [[maybe_unused]] const ssize_t ignored = ::write(file, "x", 1);
    ::close(file);
  }
  static void spoil(std::string_view bytes) {
    for (std::size_t place = first_search_channel; place < first_search_channel + 4; ++place) {
      [[maybe_unused]] const ssize_t ignored =
          ::write(first_handed_over + static_cast<int>(place), bytes.data(), bytes.size());
    }
  }
  static std::string header(MessageKind kind, std::uint64_t call, std::uint64_t length) {
    const FrameHeader header{0x3143534d, static_cast<std::uint32_t>(kind), call, length};
    return {reinterpret_cast<const char*>(&header), sizeof header};
  }

  Result<LaneAnswer> obey(const LaneQuery& query) {
    const std::string& what = query.text;
    note("ran-" + what.substr(0, what.find(':')));
    if (what == "crash" || (what.starts_with("crash-once") && first(what))) std::abort();
    if (what == "hang" || (what == "hang-once" && first(what))) {
      for (;;) ::pause();
    }
    if (what.starts_with("sleep:")) std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(what.substr(6))));
    if (what == "garbage" && first(what)) spoil(std::string(1'000, '!'));
    if (what == "huge" && first(what)) spoil(header(MessageKind::answer, 1, std::uint64_t{1} << 40));
    if (what == "another-call" && first(what)) spoil(header(MessageKind::answer, 999'999, 0));
    if (what == "a-question" && first(what)) spoil(header(MessageKind::index, 1, 0));
    if (what == "half" && first(what)) spoil(header(MessageKind::answer, 1, 100) + "half of it");
    if (what == "corrupt" && first(what)) return Error(Errc::corrupt, "a posting list is damaged");
    if (what == "wrong") return Error(Errc::invalid_argument, "no such profile");
    LaneAnswer answer;
    answer.watermark = what == "passwd" ? ::open("/etc/passwd", O_RDONLY) : ::getpid();
    for (std::size_t i = 0; i < query.k; ++i)
      answer.candidates.push_back({static_cast<ChunkId>(i + 1), 1.0, {{"lexical", 0.5}}, 1});
    if (what == "big") answer.degraded.assign(1, std::string(17 << 20, 'x'));
    if (what == "not-finite") answer.candidates[0].score = std::numeric_limits<double>::quiet_NaN();
    answer.identities = {what};
    return answer;
  }

  const std::string folder_;
  const bool emptied_;
  std::atomic<std::int64_t> next_seq_ = 0;
};

inline Result<std::unique_ptr<Engine>> open_misbehaving(const Engine::Options& options) {
  if (std::filesystem::exists(options.folder + "/refuse")) return Error(Errc::conflict, "somebody else has it");
  return std::unique_ptr<Engine>(new MisbehavingEngine(options));
}

}  // namespace muniment::test
