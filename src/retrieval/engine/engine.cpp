// Opens, writes and repairs the indexes of the engine.
#include "retrieval/engine/engine.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <system_error>

#include "base/files/file.hpp"
#include "base/log.hpp"
#include "retrieval/engine/engine_parts.hpp"

namespace muniment::retrieval {

namespace {

constexpr std::chrono::minutes repairs_apart{10};

class LocalEngine : public Engine {
 public:
  explicit LocalEngine(const Options& options) : options_(options), parts_(options.folder) {}
  LocalEngine(std::unique_ptr<LexicalIndex> lexical, std::unique_ptr<VectorLanes> vectors)
      : parts_(std::move(lexical), std::move(vectors)) {}
  Status start();

  Status index(const EngineBatch& batch) override;
  Status set_model(const EngineModel& model) override;
  Status embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last) override;
  Result<std::unique_ptr<Searcher>> searcher() override;
  EngineStatus status() const override;

 private:
  template <typename Open>
  Status open_part(IndexFolder& folder, Open open);
  Status open_lexical();
  Status check_positions();
  Status change_lexical(const EngineBatch& batch);
  Status check_batch(const EngineBatch& batch) const;

  const Options options_{};
  EngineParts parts_;
  std::mutex writing_;
};

Status LocalEngine::start() {
  std::error_code failed;
  std::filesystem::create_directories(options_.folder, failed);
  if (failed) return Error(Errc::unavailable, "making " + options_.folder + ": " + failed.message());
  RETURN_IF_ERROR(open_part(parts_.lexical_folder, [this] { return open_lexical(); }));
  RETURN_IF_ERROR(open_part(parts_.vector_folder, [this]() -> Status {
    const VectorLanes::Options lanes{parts_.vector_folder.path(), options_.folder + "/models", options_.models_folder,
                                     options_.remote, options_.remote_missing};
    ASSIGN_OR_RETURN(parts_.vectors, VectorLanes::open(lanes));
    return success();
  }));
  RETURN_IF_ERROR(check_positions());
  parts_.reached = std::max(parts_.lexical->watermark(), parts_.vectors->watermark());
  return success();
}

Status LocalEngine::open_lexical() {
  ASSIGN_OR_RETURN(parts_.lexical, LexicalIndex::open(parts_.lexical_folder.path()));
  return success();
}

// Xapian has no checksums: a flipped bit can turn position 201 into 601, and the chunks in between would never be
// indexed.
Status LocalEngine::check_positions() {
  const std::int64_t bound = parts_.vectors->bound();
  if (parts_.lexical->watermark() <= bound) return success();
  if (bound == 0) return parts_.vectors->set_bound(parts_.lexical->watermark());
  log_warning("the position of the lexical index is impossible; the index is emptied",
              {{"position", parts_.lexical->watermark()}, {"bound", bound}});
  parts_.lexical.reset();
  RETURN_IF_ERROR(parts_.lexical_folder.empty());
  RETURN_IF_ERROR(open_lexical());
  parts_.rebuilt.push_back(parts_.lexical_folder.name());
  parts_.lexical_folder.opened();
  return success();
}

// A damaged index is emptied and filled again from the log; it is never repaired in place.
template <typename Open>
Status LocalEngine::open_part(IndexFolder& folder, Open open) {
  bool emptied = options_.empty_first || folder.noted_damaged();
  if (emptied) RETURN_IF_ERROR(folder.empty());
  Status opened = open();
  if (!opened && opened.error().code == Errc::corrupt && !emptied) {
    log_warning("an index is damaged and is emptied", {{"index", folder.name()}, {"error", opened.error().message}});
    emptied = true;
    RETURN_IF_ERROR(folder.empty());
    opened = open();
  }
  if (emptied) parts_.rebuilt.push_back(folder.name());
  folder.opened();
  return opened;
}

Status LocalEngine::check_batch(const EngineBatch& batch) const {
  RETURN_IF_ERROR(parts_.check_folders());
  const auto gap = [&](const char* name, std::int64_t at) {
    return Error(Errc::conflict, std::string("the ") + name + " index is at " + std::to_string(at) +
                                     ", and the batch begins at " + std::to_string(batch.from_seq));
  };
  if (parts_.lexical->watermark() < batch.from_seq) return gap("lexical", parts_.lexical->watermark());
  if (parts_.vectors->watermark() < batch.from_seq) return gap("vector", parts_.vectors->watermark());
  return success();
}

// Updates both indexes in parallel. The vectors become durable first, so that a chunk in the lexical index always has
// them.
Status LocalEngine::index(const EngineBatch& batch) {
  const std::lock_guard lock(writing_);
  RETURN_IF_ERROR(check_batch(batch));
  LexicalIndex& lexical = *parts_.lexical;
  const bool lexical_wants = batch.next_seq > lexical.watermark();
  auto changing =
      lexical_wants ? std::async(std::launch::async, [&] { return change_lexical(batch); }) : std::future<Status>();
  Status vectors = parts_.vectors->index(batch);
  Status words = lexical_wants ? changing.get() : success();
  if (vectors && words && lexical_wants) words = lexical.commit(batch.next_seq);
  if (!vectors) lexical.cancel();
  if (!vectors) return parts_.judged(std::move(vectors).error(), parts_.vector_folder);
  if (!words) return parts_.judged(std::move(words).error(), parts_.lexical_folder);
  parts_.reached = std::max(parts_.reached.load(), batch.next_seq);
  return success();
}

Status LocalEngine::change_lexical(const EngineBatch& batch) {
  LexicalIndex& lexical = *parts_.lexical;
  for (const EngineChunk& chunk : batch.add) {
    RETURN_IF_ERROR(lexical.add({chunk.id, chunk.text, chunk.title, chunk.heading, chunk.language, chunk.facts}));
    if (chunk.facts.valid_to != still_valid) RETURN_IF_ERROR(lexical.close(chunk.id, chunk.facts.valid_to));
  }
  for (const auto& [id, valid_to] : batch.close) RETURN_IF_ERROR(lexical.close(id, valid_to));
  for (const ChunkId id : batch.remove) RETURN_IF_ERROR(lexical.remove(id));
  return success();
}

Status LocalEngine::set_model(const EngineModel& model) {
  const std::lock_guard lock(writing_);
  auto done = parts_.vectors->set_model(model);
  // A model that cannot be opened is the sender's mistake, not damage here.
  if (!done && done.error().code == Errc::corrupt) return Error(Errc::invalid_argument, done.error().message);
  return done;
}

Status LocalEngine::embed_again(const std::string& corpus, const std::vector<EngineChunk>& chunks, bool last) {
  const std::lock_guard lock(writing_);
  auto done = parts_.vectors->embed_again(corpus, chunks, last);
  return done ? std::move(done) : Status(parts_.judged(std::move(done).error(), parts_.vector_folder));
}

Result<std::unique_ptr<Engine::Searcher>> LocalEngine::searcher() {
  auto reader = parts_.lexical->reader();
  if (!reader) return parts_.judged(std::move(reader).error(), parts_.lexical_folder);
  return make_searcher(parts_, *std::move(reader));
}

EngineStatus LocalEngine::status() const {
  EngineStatus status;
  status.lexical_next_seq = parts_.lexical->watermark();
  status.vector_next_seq = parts_.vectors->wanted_from();
  status.chunks = parts_.lexical->chunks();
  status.degraded = parts_.vectors->degraded();
  status.absent = parts_.vectors->absent();
  status.behind = parts_.vectors->behind(parts_.reached);
  status.waiting = parts_.vectors->waiting();
  status.rebuilt = parts_.rebuilt;
  status.models = parts_.vectors->models();
  return status;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const Options& options) {
  auto engine = std::make_unique<LocalEngine>(options);
  RETURN_IF_ERROR(engine->start());
  return std::unique_ptr<Engine>(std::move(engine));
}

std::unique_ptr<Engine> Engine::over(std::unique_ptr<LexicalIndex> lexical, std::unique_ptr<VectorLanes> vectors) {
  return std::make_unique<LocalEngine>(std::move(lexical), std::move(vectors));
}

IndexFolder::IndexFolder(const std::string& root, std::string name)
    : path_(root + "/" + name), name_(std::move(name)) {}

bool IndexFolder::noted_damaged() const { return ::access((path_ + ".damaged").c_str(), F_OK) == 0; }

bool IndexFolder::note_damaged() const {
  std::error_code never;
  const auto emptied = std::filesystem::last_write_time(path_ + ".emptied", never);
  if (!never && std::filesystem::file_time_type::clock::now() - emptied < repairs_apart) return false;
  return write_file_durably(path_ + ".damaged", "").ok();
}

Status IndexFolder::empty() const {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  if (failed) return Error(Errc::unavailable, "emptying " + path_ + ": " + failed.message());
  RETURN_IF_ERROR(write_file_durably(path_ + ".emptied", ""));
  ::unlink((path_ + ".damaged").c_str());
  return success();
}

void IndexFolder::opened() {
  struct stat about {};
  if (::stat(path_.c_str(), &about) == 0) device_ = about.st_dev, inode_ = about.st_ino;
}

bool IndexFolder::is_still_there() const {
  struct stat about {};
  return ::stat(path_.c_str(), &about) == 0 && about.st_dev == device_ && about.st_ino == inode_;
}

Error EngineParts::judged(Error error, const IndexFolder& folder) const {
  if (error.code != Errc::corrupt || !in_folders || !folder.is_still_there() || folder.note_damaged()) return error;
  error.code = Errc::unavailable;
  return error;
}

Status EngineParts::check_folders() const {
  if (!in_folders) return success();
  for (const IndexFolder* folder : {&lexical_folder, &vector_folder}) {
    if (!folder->is_still_there()) return Error(Errc::corrupt, folder->path() + " was removed while in use");
  }
  return success();
}

}  // namespace muniment::retrieval
