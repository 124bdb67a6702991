// Writes the lexical index: chunks, moves, removals and commits.
#include "retrieval/lexical/lexical_index.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <xapian.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "retrieval/lexical/layout.hpp"
#include "retrieval/lexical/lexical_reader.hpp"
#include "retrieval/lexical/terms.hpp"
#include "retrieval/lexical/xapian_guard.hpp"

namespace muniment::retrieval {
namespace {

Xapian::Document document_of(const LexicalChunk& chunk, Stemmer& stemmer) {
  Xapian::Document document;
  const ChunkTerms terms = terms_of(chunk, stemmer);
  for (const auto& [term, count] : terms.scored) document.add_term(term, count);
  for (const auto& [word, position] : terms.placed) document.add_posting(word, position, 0);
  for (const std::string& label : chunk.facts.labels) document.add_boolean_term(label_term(label));
  document.add_boolean_term(language_term(chunk.language));
  document.add_value(layout::time_slot, sortable(chunk.facts.time_us));
  document.add_value(layout::valid_from_slot, sortable(chunk.facts.valid_from));
  document.add_value(layout::valid_to_slot, sortable(chunk.facts.valid_to));
  return document;
}

// A database that is written in transactions, so that Xapian's own flushes do not commit.
class Part {
 public:
  void open(const std::string& path, bool scratch) {
    path_ = path;
    scratch_ = scratch;
    database_ = Xapian::WritableDatabase(
        path, Xapian::DB_CREATE_OR_OPEN | Xapian::DB_BACKEND_GLASS | (scratch ? Xapian::DB_NO_SYNC : 0));
  }
  // Makes a copy of the committed state without free pages.
  void copy_anew() const {
    std::filesystem::remove_all(path_ + anew);
    Xapian::Database(path_).compact(path_ + anew, Xapian::DBCOMPACT_NO_RENUMBER);
  }
  // Replaces the database by the copy. Returns the error as text.
  std::string change_places() {
    database_.close();
    const bool changed = ::renameat2(AT_FDCWD, (path_ + anew).c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0;
    const std::string why = changed ? "" : std::strerror(errno);
    std::error_code never;
    std::filesystem::remove_all(path_ + anew, never);
    open(path_, scratch_);
    return why;
  }
  Xapian::WritableDatabase& changed() {
    if (!in_transaction_) database_.begin_transaction();
    in_transaction_ = true;
    return database_;
  }
  bool is_changed() const { return in_transaction_; }
  void commit() {
    if (in_transaction_) database_.commit_transaction();
    in_transaction_ = false;
  }
  void cancel() {
    if (in_transaction_) database_.cancel_transaction();
    in_transaction_ = false;
  }
  const Xapian::WritableDatabase& database() const { return database_; }

  // Returns 0 for a new database; nullopt for a value that this program cannot have written.
  std::optional<std::int64_t> number(const char* key) const {
    const std::string text = database_.get_metadata(key);
    return text.empty() ? 0 : parse_decimal(text);
  }
  std::optional<Xapian::Document> find(ChunkId id) const try {
    return database_.get_document(id);
  } catch (const Xapian::DocNotFoundError&) {
    return std::nullopt;
  }
  // Returns whether it is new, or follows the rules of this version.
  bool readable() const {
    const std::string rules = database_.get_metadata(layout::rules_key);
    return rules == term_rules || (rules.empty() && database_.get_doccount() == 0 && number(layout::next_seq_key) == 0);
  }

 private:
  static constexpr const char* anew = ".anew";
  std::string path_;
  Xapian::WritableDatabase database_;
  bool in_transaction_ = false;
  bool scratch_ = false;
};

constexpr off_t packed_alignment = 8;

// Appends the database as one piece. Returns its offset.
std::int64_t pack_database(const std::string& path, int file) {
  const off_t end = ::lseek(file, 0, SEEK_END);
  const off_t place = (end + packed_alignment - 1) / packed_alignment * packed_alignment;
  if (end < 0 || ::ftruncate(file, place) != 0 || ::lseek(file, place, SEEK_SET) != place)
    throw Xapian::DatabaseError("the file cannot be extended", errno);
  const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);  // Xapian closes it
  if (own < 0) throw Xapian::DatabaseError("the file cannot be used", errno);
  Xapian::Database(path).compact(own, Xapian::DBCOMPACT_NO_RENUMBER | Xapian::DBCOMPACT_SINGLE_FILE);
  return place;
}

Xapian::Database packed_database(int file, std::int64_t place) {
  // A description of its own, because Xapian takes the place from its position. Xapian closes it.
  const int own = ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0 || ::lseek(own, place, SEEK_SET) != place)
    throw Xapian::DatabaseOpeningError("the file cannot be read", errno);
  return Xapian::Database(own);
}

class PackedIndex final : public LexicalIndex {
 public:
  explicit PackedIndex(const PackedLexical& packed) : packed_(packed) {}

  Status start() {
    return guarded("opening", [&]() -> Status {
      const Xapian::Database live = packed_database(packed_.file, packed_.live);
      const std::string position = live.get_metadata(layout::next_seq_key);
      const auto next = position.empty() ? std::optional<std::int64_t>(0) : parse_decimal(position);
      const std::string rules = live.get_metadata(layout::rules_key);
      if (!next || (rules != term_rules && !(rules.empty() && live.get_doccount() == 0)))
        return lexical_error(Errc::corrupt, "opening", "it has another version");
      watermark_ = *next;
      chunks_ = live.get_doccount();
      return success();
    });
  }
  Status add(const LexicalChunk&) override { return fixed(); }
  Status close(ChunkId, std::int64_t) override { return fixed(); }
  Status remove(ChunkId) override { return fixed(); }
  Status commit(std::int64_t) override { return fixed(); }
  void cancel() override {}
  std::int64_t watermark() const override { return watermark_; }
  std::int64_t chunks() const override { return chunks_; }
  Result<PackedLexical> pack(int) const override { return fixed(); }
  Result<std::unique_ptr<LexicalReader>> reader() override {
    return open_lexical_reader(
        [packed = packed_] {
          return std::pair(packed_database(packed.file, packed.live), packed_database(packed.file, packed.history));
        },
        changes_);
  }

 private:
  static Error fixed() { return Error(Errc::invalid_argument, "a packed lexical index cannot be changed"); }

  const PackedLexical packed_;
  std::int64_t watermark_ = 0, chunks_ = 0;
  const std::shared_ptr<IndexChanges> changes_ = std::make_shared<IndexChanges>();
};

class XapianIndex final : public LexicalIndex {
 public:
  XapianIndex(std::string folder, bool scratch) : folder_(std::move(folder)), scratch_(scratch) {}

  Status start() {
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    if (failed) return lexical_error(Errc::system_error, "making its folder", failed.message());
    return guarded("opening", [&]() -> Status {
      history_.open(layout::history(folder_), scratch_);
      live_.open(layout::live(folder_), scratch_);
      const auto next = live_.number(layout::next_seq_key), history_next = history_.number(layout::next_seq_key);
      const auto expected = live_.number(layout::history_seq_key);
      if (!next || !history_next || !expected || !live_.readable() || !history_.readable() ||
          *history_next < *expected || (*next == 0 && *history_next > 0)) {
        return lexical_error(Errc::corrupt, "opening", "its two databases do not match, or have another version");
      }
      watermark_ = *next;
      chunks_ = live_.database().get_doccount();
      erased_ = !live_.database().get_metadata(layout::erased_key).empty();
      return write_anew();
    });
  }

  Status add(const LexicalChunk& chunk) override {
    if (chunk.id == 0) return Error(Errc::invalid_argument, "a chunk's id is at least 1");
    return write("adding a chunk",
                 [&] { live_.changed().replace_document(chunk.id, document_of(chunk, stemmer(chunk.language))); });
  }

  Status close(ChunkId id, std::int64_t valid_to) override {
    return write("closing a chunk", [&] {
      std::optional<Xapian::Document> document = live_.find(id);
      if (!document) return;  // closed before a crash, or removed
      document->add_value(layout::valid_to_slot, sortable(valid_to));
      history_.changed().replace_document(id, *document);
      live_.changed().delete_document(id);
    });
  }

  Status remove(ChunkId id) override {
    return write("removing a chunk", [&] {
      if (live_.find(id)) live_.changed().delete_document(id);
      if (history_.find(id)) history_.changed().delete_document(id);
      live_.changed().set_metadata(layout::erased_key, "1");
      erased_ = true;
    });
  }

  Status commit(std::int64_t next_seq) override {
    const std::string text = std::to_string(next_seq);
    RETURN_IF_ERROR(write("committing", [&] {
      const bool moved = history_.is_changed();
      if (moved) stamp(history_, text);
      history_.commit();
      stamp(live_, text);
      if (moved) live_.changed().set_metadata(layout::history_seq_key, text);
      live_.commit();
      chunks_ = live_.database().get_doccount();
    }));
    changes_->commits.fetch_add(1, std::memory_order_acq_rel);
    watermark_ = next_seq;
    return write_anew();
  }

  void cancel() override {
    if (failed_) return;
    const Status done = write("cancelling", [&] {
      history_.cancel();
      live_.cancel();
    });
  }

  std::int64_t watermark() const override { return watermark_; }
  std::int64_t chunks() const override { return chunks_; }
  Result<std::unique_ptr<LexicalReader>> reader() override {
    return open_lexical_reader(
        [folder = folder_] {
          return std::pair(Xapian::Database(layout::live(folder)), Xapian::Database(layout::history(folder)));
        },
        changes_);
  }
  Result<PackedLexical> pack(int file) const override {
    PackedLexical packed{file};
    for (const auto& [path, place] :
         {std::pair(layout::live(folder_), &packed.live), std::pair(layout::history(folder_), &packed.history)}) {
      RETURN_IF_ERROR(guarded("packing", [&, &path = path, &place = place]() -> Status {
        *place = pack_database(path, file);
        return success();
      }));
    }
    return packed;
  }

 private:
  static void stamp(Part& part, const std::string& next_seq) {
    part.changed().set_metadata(layout::rules_key, std::string(term_rules));
    part.changed().set_metadata(layout::next_seq_key, next_seq);
  }

  // Runs after a removal. If it fails for now (a full disk), the next commit or start retries.
  Status write_anew() {
    if (!erased_) return success();
    const Status copied = guarded("writing it anew", [&]() -> Status {
      live_.copy_anew();
      history_.copy_anew();
      return success();
    });
    if (!copied) {
      log_warning("words of erased content are still in free pages of the lexical index",
                  {{"error", copied.error().message}});
      return success();
    }
    return write("changing places", [&] {
      std::string why;
      {
        const std::lock_guard lock(changes_->places);
        for (Part* part : {&live_, &history_}) why += part->change_places();
        changes_->rewritten.fetch_add(1, std::memory_order_acq_rel);
      }
      if (!why.empty()) return log_warning("the lexical index could not be rewritten", {{"error", why}});
      live_.changed().set_metadata(layout::erased_key, "");
      live_.commit();
      erased_ = false;
      changes_->commits.fetch_add(1, std::memory_order_acq_rel);
    });
  }

  // After an error nothing more is written, because Xapian may hold half of a change in memory.
  template <typename Work>
  Status write(const char* doing, Work work) {
    if (failed_) return *failed_;
    Status done = guarded(doing, [&]() -> Status {
      work();
      return success();
    });
    if (!done) failed_ = done.error();
    return done;
  }

  Stemmer& stemmer(std::string_view language) {
    return stemmers_.try_emplace(std::string(language), language).first->second;
  }

  std::string folder_;
  const bool scratch_;
  Part live_, history_;
  std::unordered_map<std::string, Stemmer> stemmers_;
  std::optional<Error> failed_;
  std::atomic<std::int64_t> watermark_ = 0;  // read by other threads
  std::atomic<std::int64_t> chunks_ = 0;
  bool erased_ = false;  // the databases have to be rewritten
  const std::shared_ptr<IndexChanges> changes_ = std::make_shared<IndexChanges>();
};

}  // namespace

Result<std::unique_ptr<LexicalIndex>> LexicalIndex::open(const std::string& folder, bool scratch) {
  auto index = std::make_unique<XapianIndex>(folder, scratch);
  RETURN_IF_ERROR(index->start());
  return std::unique_ptr<LexicalIndex>(std::move(index));
}

Result<std::unique_ptr<LexicalIndex>> LexicalIndex::open_packed(const PackedLexical& packed) {
  auto index = std::make_unique<PackedIndex>(packed);
  RETURN_IF_ERROR(index->start());
  return std::unique_ptr<LexicalIndex>(std::move(index));
}

Status LexicalIndex::unpack(const PackedLexical& packed, const std::string& folder) {
  return guarded("unpacking", [&]() -> Status {
    std::filesystem::create_directories(folder);
    packed_database(packed.file, packed.live).compact(layout::live(folder), Xapian::DBCOMPACT_NO_RENUMBER);
    packed_database(packed.file, packed.history).compact(layout::history(folder), Xapian::DBCOMPACT_NO_RENUMBER);
    return success();
  });
}

}  // namespace muniment::retrieval
