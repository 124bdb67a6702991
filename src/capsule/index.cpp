// Reads the indexes of a capsule.
#include "capsule/index.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json/json.hpp"
#include "base/json/json_lists.hpp"
#include "base/limits.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/corpus/ingest.hpp"
#include "retrieval/engine/vector_lanes.hpp"
#include "retrieval/lexical/lexical_index.hpp"
#include "retrieval/vector/packed_shard.hpp"
#include "store/read/document_row.hpp"

namespace muniment::capsule {
namespace {

// Chunks that repeat a text would make a small frame a large index.
constexpr std::int64_t chunk_bytes_per_text_byte = 2;

Error bad_index(std::string_view what) {
  return Error(Errc::corrupt, "the " + std::string(what) +
                                  " of the capsule are damaged. Index it anew: muniment capsule compact FILE");
}

template <typename Row>
Result<std::span<const Row>> rows_in(CapsuleFile& file, SegmentKind kind) {
  ASSIGN_OR_RETURN(const std::string_view bytes, file.segment(kind));
  if (bytes.size() % sizeof(Row) != 0) return bad_index("places of frames");
  return std::span<const Row>(reinterpret_cast<const Row*>(bytes.data()), bytes.size() / sizeof(Row));
}

}  // namespace

std::string uri_of(std::string_view corpus, std::string_view document) {
  return evidence::document_uri(corpus, document);
}

std::uint64_t key_of_uri(std::string_view uri) {
  std::uint64_t key = 0;
  std::memcpy(&key, sha256(uri).data(), sizeof key);
  return key;
}

Result<Revision> revision_of(const Frame& frame) {
  const Error bad(Errc::corrupt, "frame " + std::to_string(frame.header.number) + " describes no document");
  if (frame.header.type != FrameType::document) return bad;
  const auto about = json::parse(frame.about);
  if (!about) return bad;
  events::Event event;
  event.seq = static_cast<std::int64_t>(frame.header.number);
  event.recorded_at = Time{frame.header.time_us};
  store::Revised revised = store::revised_by(event, about->root(), {});
  Revision out{std::move(revised.row), std::move(revised.chunks), {}, {}};
  const auto size = static_cast<std::uint64_t>(out.row.size_bytes);
  if (out.row.size_bytes < 0 || size > frame.body.size() || out.chunks.size() > limits::chunks_per_document_max ||
      out.row.corpus.empty() || out.row.document.empty() ||
      about->root()["uri"].string_or("") != uri_of(out.row.corpus, out.row.document))
    return bad;
  out.bytes = frame.body.substr(0, size);
  out.text = size < frame.body.size() ? frame.body.substr(size) : out.bytes;
  out.row.chunks = std::ssize(out.chunks);
  std::int64_t start = 0, bytes = 0;
  for (const store::ChunkRow& chunk : out.chunks) {
    if (chunk.start_byte < start || chunk.start_byte > chunk.end_byte || chunk.end_byte > std::ssize(out.text))
      return bad;
    start = chunk.start_byte;
    bytes += chunk.end_byte - start;
  }
  if (bytes > chunk_bytes_per_text_byte * std::ssize(out.text)) return bad;
  return out;
}

Result<std::string_view> text_of(const Revision& revision, const store::ChunkRow& chunk) {
  const std::string_view text = revision.text.substr(static_cast<std::size_t>(chunk.start_byte),
                                                     static_cast<std::size_t>(chunk.end_byte - chunk.start_byte));
  if (sha256(text) == chunk.hash) return text;
  return Error(Errc::corrupt, "a passage of " + uri_of(revision.row.corpus, revision.row.document) +
                                  " differs from the hash that was recorded at ingestion");
}

Result<Catalogue> catalogue_of(std::string_view text) {
  Catalogue out;
  if (text.empty()) return out;
  const auto parsed = json::parse(text);
  if (!parsed) return bad_index("collections");
  for (const json::Value one : parsed->root()) {
    CollectionFacts& facts = out[one.key()];
    facts.documents = one["documents"].as_int().value_or(0);
    facts.chunks = one["chunks"].as_int().value_or(0);
    facts.trained = one["trained"].as_int().value_or(0);
    facts.first = one["first"].as_int().value_or(-1);
    facts.last = one["last"].as_int().value_or(-1);
    for (std::string& tag : strings_of(one["tags"])) facts.tags.insert(std::move(tag));
  }
  return out;
}

std::string json_of(const Catalogue& catalogue) {
  json::Writer out;
  out.begin_object();
  for (const auto& [name, facts] : catalogue) {
    out.key(name).begin_object().member("documents", facts.documents).member("chunks", facts.chunks);
    out.member("trained", facts.trained).member("first", facts.first).member("last", facts.last);
    out.member("tags", std::vector<std::string>(facts.tags.begin(), facts.tags.end())).end_object();
  }
  return std::move(out.end_object()).text();
}

Result<std::unique_ptr<Index>> Index::open(CapsuleFile& file) {
  std::unique_ptr<Index> index(new Index(file));
  RETURN_IF_ERROR(index->read_segments());
  RETURN_IF_ERROR(index->read_later());
  return index;
}

Status Index::read_segments() {
  ASSIGN_OR_RETURN(rows_, rows_in<FrameRow>(file_, SegmentKind::frames));
  ASSIGN_OR_RETURN(keys_, rows_in<DocumentKey>(file_, SegmentKind::documents));
  if (rows_.size() != file_.state().indexed) return bad_index("places of frames");
  const auto in_order = [](const FrameRow& a, const FrameRow& b) {
    return a.first_chunk > b.first_chunk || a.time_us > b.time_us || a.offset >= b.offset;
  };
  if (std::ranges::adjacent_find(rows_, in_order) != rows_.end()) return bad_index("places of frames");
  for (const DocumentKey& key : keys_) {
    if (key.frame >= rows_.size()) return bad_index("places of documents");
  }
  ASSIGN_OR_RETURN(const std::string_view collections, file_.segment(SegmentKind::catalogue));
  ASSIGN_OR_RETURN(catalogue_, catalogue_of(collections));
  return success();
}

Status Index::read_later() {
  Hash chain = sha256(encode(file_.header()));
  if (!rows_.empty()) {
    ASSIGN_OR_RETURN(const Frame last, file_.frame_at(rows_.back().offset, CapsuleFile::Part::header));
    chain = last.header.chain;
  }
  for (std::uint64_t at = file_.state().next; at < file_.end();) {
    ASSIGN_OR_RETURN(const Frame frame, file_.frame_at(at, CapsuleFile::Part::header));
    if (is_data(frame.header.type) && frame.header.number >= file_.state().indexed) {
      chain = next_chain(chain, frame.header);
      if (static_cast<std::int64_t>(frame.header.number) != frames() || frame.header.chain != chain)
        return Error(Errc::corrupt, file_.path() + ": frame " + std::to_string(frames()) + " at byte " +
                                        std::to_string(at) + " is damaged");
      note_appended(frame);
    }
    at += frame.header.bytes();
  }
  // Otherwise the rows or the newest commit are of other frames.
  if (frames() == static_cast<std::int64_t>(file_.frames()) && chain == file_.chain()) return success();
  return bad_index("places of frames");
}

Result<Frame> Index::frame(std::int64_t number) const {
  const FrameRow& place = row(number);
  for (const Segment& one : file_.state().segments) {
    if (place.offset >= one.offset && place.offset < one.offset + one.bytes) return bad_index("places of frames");
  }
  Hash before = sha256(encode(file_.header())), after = file_.chain();
  ASSIGN_OR_RETURN(const Frame found, file_.frame_at(place.offset));
  if (number > 0) {
    ASSIGN_OR_RETURN(const Frame other, file_.frame_at(row(number - 1).offset, CapsuleFile::Part::header));
    before = other.header.chain;
  }
  Hash chain = next_chain(before, found.header);
  bool follows = found.header.chain == chain;
  if (number + 1 < frames()) {
    ASSIGN_OR_RETURN(const Frame other, file_.frame_at(row(number + 1).offset, CapsuleFile::Part::header));
    chain = next_chain(chain, other.header);
    after = other.header.chain;
  }
  follows = follows && chain == after;
  if (follows && static_cast<std::int64_t>(found.header.number) == number && found.header.time_us == place.time_us &&
      static_cast<std::uint32_t>(found.header.type) == place.type)
    return found;
  return bad_index("places of frames");
}

void Index::note_appended(const Frame& frame) {
  FrameRow row;
  row.offset = frame.offset;
  row.time_us = frame.header.time_us;
  row.type = static_cast<std::uint32_t>(frame.header.type);
  later_.push_back(row);
  if (frame.header.type == FrameType::document || frame.header.type == FrameType::retraction) ++unindexed_documents_;
}

std::optional<std::int64_t> Index::frame_of_chunk(retrieval::ChunkId chunk) const {
  auto row = std::ranges::upper_bound(rows_, chunk, {}, &FrameRow::first_chunk);
  while (row != rows_.begin()) {
    --row;
    if (row->chunks > 0 && chunk - row->first_chunk < row->chunks) return row - rows_.begin();
    if (row->first_chunk < chunk && row->chunks > 0) break;
  }
  return std::nullopt;
}

std::vector<std::int64_t> Index::revisions(std::string_view uri) const {
  std::vector<std::int64_t> out;
  const auto wanted = key_of_uri(uri);
  const auto first = std::ranges::lower_bound(keys_, wanted, {}, &DocumentKey::key);
  const auto last = std::ranges::upper_bound(keys_, wanted, {}, &DocumentKey::key);
  for (auto key = first; key != last; ++key) out.push_back(static_cast<std::int64_t>(key->frame));
  return out;
}

std::int64_t Index::frames_until(std::int64_t time_us) const {
  const auto after = [&](const auto& rows) {
    return std::ranges::upper_bound(rows, time_us, {}, &FrameRow::time_us) - rows.begin();
  };
  const std::int64_t early = after(rows_);
  return early < std::ssize(rows_) ? early : early + after(later_);
}

Result<Revision> Index::revision(std::int64_t number) const {
  const FrameRow& place = row(number);
  ASSIGN_OR_RETURN(const Frame found, frame(number));
  ASSIGN_OR_RETURN(Revision out, revision_of(found));
  if (out.row.chunks != place.chunks) return bad_index("places of documents");
  out.row.first_chunk = place.first_chunk;
  for (store::ChunkRow& chunk : out.chunks) chunk.chunk_id = place.first_chunk + chunk.number;
  if (place.valid_to != retrieval::still_valid) {
    out.row.valid_to = place.valid_to;
    out.row.ended_by = place.retracted != 0 ? "retracted" : "revised";
  }
  return out;
}

Result<retrieval::Engine*> Index::engine() {
  if (engine_) return engine_.get();
  const auto place_of = [&](SegmentKind kind) {
    const auto found = std::ranges::find(file_.state().segments, kind, &Segment::kind);
    return found == file_.state().segments.end() ? 0 : static_cast<std::int64_t>(found->offset);
  };
  ASSIGN_OR_RETURN(const std::string_view words, file_.segment(SegmentKind::words));
  ASSIGN_OR_RETURN(const std::string_view closed, file_.segment(SegmentKind::closed_words));
  ASSIGN_OR_RETURN(const std::string_view vectors, file_.segment(SegmentKind::vectors));
  if (words.empty() || closed.empty()) return Error(Errc::not_found, "nothing is indexed in the capsule");
  ASSIGN_OR_RETURN(auto lexical, retrieval::LexicalIndex::open_packed({file_.descriptor(), place_of(SegmentKind::words),
                                                                       place_of(SegmentKind::closed_words)}));
  ASSIGN_OR_RETURN(auto shard, retrieval::PackedShard::open(vectors));
  std::vector<retrieval::StoredModel> models;
  for (const Segment& one : file_.state().segments) {
    if (one.kind != SegmentKind::model) continue;
    ASSIGN_OR_RETURN(const std::string_view bytes, file_.segment(one));
    models.push_back({std::string(file_.name_of(one)), std::string(bytes), false});
  }
  ASSIGN_OR_RETURN(auto lanes,
                   retrieval::VectorLanes::over(std::move(shard), retrieval::ModelStore(std::string()), models));
  engine_ = retrieval::Engine::over(std::move(lexical), std::move(lanes));
  return engine_.get();
}

Result<retrieval::Engine::Searcher*> Index::searcher() {
  if (!searcher_) {
    ASSIGN_OR_RETURN(retrieval::Engine* const opened, engine());
    ASSIGN_OR_RETURN(searcher_, opened->searcher());
  }
  return searcher_.get();
}

}  // namespace muniment::capsule
