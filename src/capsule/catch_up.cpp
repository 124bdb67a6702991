// Indexes the frames of a capsule: unpacks its indexes into a folder of its own, adds the new frames, and appends the
// packed indexes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "base/limits.hpp"
#include "capsule/index.hpp"
#include "retrieval/child/tool_child.hpp"
#include "retrieval/engine/vector_lanes.hpp"
#include "retrieval/lexical/lexical_index.hpp"
#include "retrieval/query/card.hpp"
#include "retrieval/text/document_text.hpp"
#include "retrieval/vector/packed_shard.hpp"

namespace muniment::capsule {
namespace {

using retrieval::ChunkId;
using retrieval::EngineChunk;

// As in the daemon (retrieval/corpus/model_trainer.cpp), so that both rank alike.
constexpr std::int64_t trained_passages_min = 200, trained_passages_max = 200'000, trained_growth_share = 4;
constexpr std::size_t trained_bytes_max = 256 << 20;
constexpr std::uint64_t trained_seed = 1;
constexpr std::chrono::minutes trained_patience{30};
constexpr std::size_t batch_chunks = 4'096, batch_bytes = 8 << 20;
constexpr std::uint64_t dead_bytes_min = 1 << 20;               // of earlier segments, before a capsule is written anew
constexpr std::size_t xapian_id_at = 16, xapian_id_bytes = 16;  // of a database, after its magic

// A folder that is removed with everything in it.
class ScratchFolder {
 public:
  ~ScratchFolder() {
    std::error_code never;
    if (!path_.empty()) std::filesystem::remove_all(path_, never);
  }
  // `source_bytes`: of what the indexes are made from. Small ones are made in memory, because Xapian syncs what it
  // compacts, which takes longer than all other work on a fact.
  Status make(std::uint64_t source_bytes) {
    const char* const chosen = ::getenv("TMPDIR");
    std::string path = std::string(chosen != nullptr && *chosen != '\0' ? chosen
                                   : fits_in_memory(source_bytes)       ? memory_folder
                                                                        : "/tmp") +
                       "/muniment-capsule-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return file_error("making", path, errno);
    path_ = path;
    return success();
  }
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  static constexpr const char* memory_folder = "/dev/shm";
  static bool fits_in_memory(std::uint64_t source_bytes) {
    constexpr std::uint64_t source_bytes_max = 4 << 20, growth = 16;  // indexes, their copies and the vectors
    struct statvfs space {};
    return source_bytes <= source_bytes_max && ::access(memory_folder, W_OK | X_OK) == 0 &&
           ::statvfs(memory_folder, &space) == 0 &&
           std::uint64_t{space.f_bavail} * space.f_frsize >= (source_bytes + source_bytes_max / growth) * growth;
  }

  std::string path_;
};

class Indexing {
 public:
  Indexing(CapsuleFile& file, Index& index) : file_(file), index_(index) {}

  // `from_scratch`: ignores the segments.
  Status run(bool from_scratch);
  // Appends the segments to a file with the same frames, whose offsets are `offsets`, and commits.
  Status pack(CapsuleFile& target);
  std::vector<FrameRow>& rows() { return rows_; }

 private:
  Status open(bool from_scratch);
  Status take_document(const Frame& frame);
  Status take_retraction(const Frame& frame);
  void end_current(const std::string& uri, std::int64_t number, bool retracted);
  Status flush(std::int64_t next);
  Status train_due();
  Status train(const std::string& corpus, CollectionFacts& facts);
  template <typename Visit>  // Status(const Revision&, const store::ChunkRow&, std::string_view text)
  Status each_chunk(const std::string& corpus, bool current_only, const Visit& visit);
  EngineChunk engine_chunk(const Revision& revision, const store::ChunkRow& chunk, std::string_view text) const;
  Result<Revision> revision_at(std::int64_t number);

  CapsuleFile& file_;
  Index& index_;
  ScratchFolder scratch_;
  retrieval::LexicalIndex* lexical_ = nullptr;  // of the engine
  retrieval::PackedShard* shard_ = nullptr;
  std::unique_ptr<retrieval::ModelStore> models_;
  std::unique_ptr<retrieval::Engine> engine_;
  std::vector<FrameRow> rows_;
  std::vector<DocumentKey> keys_;
  std::map<std::string, std::int64_t, std::less<>> newest_;  // URI → the current revision's frame; -1: none
  Catalogue catalogue_;
  std::int64_t first_ = 0;  // the first frame to index
  ChunkId next_chunk_ = 1;
  retrieval::EngineBatch batch_;
  std::size_t batch_bytes_ = 0;
};

Status Indexing::open(bool from_scratch) {
  std::uint64_t source = file_.end() - std::min(file_.end(), from_scratch ? 0 : file_.state().next);
  for (const Segment& one : file_.state().segments) source += one.bytes;
  RETURN_IF_ERROR(scratch_.make(source));
  const auto& segments = file_.state().segments;
  const auto find = [&](SegmentKind kind) { return std::ranges::find(segments, kind, &Segment::kind); };
  const auto words = find(SegmentKind::words), closed = find(SegmentKind::closed_words);
  const bool from_segments = !from_scratch && words != segments.end() && closed != segments.end();
  std::string_view vectors;
  if (from_segments) {
    for (const Segment& one : segments) RETURN_IF_ERROR(file_.segment(one));
    RETURN_IF_ERROR(retrieval::LexicalIndex::unpack(
        {file_.descriptor(), static_cast<std::int64_t>(words->offset), static_cast<std::int64_t>(closed->offset)},
        scratch_.at("words")));
    ASSIGN_OR_RETURN(vectors, file_.segment(SegmentKind::vectors));
    first_ = index_.indexed();
    for (std::int64_t i = 0; i < first_; ++i) rows_.push_back(index_.row(i));
    ASSIGN_OR_RETURN(const std::string_view keys, file_.segment(SegmentKind::documents));
    const auto* const known = reinterpret_cast<const DocumentKey*>(keys.data());
    keys_.assign(known, known + keys.size() / sizeof(DocumentKey));
    catalogue_ = index_.catalogue();
    if (!rows_.empty()) next_chunk_ = rows_.back().first_chunk + rows_.back().chunks;
  }
  models_ = std::make_unique<retrieval::ModelStore>(scratch_.at("models"));
  if (from_segments) {
    RETURN_IF_ERROR(models_->load());  // makes the folder
    for (const Segment& one : segments) {
      if (one.kind != SegmentKind::model) continue;
      ASSIGN_OR_RETURN(const std::string_view bytes, file_.segment(one));
      RETURN_IF_ERROR(models_->put_waiting(file_.name_of(one), bytes));
      RETURN_IF_ERROR(models_->promote(file_.name_of(one)));
    }
  }
  ASSIGN_OR_RETURN(auto lexical, retrieval::LexicalIndex::open(scratch_.at("words"), true));
  ASSIGN_OR_RETURN(auto shard, retrieval::PackedShard::open(vectors));
  lexical_ = lexical.get();
  shard_ = shard.get();
  ASSIGN_OR_RETURN(const auto stored, models_->load());
  ASSIGN_OR_RETURN(auto lanes, retrieval::VectorLanes::over(std::move(shard), *models_, stored));
  engine_ = retrieval::Engine::over(std::move(lexical), std::move(lanes));
  return success();
}

Status Indexing::run(bool from_scratch) {
  RETURN_IF_ERROR(open(from_scratch));
  const std::int64_t frames = index_.frames();
  for (std::int64_t number = first_; number < frames; ++number) {
    FrameRow row = index_.row(number);
    row.first_chunk = next_chunk_;
    row.chunks = 0;
    row.valid_to = retrieval::still_valid;
    row.retracted = 0;
    rows_.push_back(row);
    if (row.type != static_cast<std::uint32_t>(FrameType::document) &&
        row.type != static_cast<std::uint32_t>(FrameType::retraction))
      continue;
    ASSIGN_OR_RETURN(const Frame frame, index_.frame(number));
    RETURN_IF_ERROR(frame.header.type == FrameType::document ? take_document(frame) : take_retraction(frame));
    if (batch_.add.size() >= batch_chunks || batch_bytes_ >= batch_bytes) RETURN_IF_ERROR(flush(number + 1));
  }
  RETURN_IF_ERROR(flush(frames));
  std::ranges::sort(keys_, {}, [](const DocumentKey& key) { return std::pair(key.key, key.frame); });
  return train_due();
}

// The newest revision of a document that was indexed before is looked up by its key.
void Indexing::end_current(const std::string& uri, std::int64_t number, bool retracted) {
  auto known = newest_.find(uri);
  if (known == newest_.end()) {
    std::int64_t current = -1;
    for (const std::int64_t revision : first_ > 0 ? index_.revisions(uri) : std::vector<std::int64_t>()) {
      if (rows_[static_cast<std::size_t>(revision)].valid_to != retrieval::still_valid) continue;
      const auto read = index_.revision(revision);
      if (read && uri_of(read->row.corpus, read->row.document) == uri) current = revision;
    }
    known = newest_.emplace(uri, current).first;
  }
  if (known->second < 0) return;
  FrameRow& row = rows_[static_cast<std::size_t>(known->second)];
  row.valid_to = number;
  row.retracted = retracted ? 1 : 0;
  for (std::uint32_t i = 0; i < row.chunks; ++i) batch_.close.emplace_back(row.first_chunk + i, number);
  const std::string_view rest = std::string_view(uri).substr(uri.find("//") + 2);
  CollectionFacts& facts = catalogue_[std::string(rest.substr(0, rest.find('/')))];
  --facts.documents;
  facts.chunks -= row.chunks;
  facts.last = number;
  known->second = -1;
}

EngineChunk Indexing::engine_chunk(const Revision& revision, const store::ChunkRow& chunk,
                                   std::string_view text) const {
  const store::DocumentRow& row = revision.row;
  return {static_cast<ChunkId>(chunk.chunk_id),
          row.corpus,
          retrieval::index_text_of(retrieval::format_named(row.format), text),
          row.title,
          chunk.heading,
          row.language,
          retrieval::facts_of(row, {})};
}

Status Indexing::take_document(const Frame& frame) {
  ASSIGN_OR_RETURN(Revision revision, revision_of(frame));
  const std::string uri = uri_of(revision.row.corpus, revision.row.document);
  const std::int64_t number = revision.row.seq;
  end_current(uri, number, false);
  FrameRow& row = rows_.back();
  row.chunks = static_cast<std::uint32_t>(revision.chunks.size());
  if (row.chunks > std::numeric_limits<ChunkId>::max() - next_chunk_)
    return Error(Errc::too_large, "a capsule has at most 4,294,967,294 passages. Use another capsule.");
  next_chunk_ += row.chunks;
  for (store::ChunkRow& chunk : revision.chunks) {
    chunk.chunk_id = row.first_chunk + chunk.number;
    ASSIGN_OR_RETURN(const std::string_view text, text_of(revision, chunk));
    batch_.add.push_back(engine_chunk(revision, chunk, text));
    batch_bytes_ += text.size();
  }
  keys_.push_back({key_of_uri(uri), static_cast<std::uint64_t>(number)});
  newest_[uri] = number;
  CollectionFacts& facts = catalogue_[revision.row.corpus];
  ++facts.documents;
  facts.chunks += row.chunks;
  if (facts.first < 0) facts.first = number;
  facts.last = number;
  facts.tags.insert(revision.row.tags.begin(), revision.row.tags.end());
  return success();
}

Status Indexing::take_retraction(const Frame& frame) {
  const auto about = json::parse(frame.about);
  if (!about) return Error(Errc::corrupt, "frame " + std::to_string(frame.header.number) + " describes no retraction");
  end_current(about->root()["uri"].string_or(""), static_cast<std::int64_t>(frame.header.number), true);
  return success();
}

Status Indexing::flush(std::int64_t next) {
  batch_.next_seq = next;
  RETURN_IF_ERROR(engine_->index(batch_));
  batch_ = {};
  batch_bytes_ = 0;
  return success();
}

Result<Revision> Indexing::revision_at(std::int64_t number) {
  const FrameRow& row = rows_[static_cast<std::size_t>(number)];
  ASSIGN_OR_RETURN(const Frame frame, index_.frame(number));
  ASSIGN_OR_RETURN(Revision revision, revision_of(frame));
  for (store::ChunkRow& chunk : revision.chunks) chunk.chunk_id = row.first_chunk + chunk.number;
  return revision;
}

template <typename Visit>
Status Indexing::each_chunk(const std::string& corpus, bool current_only, const Visit& visit) {
  for (std::size_t number = 0; number < rows_.size(); ++number) {
    if (rows_[number].type != static_cast<std::uint32_t>(FrameType::document)) continue;
    if (current_only && rows_[number].valid_to != retrieval::still_valid) continue;
    ASSIGN_OR_RETURN(const Revision revision, revision_at(static_cast<std::int64_t>(number)));
    if (revision.row.corpus != corpus) continue;
    for (const store::ChunkRow& chunk : revision.chunks) {
      ASSIGN_OR_RETURN(const std::string_view text, text_of(revision, chunk));
      RETURN_IF_ERROR(visit(revision, chunk, text));
    }
  }
  return success();
}

Status Indexing::train_due() {
  for (auto& [corpus, facts] : catalogue_) {
    const std::int64_t passages = std::min(facts.chunks, trained_passages_max);
    const bool due = passages >= trained_passages_min &&
                     passages >= facts.trained + facts.trained / trained_growth_share && passages != facts.trained;
    if (due) RETURN_IF_ERROR(train(corpus, facts));
  }
  return success();
}

Status Indexing::train(const std::string& corpus, CollectionFacts& facts) {
  std::vector<std::string> texts;
  std::size_t bytes = 0;
  RETURN_IF_ERROR(
      each_chunk(corpus, true, [&](const Revision&, const store::ChunkRow&, std::string_view text) -> Status {
        if (bytes >= trained_bytes_max || std::ssize(texts) >= trained_passages_max) return success();
        bytes += text.size();
        texts.emplace_back(text);
        return success();
      }));
  retrieval::LsaOptions options;
  options.seed = trained_seed;
  ASSIGN_OR_RETURN(const retrieval::LsaModel model,
                   retrieval::train_lsa_apart(texts, options, std::chrono::steady_clock::now() + trained_patience));
  RETURN_IF_ERROR(engine_->set_model({corpus, model.bytes}));
  std::vector<EngineChunk> chunks;
  RETURN_IF_ERROR(
      each_chunk(corpus, false, [&](const Revision& revision, const store::ChunkRow& chunk, std::string_view text) {
        chunks.push_back(engine_chunk(revision, chunk, text));
        chunks.back().facts.valid_to = rows_[static_cast<std::size_t>(revision.row.seq)].valid_to;
        if (chunks.size() < batch_chunks) return success();
        Status embedded = engine_->embed_again(corpus, chunks, false);
        chunks.clear();
        return embedded;
      }));
  RETURN_IF_ERROR(engine_->embed_again(corpus, chunks, true));
  facts.trained = std::ssize(texts);
  return success();
}

template <typename Row>
std::string_view bytes_of(const std::vector<Row>& rows) {
  return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row)};
}

Status Indexing::pack(CapsuleFile& target) {
  std::vector<Segment> segments;
  const auto add = [&](SegmentKind kind, std::string_view name, std::string_view bytes) -> Status {
    ASSIGN_OR_RETURN(Segment segment, target.append_segment(kind, name, bytes));
    segments.push_back(segment);
    return success();
  };
  const Fd packed(::open(scratch_.at("packed").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!packed.open()) return file_error("creating", scratch_.at("packed"), errno);
  ASSIGN_OR_RETURN(const retrieval::PackedLexical words, lexical_->pack(packed.get()));
  const std::int64_t end = ::lseek(packed.get(), 0, SEEK_END);
  const auto add_words = [&](SegmentKind kind, std::int64_t from, std::int64_t to) -> Status {
    ASSIGN_OR_RETURN(std::string bytes, read_at(packed, from, static_cast<std::size_t>(to - from)));
    // A random id, which would make two equal capsules differ.
    if (bytes.size() >= xapian_id_at + xapian_id_bytes)
      bytes.replace(xapian_id_at, xapian_id_bytes, xapian_id_bytes, '\0');
    return add(kind, {}, bytes);
  };
  RETURN_IF_ERROR(add(SegmentKind::frames, {}, bytes_of(rows_)));
  RETURN_IF_ERROR(add(SegmentKind::documents, {}, bytes_of(keys_)));
  RETURN_IF_ERROR(add(SegmentKind::catalogue, {}, json_of(catalogue_)));
  RETURN_IF_ERROR(add_words(SegmentKind::words, words.live, words.history));
  RETURN_IF_ERROR(add_words(SegmentKind::closed_words, words.history, end));
  RETURN_IF_ERROR(add(SegmentKind::vectors, {}, shard_->encode()));
  ASSIGN_OR_RETURN(auto models, models_->load());
  std::ranges::sort(models, {}, &retrieval::StoredModel::corpus);
  for (const retrieval::StoredModel& model : models) {
    if (!model.waiting) RETURN_IF_ERROR(add(SegmentKind::model, model.corpus, model.bytes));
  }
  return target.commit(rows_.size(), target.end(), std::move(segments));
}

// Copies the data frames. Their headers stay the same, since the chain depends on them alone.
Status copy_frames(CapsuleFile& file, CapsuleFile& target, std::vector<FrameRow>& rows) {
  for (FrameRow& row : rows) {
    ASSIGN_OR_RETURN(const Frame frame, file.frame_at(row.offset));
    ASSIGN_OR_RETURN(const Frame copy, target.append(frame.header.type, frame.header.time_us, frame.about, frame.body));
    row.offset = copy.offset;
  }
  return success();
}

// Returns the bytes of the data frames.
Result<std::uint64_t> data_bytes(CapsuleFile& file, const std::vector<FrameRow>& rows) {
  std::uint64_t bytes = 0;
  for (const FrameRow& row : rows) {
    ASSIGN_OR_RETURN(const Frame frame, file.frame_at(row.offset, CapsuleFile::Part::header));
    bytes += frame.header.bytes();
  }
  return bytes;
}

// Gives the new file the permissions of the file that it replaces, and its owner, if this user may.
Status keep_access(const CapsuleFile& file, const CapsuleFile& made) {
  struct stat about {};
  if (::fstat(file.descriptor(), &about) != 0) return file_error("reading", file.path(), errno);
  if (::fchown(made.descriptor(), about.st_uid, about.st_gid) != 0 &&
      ::fchown(made.descriptor(), static_cast<uid_t>(-1), about.st_gid) != 0)
    about.st_mode &= ~static_cast<mode_t>(S_IRWXG);  // another group must not get its rights
  if (::fchmod(made.descriptor(), about.st_mode & 0777) != 0) return file_error("changing", made.path(), errno);
  return success();
}

Status pack_anew(Indexing& indexing, CapsuleFile& file, const std::string& target) {
  RETURN_IF_ERROR(CapsuleFile::create(target, file.header()));
  ASSIGN_OR_RETURN(const auto made, CapsuleFile::open(target, Access::write));
  RETURN_IF_ERROR(keep_access(file, *made));
  RETURN_IF_ERROR(copy_frames(file, *made, indexing.rows()));
  RETURN_IF_ERROR(indexing.pack(*made));
  if (made->state().chain == file.state().chain) return success();
  return Error(Errc::corrupt, file.path() + ": the index of the frames differs from the frames");
}

}  // namespace

Result<bool> catch_up(CapsuleFile& file, Anew anew) {
  if (anew == Anew::indexes) file.forget_segments();
  ASSIGN_OR_RETURN(const auto index, Index::open(file));
  Indexing indexing(file, *index);
  RETURN_IF_ERROR(indexing.run(anew == Anew::indexes));
  ASSIGN_OR_RETURN(const std::uint64_t data, data_bytes(file, indexing.rows()));
  std::uint64_t live = data;
  for (const Segment& segment : file.state().segments) live += segment.bytes;
  const std::uint64_t dead = file.end() > live ? file.end() - live : 0;
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::canonical(file.path(), failed);  // a link to it stays one
  if (failed) return file_error("finding", file.path(), failed.value());
  const bool may_replace = ::access(path.parent_path().c_str(), W_OK) == 0;
  if (anew == Anew::nothing && (dead <= std::max(live, dead_bytes_min) || !may_replace)) {
    RETURN_IF_ERROR(indexing.pack(file));
    return false;
  }
  const std::string target = path.string() + ".anew";
  ::unlink(target.c_str());  // of an interrupted attempt; this process has the lock
  Status packed = pack_anew(indexing, file, target);
  if (packed && ::rename(target.c_str(), path.c_str()) != 0) packed = file_error("replacing", path.string(), errno);
  if (!packed) ::unlink(target.c_str());
  if (packed) packed = sync_folder_of(path);
  if (!packed) return std::move(packed).error();
  return true;
}

namespace {

Status write_frames(const std::string& path, const std::function<Status(CapsuleFile&)>& fill) {
  ASSIGN_OR_RETURN(const auto file, CapsuleFile::open(path, Access::write));
  const std::uint64_t empty = file->end();
  RETURN_IF_ERROR(fill(*file));
  if (file->end() == empty) return success();
  RETURN_IF_ERROR(file->commit());
  auto indexed = catch_up(*file);
  return indexed ? success() : Status(std::move(indexed).error());
}

}  // namespace

Status write_new(const std::string& target, const FileHeader& header, const std::function<Status(CapsuleFile&)>& fill) {
  RETURN_IF_ERROR(check_new(target));
  const std::string draft = name_of_draft(target);
  RETURN_IF_ERROR(CapsuleFile::create(draft, header));
  return finish_draft(draft, target, write_frames(draft, fill));
}

}  // namespace muniment::capsule
