#include "store/read/chunk_rows.hpp"

namespace muniment::store {
namespace {

std::size_t bytes_of(const DocumentRow& row) {
  std::size_t bytes = 2 * sizeof(ChunkInDocument);  // includes an estimate for the indexes
  for (const std::string* text : {&row.corpus, &row.document, &row.title, &row.source, &row.mime_type})
    bytes += 2 * text->capacity();
  for (const auto* list : {&row.tags, &row.sources}) {
    for (const std::string& text : *list) bytes += sizeof text + text.capacity();
  }
  return bytes;
}

std::string key_of(const Citation& citation) {
  constexpr std::string_view end("\0", 1);
  std::string key = citation.corpus;
  return key.append(end)
      .append(citation.document)
      .append(end)
      .append(citation.revision)
      .append(end)
      .append(std::to_string(citation.number));
}

}  // namespace

Result<std::unordered_map<std::int64_t, ChunkRows::Row>> ChunkRows::read(Reader& reader,
                                                                         const std::vector<std::int64_t>& ids) {
  std::unordered_map<std::int64_t, Row> rows;
  std::vector<std::int64_t> missing;
  std::uint64_t changes = 0;
  {
    const std::lock_guard lock(mutex_);
    changes = changes_;
    for (const std::int64_t id : ids) {
      if (Row known = find<Row>(std::to_string(id))) {
        rows.emplace(id, std::move(known));
      } else {
        missing.push_back(id);
      }
    }
  }
  if (missing.empty()) return rows;
  ASSIGN_OR_RETURN(auto read, reader.chunks(missing));
  const std::lock_guard lock(mutex_);
  for (ChunkInDocument& item : read) {
    const std::int64_t id = item.chunk.chunk_id;
    const Row row = std::make_shared<const ChunkInDocument>(std::move(item));
    if (changes == changes_ && row->document.differs.empty()) put(std::to_string(id), row->document, row);
    rows.emplace(id, row);
  }
  return rows;
}

Result<std::vector<CitedDocument>> ChunkRows::cited(Reader& reader, const std::vector<Citation>& citations) {
  std::vector<CitedDocument> out(citations.size());
  std::vector<Citation> missing;
  std::vector<std::size_t> places;
  std::uint64_t changes = 0;
  {
    const std::lock_guard lock(mutex_);
    changes = changes_;
    for (std::size_t i = 0; i < citations.size(); ++i) {
      if (const Cited known = find<Cited>(key_of(citations[i]))) {
        out[i] = *known;
      } else {
        missing.push_back(citations[i]);
        places.push_back(i);
      }
    }
  }
  if (missing.empty()) return out;
  ASSIGN_OR_RETURN(auto read, reader.cited(missing));
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].chunk && read[i].document->differs.empty() && changes == changes_)
      put(key_of(missing[i]), *read[i].document, std::make_shared<const CitedDocument>(read[i]));
    out[places[i]] = std::move(read[i]);
  }
  return out;
}

void ChunkRows::changed(const std::vector<CorpusChange>& changes) {
  const std::lock_guard lock(mutex_);
  for (const CorpusChange& change : changes) {
    if (std::holds_alternative<FeedbackRow>(change)) continue;
    ++changes_;
    if (const auto* revised = std::get_if<Revised>(&change)) {
      drop_document({revised->row.corpus, revised->row.document});
    } else if (const auto* retracted = std::get_if<Retracted>(&change)) {
      drop_document({retracted->corpus, retracted->document});
    } else {  // a revocation or an erasure may affect any document
      while (!entries_.empty()) drop(entries_.begin());
    }
  }
}

template <typename Value>
Value ChunkRows::find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return std::get<Value>(found->second->value);
}

void ChunkRows::put(std::string key, const DocumentRow& document, std::variant<Row, Cited> value) {
  const std::size_t bytes = bytes_of(document);
  if (bytes > bytes_max_ || by_key_.contains(key)) return;
  while (bytes_ + bytes > bytes_max_) drop(std::prev(entries_.end()));
  bytes_ += bytes;
  Document of{document.corpus, document.document};
  of_document_[of].insert(key);
  entries_.push_front({std::move(key), std::move(of), std::move(value), bytes});
  by_key_.emplace(entries_.front().key, entries_.begin());
}

void ChunkRows::drop(Entries::iterator entry) {
  const auto document = of_document_.find(entry->document);
  document->second.erase(entry->key);
  if (document->second.empty()) of_document_.erase(document);
  by_key_.erase(entry->key);
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

void ChunkRows::drop_document(const Document& document) {
  const auto found = of_document_.find(document);
  if (found == of_document_.end()) return;
  const std::set<std::string> keys = found->second;
  for (const std::string& key : keys) drop(by_key_.at(key));
}

}  // namespace muniment::store
