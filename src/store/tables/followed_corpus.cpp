// Writes the rows of the follower "document": revisions and their chunks, and the ends of revisions.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "store/tables/followed_rows.hpp"

namespace muniment::store {
namespace {

// Every statement is idempotent for an event that was followed before, even if later events were followed too, because
// a position may be set back.

// Statements for many revisions of different documents at once, because a statement for each would dominate the cost.
constexpr std::string_view touch_corpora =
    "INSERT INTO corpus (log_no, corpus, owner, first_seq, last_seq) "
    "SELECT $1, u.* FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS u "
    "ON CONFLICT (log_no, corpus) DO UPDATE SET last_seq = greatest(corpus.last_seq, excluded.last_seq)";

constexpr std::string_view corpus_changed =
    "UPDATE corpus SET last_seq = greatest(last_seq, $3) WHERE log_no = $1 AND corpus = $2";

// While the statistics are those of an empty table, the planner expects `log_no = $1` to hold for few rows, and would
// read all rows of the log. A subquery with OFFSET 0 is a plan of its own, which looks up one row at a time.

// Known documents keep the ids of their chunks, because other rows refer to them.
constexpr std::string_view known_documents =
    "SELECT d.seq FROM unnest($2::bigint[]) u(seq) CROSS JOIN LATERAL (SELECT seq FROM document WHERE log_no = $1 AND seq = u.seq OFFSET 0) d";

// The current revisions of documents, each with the seq of the revision that ends it.
constexpr std::string_view revised_documents =
    "SELECT d.seq, u.seq FROM unnest($2::text[], $3::text[], $4::bigint[]) u(corpus, document, seq) CROSS JOIN LATERAL (SELECT seq "
    "FROM document WHERE log_no = $1 AND corpus = u.corpus AND document = u.document AND valid_to IS NULL AND seq < u.seq OFFSET 0) d";

constexpr std::string_view end_revised =
    "UPDATE document SET valid_to = $3, ended_by = 'revised' WHERE log_no = $1 AND seq = $2";

// Arrays of arrays are rectangular in Postgres, so that tags and sources are passed as texts of arrays.
constexpr std::string_view put_documents =
    "INSERT INTO document (log_no, seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, text_artifact_id, "
    "mime_type, format, language, title, tags, source, sources, source_url, trust, document_time, recorded_at, chunker, first_chunk, chunks, owner, origin) "
    "SELECT $1, u.seq, u.corpus, u.document, u.revision, decode(u.hash, 'hex'), nullif(u.artifact_id, '')::uuid, u.start_byte, u.size_bytes, "
    "nullif(u.text_artifact_id, '')::uuid, u.mime_type, u.format, u.language, u.title, u.tags::text[], u.source, u.sources::text[], "
    "nullif(u.source_url, ''), u.trust, u.document_time, u.recorded_at, u.chunker, u.first_chunk, u.chunks, nullif(u.owner, ''), nullif(u.origin, 0) "
    "FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], "
    "$11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], "
    "$20::timestamptz[], $21::timestamptz[], $22::text[], $23::bigint[], $24::bigint[], $25::text[], $26::smallint[]) "
    "AS u(seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, text_artifact_id, mime_type, format, language, "
    "title, tags, source, sources, source_url, trust, document_time, recorded_at, chunker, first_chunk, chunks, owner, origin)";

constexpr std::string_view put_chunks =
    "INSERT INTO chunk (log_no, chunk_id, seq, number, start_byte, end_byte, hash, heading) "
    "SELECT $1, u.chunk_id, u.seq, u.number, u.start_byte, u.end_byte, decode(u.hash, 'hex'), nullif(u.heading, '') "
    "FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[]) "
    "AS u(chunk_id, seq, number, start_byte, end_byte, hash, heading)";

constexpr std::string_view end_retracted =
    "UPDATE document SET valid_to = $4, ended_by = 'retracted' WHERE log_no = $1 AND corpus = $2 AND document = $3 AND valid_to IS NULL AND seq < $4";

constexpr std::string_view revoke_source =
    "UPDATE document d SET removed_at = $3, valid_to = coalesce(valid_to, $3), ended_by = coalesce(ended_by, 'revoked') "
    "FROM (SELECT log_no, seq FROM document WHERE sources @> ARRAY[$2] OFFSET 0) f WHERE f.log_no = $1 AND f.seq < $3 AND "
    "d.log_no = f.log_no AND d.seq = f.seq AND d.removed_at IS NULL AND ($4::text IS NULL OR $4 = "
    "coalesce(d.owner, (SELECT c.owner FROM corpus c WHERE c.log_no = d.log_no AND c.corpus = d.corpus))) RETURNING d.seq";

constexpr std::string_view touch_revoked =
    "UPDATE corpus SET last_seq = greatest(last_seq, $2) WHERE log_no = $1 AND corpus IN (SELECT corpus FROM document WHERE log_no = $1 AND removed_at = $2)";

// removed_at is the seq of the event.redacted, so that the indexer, which reads by events, removes the passages.
constexpr std::string_view erase_document =
    "UPDATE document SET hash = decode(repeat('0', 64), 'hex'), start_byte = 0, size_bytes = 0, mime_type = '', format = '', language = '', "
    "title = '', tags = '{}', source = '', sources = '{}', source_url = NULL, document_time = recorded_at, "
    "valid_to = coalesce(valid_to, $3), ended_by = 'erased', removed_at = $3 WHERE log_no = $1 AND seq = $2 "
    "RETURNING corpus, first_chunk, chunks";

constexpr std::string_view put_feedback =
    "INSERT INTO feedback (log_no, seq, pointer, value, actor, chunk_id) VALUES ($1, $2, $3, $4::float8, $5, (SELECT c.chunk_id FROM "
    "(SELECT seq, valid_to FROM document WHERE log_no = $1 AND corpus = $6 AND document = $7 AND revision = $8 OFFSET 0) d "
    "CROSS JOIN LATERAL (SELECT chunk_id FROM chunk WHERE log_no = $1 AND seq = d.seq AND number = $9 OFFSET 0) c "
    "ORDER BY d.valid_to IS NULL DESC, d.seq DESC LIMIT 1)) ON CONFLICT (log_no, seq) DO NOTHING";

constexpr std::size_t group_chunks_max = 16'384;

using Texts = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

// Takes the changes in the order of the log. Revisions are buffered until a change of another kind, or of the same
// document, arrives.
class CorpusWriter {
 public:
  CorpusWriter(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no, CorpusEffects* effects)
      : connection_(connection), work_(work), log_no_(log_no), effects_(effects) {}

  void operator()(const Revised& revised) {
    const bool same = !documents_.emplace(revised.row.corpus, revised.row.document).second;
    if (same || group_chunks_ >= group_chunks_max) {
      flush();
      documents_.emplace(revised.row.corpus, revised.row.document);
    }
    group_.push_back(&revised);
    group_chunks_ += revised.chunks.size();
  }

  void operator()(const Retracted& gone) {
    flush();
    query(connection_, work_, "document_retract", end_retracted,
          params().text(gone.corpus).text(gone.document).integer(gone.seq));
    query(connection_, work_, "corpus_changed", corpus_changed, params().text(gone.corpus).integer(gone.seq));
  }

  void operator()(const Revoked& gone) {
    flush();
    for (const pqxx::row& row : query(connection_, work_, "source_revoke", revoke_source,
                                      params().text(gone.source).integer(gone.seq).text_or_null(gone.owner))) {
      if (effects_ != nullptr) effects_->revoked[gone.seq].push_back(integer_of(row[0]));
    }
    query(connection_, work_, "source_touch", touch_revoked, params().integer(gone.seq));
  }

  void operator()(const Erased& erased) {
    flush();
    query(connection_, work_, "feedback_erase", "DELETE FROM feedback WHERE log_no = $1 AND seq = $2",
          params().integer(erased.erased_seq));
    const pqxx::result rows = query(connection_, work_, "document_erase", erase_document,
                                    params().integer(erased.erased_seq).integer(erased.seq));
    if (rows.empty()) return;  // the event did not revise a document
    query(connection_, work_, "chunks_erase", "DELETE FROM chunk WHERE log_no = $1 AND seq = $2",
          params().integer(erased.erased_seq));
    const std::int64_t first = integer_of(rows[0][1]);
    query(connection_, work_, "feedback_of_erased",
          "UPDATE feedback SET chunk_id = NULL WHERE log_no = $1 AND chunk_id >= $2 AND chunk_id < $3",
          params().integer(first).integer(first + integer_of(rows[0][2])));
    query(connection_, work_, "corpus_changed", corpus_changed, params().text(text_of(rows[0][0])).integer(erased.seq));
  }

  void operator()(const Untold&) {}

  void operator()(const FeedbackRow& row) {
    flush();
    const Citation passage = row.passage.value_or(Citation{});
    query(connection_, work_, "feedback_put", put_feedback,
          params()
              .integer(row.seq)
              .text(row.pointer)
              .text(fmt::format("{}", row.value))
              .text(row.actor)
              .text(passage.corpus)
              .text(passage.document)
              .text(passage.revision)
              .integer(passage.number));
  }

  // Writes the buffered revisions.
  void flush() {
    if (group_.empty()) return;
    leave_out_known();
    if (!group_.empty()) {
      write_corpora();
      const std::int64_t first_chunk = take_chunk_ids(static_cast<std::int64_t>(group_chunks_));
      write_documents(first_chunk);
      if (group_chunks_ > 0) write_chunks(first_chunk);
    }
    group_.clear();
    documents_.clear();
    group_chunks_ = 0;
  }

 private:
  Params params() const { return std::move(Params().integer(log_no_)); }

  // Removes revisions whose rows exist.
  void leave_out_known() {
    std::set<std::int64_t> known;
    for (const pqxx::row& row : query(connection_, work_, "documents_known", known_documents,
                                      params().integers(integers(&DocumentRow::seq)))) {
      known.insert(integer_of(row[0]));
    }
    std::erase_if(group_, [&](const Revised* revised) {
      if (!known.contains(revised->row.seq)) return false;
      group_chunks_ -= revised->chunks.size();
      return true;
    });
  }

  std::int64_t take_chunk_ids(std::int64_t count) {
    if (next_chunk_ == 0) {
      next_chunk_ =
          integer_of(query(connection_, work_, "chunk_next",
                           "SELECT coalesce(max(first_chunk + chunks), 1) FROM document WHERE log_no = $1 AND "
                           "first_chunk = (SELECT max(first_chunk) FROM document WHERE log_no = $1)",
                           params())[0][0]);
    }
    return std::exchange(next_chunk_, next_chunk_ + count);
  }

  // The owner of the first revision owns a new corpus.
  void write_corpora() {
    Texts corpora, owners;
    Integers firsts, lasts;
    std::map<std::string_view, std::size_t> places;
    for (const Revised* revised : group_) {
      if (revised->row.of_run()) continue;
      const auto [place, is_new] = places.try_emplace(revised->row.corpus, corpora.size());
      if (is_new) {
        corpora.push_back(revised->row.corpus);
        owners.push_back(revised->actor);
        firsts.push_back(revised->row.seq);
        lasts.push_back(revised->row.seq);
      }
      lasts[place->second] = revised->row.seq;
    }
    if (corpora.empty()) return;
    query(connection_, work_, "corpora_touch", touch_corpora,
          params().texts(corpora).texts(owners).integers(firsts).integers(lasts));
  }

  // Returns a column of the group's rows, derived from each row.
  Texts texts(const std::function<std::string(const DocumentRow&)>& column) const {
    Texts out;
    for (const Revised* revised : group_) out.push_back(column(revised->row));
    return out;
  }
  Integers integers(std::int64_t DocumentRow::*column) const {
    Integers out;
    for (const Revised* revised : group_) out.push_back(revised->row.*column);
    return out;
  }

  void write_documents(std::int64_t first_chunk) {
    const Integers seqs = integers(&DocumentRow::seq);
    const Texts corpora = texts(&DocumentRow::corpus), documents = texts(&DocumentRow::document);
    const auto revised_rows = query(connection_, work_, "documents_revised", revised_documents,
                                    params().texts(corpora).texts(documents).integers(seqs));
    for (const pqxx::row& row : revised_rows) {
      query(connection_, work_, "document_end", end_revised,
            params().integer(integer_of(row[0])).integer(integer_of(row[1])));
    }
    Integers firsts, counts, origins;
    for (const Revised* revised : group_) {
      origins.push_back(revised->row.origin ? static_cast<std::int64_t>(*revised->row.origin) : 0);
      counts.push_back(static_cast<std::int64_t>(revised->chunks.size()));
      firsts.push_back(std::exchange(first_chunk, first_chunk + counts.back()));
      if (effects_ != nullptr) effects_->first_chunks[revised->row.seq] = firsts.back();
    }
    query(
        connection_, work_, "documents_put", put_documents,
        params()
            .integers(seqs)
            .texts(corpora)
            .texts(documents)
            .texts(texts(&DocumentRow::revision))
            .texts(texts([](const DocumentRow& row) { return to_hex(row.hash); }))
            .texts(texts([](const DocumentRow& row) { return row.of_run() ? std::string() : row.artifact_id.text(); }))
            .integers(integers(&DocumentRow::start_byte))
            .integers(integers(&DocumentRow::size_bytes))
            .texts(texts([](const DocumentRow& row) {
              return row.text_artifact_id ? row.text_artifact_id->text() : std::string();
            }))
            .texts(texts(&DocumentRow::mime_type))
            .texts(texts(&DocumentRow::format))
            .texts(texts(&DocumentRow::language))
            .texts(texts(&DocumentRow::title))
            .texts(texts([](const DocumentRow& row) { return array_literal(row.tags); }))
            .texts(texts(&DocumentRow::source))
            .texts(texts([](const DocumentRow& row) { return array_literal(row.sources); }))
            .texts(texts([](const DocumentRow& row) { return row.source_url.value_or(""); }))
            .texts(texts(&DocumentRow::trust))
            .texts(texts([](const DocumentRow& row) { return format_time(row.document_time); }))
            .texts(texts([](const DocumentRow& row) { return format_time(row.recorded_at); }))
            .texts(texts(&DocumentRow::chunker))
            .integers(firsts)
            .integers(counts)
            .texts(texts([](const DocumentRow& row) { return row.owner.value_or(""); }))
            .integers(origins));
  }

  void write_chunks(std::int64_t next_id) {
    Integers ids, seqs, numbers, starts, ends;
    Texts hashes, headings;
    for (const Revised* revised : group_) {
      for (const ChunkRow& chunk : revised->chunks) {
        ids.push_back(next_id++);
        seqs.push_back(revised->row.seq);
        numbers.push_back(chunk.number);
        starts.push_back(chunk.start_byte);
        ends.push_back(chunk.end_byte);
        hashes.push_back(to_hex(chunk.hash));
        headings.push_back(chunk.heading);
      }
    }
    query(connection_, work_, "chunks_put", put_chunks,
          params().integers(ids).integers(seqs).integers(numbers).integers(starts).integers(ends).texts(hashes).texts(
              headings));
  }

  Connection& connection_;
  pqxx::transaction_base& work_;
  const std::int16_t log_no_;
  CorpusEffects* const effects_;
  std::int64_t next_chunk_ = 0;  // 0: not read yet
  std::vector<const Revised*> group_;
  std::set<std::pair<std::string_view, std::string_view>> documents_;  // documents in the group
  std::size_t group_chunks_ = 0;
};

}  // namespace

void write_followed_corpus(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const std::vector<CorpusChange>& changes, CorpusEffects* effects) {
  CorpusWriter writer(connection, work, log_no, effects);
  for (const CorpusChange& change : changes) std::visit(writer, change);
  writer.flush();
}

}  // namespace muniment::store
