// Decides when to train a model, trains it in a child, and records it.
#include "retrieval/corpus/model_trainer.hpp"

#include <algorithm>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "evidence/halt_journal.hpp"
#include "retrieval/child/tool_child.hpp"
#include "retrieval/query/log_source.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::retrieval {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t passages_min = 200;      // fewer passages have no distinguishable topics
constexpr std::int64_t growth_share = 4;        // a new epoch is trained after growth by a quarter
constexpr std::int64_t passages_max = 200'000;  // newest passages of a corpus; more hardly change a model
constexpr std::size_t page_passages = 2'000;
constexpr std::size_t texts_bytes_max = 256 << 20;
constexpr std::uint64_t training_seed = 1;
constexpr milliseconds settle{2'000};  // a stream of documents causes one training:
constexpr std::chrono::minutes settle_max{
    10};  // the wait ends when the indexes have it and nothing arrived for `settle`, or after this time
constexpr std::chrono::minutes training_patience{30};
constexpr std::chrono::seconds commit_patience{60};

}  // namespace

std::optional<Epoch> epoch_of(const events::Event& event) {
  if (!event.body) return std::nullopt;
  const auto body = json::parse(*event.body);
  if (!body) return std::nullopt;
  const json::Value root = body->root();
  const auto id = parse_uuid(root["artifact_id"].string_or(""));
  const auto hash = hash_from_hex(root["hash"].string_or(""));
  if (!id || !hash) return std::nullopt;
  return Epoch{root["corpus"].string_or(""), root["embedder"].string_or(""), *id, *hash,
               root["documents"].as_int().value_or(0)};
}

ModelTrainer::ModelTrainer(store::LogPlace place, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
                           DocumentFollower& documents, store::ArtifactFiles& files)
    : clock_(clock),
      appender_(appender),
      runs_(runs),
      documents_(documents),
      files_(files),
      reader_(std::move(place)) {}

void ModelTrainer::start() {
  worker_.start("trainer", [this] { follow(); });
}

void ModelTrainer::wake() {
  {
    const auto lock = worker_.lock();
    woken_ = true;
  }
  worker_.notify();
}

void ModelTrainer::hold(bool held) {
  const auto lock = worker_.lock();
  held_ = held;
}

std::vector<Epoch> ModelTrainer::epochs() const {
  const auto lock = worker_.lock();
  std::vector<Epoch> out;
  for (const auto& [corpus, epoch] : epochs_) out.push_back(epoch);
  return out;
}

void ModelTrainer::follow() {
  bool read = false;
  while (true) {
    {
      auto lock = worker_.lock();
      if (!worker_.wait(lock, [this] { return woken_; })) return;
      const auto end = clock_.monotonic() + settle_max;
      while (read && (woken_ || held_) && clock_.monotonic() < end) {
        woken_ = false;
        if (!worker_.wait_until(lock, std::chrono::steady_clock::now() + settle, [this] { return woken_; })) return;
      }
      woken_ = false;
    }
    Status done = read ? success() : read_epochs();
    read = read || done;
    if (done) done = train_due();
    if (!done) log_warning("a model was not trained", {{"error", done.error().message}});
    if (!done && is_transient(done.error().code)) wake();  // retried after the next quiet period
  }
}

Status ModelTrainer::read_epochs() {
  store::EventFilter trained;
  trained.run_no = 0;
  trained.types = {"embedder.trained"};
  std::map<std::string, Epoch> newest;
  while (true) {
    ASSIGN_OR_RETURN(const auto page, reader_.events(trained, limits::page_items_max));
    for (const events::Event& event : page) {
      if (auto epoch = epoch_of(event)) newest.insert_or_assign(epoch->corpus, *epoch);
    }
    if (page.size() < limits::page_items_max) break;
    trained.from_seq = page.back().seq + 1;
  }
  {
    const auto lock = worker_.lock();
    epochs_ = std::move(newest);
  }
  version_.fetch_add(1, std::memory_order_acq_rel);
  return success();
}

Status ModelTrainer::train_due() {
  ASSIGN_OR_RETURN(const auto corpora, reader_.corpora(std::nullopt, true));
  for (const store::CorpusRow& corpus : corpora) {
    std::int64_t trained_on = 0;
    {
      const auto lock = worker_.lock();
      const auto known = epochs_.find(corpus.corpus);
      if (known != epochs_.end()) trained_on = known->second.passages;
    }
    const std::int64_t passages = std::min(corpus.chunks, passages_max);
    if (passages < passages_min || passages < trained_on + trained_on / growth_share) continue;
    if (trained_on > 0 && passages == trained_on) continue;
    if (worker_.stopping()) return success();
    RETURN_IF_ERROR(train(corpus));
  }
  return success();
}

Status ModelTrainer::train(const store::CorpusRow& corpus) {
  const std::int64_t watermark = documents_.next_seq();
  std::vector<std::string> texts;
  std::size_t bytes = 0;
  for (std::int64_t after = 0; bytes < texts_bytes_max && std::ssize(texts) < passages_max;) {
    ASSIGN_OR_RETURN(const auto page, reader_.chunks_of_corpus(corpus.corpus, after, watermark, true, page_passages));
    for (const store::ChunkInDocument& item : page) {
      auto text = read_passage(item, files_);
      if (!text && text.error().code == Errc::unavailable) return std::move(text).error();
      if (!text) continue;  // damaged: the indexes skip it too
      bytes += text->size();
      texts.push_back(*std::move(text));
    }
    if (page.size() < page_passages) break;
    after = page.back().chunk.chunk_id;
    if (worker_.stopping()) return success();
  }
  LsaOptions options;
  options.seed = training_seed;
  ASSIGN_OR_RETURN(const LsaModel model, train_lsa_apart(texts, options, clock_.monotonic() + training_patience));
  ASSIGN_OR_RETURN(const auto embedder, open_lsa(model.bytes));
  if (worker_.stopping()) return success();
  return record(corpus.corpus, embedder->identity().text(), embedder->identity().dimension, model.bytes,
                model.vocabulary_hash, std::ssize(texts), watermark);
}

// Records the model's artifact and its description in one commit.
Status ModelTrainer::record(const std::string& corpus, const std::string& identity, std::size_t dimension,
                            const std::string& model, const std::string& vocabulary_hash, std::int64_t passages,
                            std::int64_t watermark) {
  const std::string step_id = "corpus:" + corpus;
  const std::string mime_type = "application/octet-stream";
  ASSIGN_OR_RETURN(const store::StoredFile file,
                   files_.store(model, log_run_id, step_id, make_uuid_v7(clock_.now()), mime_type));
  const store::ArtifactRow row = store::artifact_row(file, log_run_id, step_id, mime_type, "{}");
  json::Writer body;
  body.begin_object()
      .member("corpus", corpus)
      .member("embedder", identity)
      .member("artifact_id", file.artifact_id.text());
  body.member("hash", to_hex(file.hash))
      .member("dimensions", dimension)
      .member("documents", passages)
      .member("watermark", watermark);
  body.member("vocabulary_hash", vocabulary_hash).member("seed", static_cast<std::int64_t>(training_seed)).end_object();
  const auto log = runs_.find(log_run_id);
  store::AppendRequest request;
  request.actor = events::daemon_actor;
  request.events.push_back(evidence::daemon_event(log, "artifact.stored", store::artifact_stored_body(row),
                                                  make_uuid_v7(clock_.now()), true));
  request.events.push_back(
      evidence::daemon_event(log, "embedder.trained", std::move(body).text(), make_uuid_v7(clock_.now()), true));
  request.rows.push_back({0, row});
  auto receipts = store::append_and_wait(appender_, std::move(request), commit_patience);
  if (!receipts) {
    // The outcome is unknown otherwise. The next start removes unused files.
    if (!is_transient(receipts.error().code)) files_.abandon(file);
    return std::move(receipts).error();
  }
  files_.committed(file.artifact_id);
  {
    const auto lock = worker_.lock();
    epochs_.insert_or_assign(corpus, Epoch{corpus, identity, file.artifact_id, file.hash, passages});
  }
  version_.fetch_add(1, std::memory_order_acq_rel);
  return success();
}

Result<EngineModel> ModelTrainer::model(const Epoch& epoch, store::Reader& reader) const {
  ASSIGN_OR_RETURN(const auto row, reader.artifact(epoch.artifact_id));
  if (!row)
    return Error(Errc::not_found,
                 "no artifact " + epoch.artifact_id.text() + ", which holds the model of " + epoch.corpus);
  if (row->hash != epoch.hash)
    return Error(Errc::corrupt, row->path + " is not the model of " + epoch.corpus + " that was trained");
  ASSIGN_OR_RETURN(std::string bytes, files_.read(store::file_of(*row), 0, row->size_bytes));
  return EngineModel{epoch.corpus, std::move(bytes)};
}

}  // namespace muniment::retrieval
