// Sends changed documents and models to the search engine.
#include "retrieval/corpus/indexer.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/log.hpp"
#include "base/metrics.hpp"
#include "retrieval/child/search/search_client.hpp"
#include "retrieval/corpus/model_trainer.hpp"
#include "retrieval/query/card.hpp"
#include "retrieval/query/log_source.hpp"
#include "retrieval/text/document_text.hpp"
#include "store/read/document_lives.hpp"
#include "store/read/recorded.hpp"

namespace muniment::retrieval {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t batch_documents_max = 1'024;
constexpr std::int64_t batch_chunks_max = 4'096;
constexpr std::int64_t batch_bytes_max = 8 << 20;
constexpr std::size_t refill_chunks = 1'024;
constexpr milliseconds pause_when_away{500};
constexpr milliseconds look_at_rest{5'000};  // interval for detecting that the child was restarted and started over
constexpr milliseconds look_at_lag_every{1'000};
constexpr milliseconds status_patience{60'000};

}  // namespace

Indexer::Indexer(store::LogPlace place, DocumentFollower& documents, store::ArtifactFiles& files, SearchClient& search,
                 ModelTrainer& trainer)
    : documents_(documents), files_(files), search_(search), trainer_(trainer), reader_(std::move(place)) {}

void Indexer::start() {
  worker_.start("indexer", [this] { follow(); });
}

std::string Indexer::problem() const {
  const auto lock = worker_.lock();
  return problem_;
}

std::vector<std::string> Indexer::absent() const {
  const auto lock = worker_.lock();
  return absent_;
}

std::vector<std::string> Indexer::behind() const {
  const auto lock = worker_.lock();
  return behind_;
}

std::vector<std::string> Indexer::degraded() const {
  const auto lock = worker_.lock();
  return degraded_;
}

void Indexer::set_problem(std::string text) {
  const auto lock = worker_.lock();
  if (!text.empty() && problem_ != text) log_warning("the search indexes make no progress", {{"error", text}});
  problem_ = std::move(text);
}

void Indexer::follow() {
  while (true) {
    const Result<bool> stepped = step();
    if (!stepped || !*stepped) trainer_.hold(false);
    set_problem(stepped ? std::string() : stepped.error().message);
    if (stepped) look_at_lag();
    worker_.notify();  // after the lock was released, so that every waiter that checked earlier is notified
    if (!stepped) next_seq_.store(-1, std::memory_order_release);
    if (worker_.stopping()) return;
    if (!stepped) {
      auto lock = worker_.lock();
      worker_.pause(lock, pause_when_away);
    } else if (!*stepped) {
      documents_.wait_for(next_seq_.load() + 1,
                          std::chrono::steady_clock::now() + (behind().empty() ? look_at_rest : look_at_lag_every),
                          false);
    }
  }
}

Status Indexer::wait_for(std::int64_t seq, Deadline deadline) {
  auto lock = worker_.lock();
  worker_.wait_until(lock, deadline, [&] { return next_seq() >= seq; });
  if (next_seq() >= seq) return success();
  return Error(Errc::deadline_exceeded, "the search indexes are at " + std::to_string(next_seq()) + " of " +
                                            std::to_string(seq) +
                                            (problem_.empty() ? std::string(".") : ": " + problem_));
}

// Returns the position of both indexes. An index skips what it already has.
Result<std::int64_t> Indexer::watermark() {
  ASSIGN_OR_RETURN(const EngineStatus status, search_.status(std::chrono::steady_clock::now() + status_patience));
  {
    const auto lock = worker_.lock();
    degraded_ = status.degraded;
    absent_ = status.absent;
    for (const std::string& missing : search_.health().degraded) degraded_.push_back("the sandbox lacks " + missing);
  }
  passages_.store(status.chunks, std::memory_order_release);
  engine_starts_.fetch_add(1, std::memory_order_acq_rel);
  engine_models_ = status.models;
  models_given_ = -1;
  refill_.reset();
  for (const std::string& name : status.rebuilt)
    log_warning("a damaged index is being filled again", {{"index", name}});
  return std::min(status.lexical_next_seq, status.vector_next_seq);
}

void Indexer::look_at_lag() {
  const Monotonic now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + look_at_lag_every;
  auto status = search_.status(now + status_patience);
  metrics::process().search_waiting_chunks.set(status ? status->waiting : 0);
  if (status) passages_.store(status->chunks, std::memory_order_release);
  const auto lock = worker_.lock();
  behind_ = status ? std::move(status->behind) : std::vector<std::string>();
}

Result<bool> Indexer::step() {
  const std::int64_t restarts = search_.health().restarts;
  if (next_seq_.load() < 0 || restarts != restarts_) {
    restarts_ = restarts;
    counted_ = false;
    ASSIGN_OR_RETURN(const std::int64_t from, watermark());
    given_ = from;
    next_seq_.store(from, std::memory_order_release);
    next_change_.store(from, std::memory_order_release);
  }
  const std::int64_t from = next_seq_.load();
  const std::int64_t end = documents_.next_seq();
  if (!counted_ && from >= end) RETURN_IF_ERROR(count_passages(end));
  if (from >= end) return give_models();
  ASSIGN_OR_RETURN(EngineBatch batch, read_batch(from, end));
  if (!batch.add.empty() || !batch.close.empty() || !batch.remove.empty()) {
    batch.from_seq = given_;
    trainer_.hold(true);
    RETURN_IF_ERROR(search_.index(batch));
    next_look_ = Monotonic();
    look_at_lag();  // whoever waits for this batch may ask for the lag
    given_ = batch.next_seq;
    counted_ = false;
    next_change_.store(batch.next_seq, std::memory_order_release);
    trainer_.wake();
  }
  if (!counted_ && batch.next_seq >= end) RETURN_IF_ERROR(count_passages(batch.next_seq));
  next_seq_.store(batch.next_seq, std::memory_order_release);
  return true;
}

// The indexes include everything before `next_seq`. Counts again later if the documents have changed since.
Status Indexer::count_passages(std::int64_t next_seq) {
  const auto& recorded = reader_.place().recorded;
  const store::Recorded::Facts* const facts = recorded ? recorded->facts() : nullptr;
  if (facts == nullptr || !facts->lives || facts->lives->next_seq() != next_seq) return success();
  const std::int64_t passages = facts->lives->passages();
  ASSIGN_OR_RETURN(const EngineStatus status, search_.status(std::chrono::steady_clock::now() + status_patience));
  if (facts->lives->next_seq() != next_seq) return success();
  if (passages != status.chunks)
    log_warning("the search indexes differ from the log",
                {{"passages_indexed", std::to_string(status.chunks)}, {"passages_recorded", std::to_string(passages)}});
  differing_.store(std::abs(passages - status.chunks), std::memory_order_release);
  counted_ = true;
  return success();
}

// Sends the newest model of each corpus if the engine has a different one or none, and then the texts for it in parts.
// New documents are indexed between the parts.
Result<bool> Indexer::give_models() {
  if (refill_) {
    RETURN_IF_ERROR(fill_model());
    return true;
  }
  const std::int64_t version = trainer_.version();
  if (version == models_given_) return false;
  for (const Epoch& epoch : trainer_.epochs()) {
    const auto same = [&](const EngineModelStatus& model) {
      return model.corpus == epoch.corpus && model.identity == epoch.embedder && model.filled;
    };
    if (std::ranges::any_of(engine_models_, same)) continue;
    auto model = trainer_.model(epoch, reader_);
    if (!model && is_transient(model.error().code)) return std::move(model).error();
    if (!model) {
      log_warning("a model is not available; its corpus is searched without it",
                  {{"corpus", epoch.corpus}, {"error", model.error().message}});
      continue;
    }
    RETURN_IF_ERROR(search_.set_model(*model));
    std::erase_if(engine_models_, [&](const EngineModelStatus& known) { return known.corpus == epoch.corpus; });
    engine_models_.push_back({epoch.corpus, epoch.embedder, true});
    refill_ = Refill{epoch.corpus};
    return true;
  }
  models_given_ = version;
  return false;
}

Status Indexer::fill_model() {
  ASSIGN_OR_RETURN(const auto page,
                   reader_.chunks_of_corpus(refill_->corpus, refill_->after, next_seq_.load(), false, refill_chunks));
  std::vector<EngineChunk> chunks;
  for (const store::ChunkInDocument& item : page) {
    ASSIGN_OR_RETURN(auto chunk, engine_chunk(item));
    if (!chunk) continue;
    const auto& valid_to = item.document.valid_to;
    if (valid_to && *valid_to < next_seq_.load()) chunk->facts.valid_to = *valid_to;
    chunks.push_back(*std::move(chunk));
  }
  const bool last = page.size() < refill_chunks;
  RETURN_IF_ERROR(search_.embed_again(refill_->corpus, chunks, last));
  if (last) {
    refill_.reset();
    // The new model finds other neighbours, so earlier answers are outdated.
    next_change_.fetch_add(1, std::memory_order_acq_rel);
  } else {
    refill_->after = page.back().chunk.chunk_id;
  }
  return success();
}

// Reads the changes from `from` on, as many as fit a batch.
Result<EngineBatch> Indexer::read_batch(std::int64_t from, std::int64_t end) {
  ASSIGN_OR_RETURN(std::vector<store::DocumentRow> added, reader_.documents_added({from, end}, batch_documents_max));
  EngineBatch batch;
  batch.next_seq = added.size() < batch_documents_max ? end : added.back().seq + 1;
  std::int64_t chunks = 0, bytes = 0;
  for (std::size_t i = 0; i < added.size(); ++i) {
    chunks += added[i].chunks;
    bytes += added[i].size_bytes;
    if (i == 0 || (chunks <= batch_chunks_max && bytes <= batch_bytes_max)) continue;
    batch.next_seq = added[i].seq;
    added.resize(i);
    break;
  }
  ASSIGN_OR_RETURN(const auto ended, reader_.documents_ended({from, batch.next_seq}));
  for (const store::DocumentRow& row : ended) {
    const bool removed = row.removed_at && *row.removed_at < batch.next_seq;
    for (std::int64_t id = row.first_chunk; id < row.first_chunk + row.chunks; ++id) {
      if (removed) {
        batch.remove.push_back(static_cast<ChunkId>(id));
      } else if (row.valid_to && *row.valid_to < batch.next_seq) {
        batch.close.emplace_back(static_cast<ChunkId>(id), *row.valid_to);
      }
    }
  }
  std::erase_if(added, [](const store::DocumentRow& row) { return row.removed_at.has_value(); });
  RETURN_IF_ERROR(add_texts(added, batch));
  return batch;
}

// Skips a passage whose bytes do not match their hash: the daemon would not return it anyway.
Status Indexer::add_texts(const std::vector<store::DocumentRow>& rows, EngineBatch& batch) {
  std::vector<std::int64_t> seqs;
  for (const store::DocumentRow& row : rows) seqs.push_back(row.seq);
  if (seqs.empty()) return success();
  ASSIGN_OR_RETURN(const auto chunks, reader_.chunks_of_documents(seqs));
  for (const store::ChunkInDocument& item : chunks) {
    ASSIGN_OR_RETURN(auto chunk, engine_chunk(item));
    if (chunk) batch.add.push_back(*std::move(chunk));
  }
  return success();
}

// Returns nullopt if its bytes differ from those that were ingested.
Result<std::optional<EngineChunk>> Indexer::engine_chunk(const store::ChunkInDocument& item) {
  const store::DocumentRow& document = item.document;
  if (!document.of_run() && !owners_.contains(document.corpus)) {
    ASSIGN_OR_RETURN(const auto corpus, reader_.corpus(document.corpus));
    owners_[document.corpus] = corpus ? corpus->owner : std::string();
  }
  auto text = read_passage(item, files_);
  if (!text && text.error().code == Errc::unavailable) return std::move(text).error();
  if (!text) {
    log_warning("a passage is not indexed: its bytes differ from those that were ingested",
                {{"corpus", document.corpus}, {"document", document.document}, {"path", item.path}});
    return std::optional<EngineChunk>();
  }
  EngineChunk chunk;
  chunk.id = static_cast<ChunkId>(item.chunk.chunk_id);
  chunk.corpus = document.corpus;
  chunk.text = index_text_of(format_named(document.format), *text);
  chunk.title = document.title;
  chunk.heading = item.chunk.heading;
  chunk.language = document.language;
  chunk.facts = facts_of(document, document.owner ? *document.owner : owners_[document.corpus]);
  return std::optional<EngineChunk>(std::move(chunk));
}

}  // namespace muniment::retrieval
