// What the follower "document" writes: revisions and their chunks, and what ends them.
#include <fmt/format.h>

#include "store/followed_rows.hpp"

namespace muniment::store {
namespace {

constexpr std::string_view touch_corpus =
    "INSERT INTO corpus (log_no, corpus, owner, first_seq, last_seq) VALUES ($1, $2, $3, $4, $4) "
    "ON CONFLICT (log_no, corpus) DO UPDATE SET last_seq = excluded.last_seq";

constexpr std::string_view corpus_changed = "UPDATE corpus SET last_seq = $3 WHERE log_no = $1 AND corpus = $2";

constexpr std::string_view end_current =
    "UPDATE document SET valid_to = $4, ended_by = $5 WHERE log_no = $1 AND corpus = $2 AND document = $3 AND valid_to IS NULL";

constexpr std::string_view put_document =
    "INSERT INTO document (log_no, seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, text_artifact_id, "
    "mime_type, format, language, title, tags, source, sources, source_url, trust, document_time, recorded_at, chunker, first_chunk, "
    "chunks) VALUES ($1, $2, $3, $4, $5, decode($6, 'hex'), $7, $8, $9, $10, $11, $12, $13, $14, $15::text[], $16, $17::text[], $18, "
    "$19, $20, $21, $22, $23, $24)";

constexpr std::string_view put_chunks =
    "INSERT INTO chunk (log_no, chunk_id, seq, number, start_byte, end_byte, hash, heading) "
    "SELECT $1, $2 + u.place - 1, $3, u.place - 1, u.start_byte, u.end_byte, decode(u.hash, 'hex'), nullif(u.heading, '') "
    "FROM unnest($4::bigint[], $5::bigint[], $6::text[], $7::text[]) WITH ORDINALITY AS u(start_byte, end_byte, hash, heading, place)";

constexpr std::string_view revoke_source =
    "UPDATE document d SET removed_at = $3, valid_to = coalesce(valid_to, $3), ended_by = coalesce(ended_by, 'revoked') "
    "FROM corpus c WHERE d.log_no = $1 AND d.sources @> ARRAY[$2] AND d.removed_at IS NULL AND d.seq < $3 AND c.log_no = d.log_no "
    "AND c.corpus = d.corpus AND ($4::text IS NULL OR c.owner = $4)";

constexpr std::string_view touch_revoked =
    "UPDATE corpus SET last_seq = $2 WHERE log_no = $1 AND corpus IN (SELECT corpus FROM document WHERE log_no = $1 AND removed_at = $2)";

// removed_at is the event.redacted, so that the indexer, which reads by events, takes the passages out.
constexpr std::string_view erase_document =
    "UPDATE document SET hash = decode(repeat('0', 64), 'hex'), start_byte = 0, size_bytes = 0, mime_type = '', format = '', language = '', "
    "title = '', tags = '{}', source = '', sources = '{}', source_url = NULL, document_time = recorded_at, "
    "valid_to = coalesce(valid_to, $3), ended_by = 'erased', removed_at = $3 WHERE log_no = $1 AND seq = $2 "
    "RETURNING corpus, first_chunk, chunks";

constexpr std::string_view put_feedback =
    "INSERT INTO feedback (log_no, seq, pointer, value, actor, chunk_id) VALUES ($1, $2, $3, $4::float8, $5, (SELECT c.chunk_id FROM "
    "document d JOIN chunk c ON c.log_no = d.log_no AND c.seq = d.seq AND c.number = $9 WHERE d.log_no = $1 AND d.corpus = $6 AND "
    "d.document = $7 AND d.revision = $8 ORDER BY d.valid_to IS NULL DESC, d.seq DESC LIMIT 1))";

struct CorpusWriter {
  Connection& connection;
  pqxx::transaction_base& work;
  const std::int16_t log_no;
  std::int64_t next_chunk = 0;  // 0: not yet read

  Params params() const { return std::move(Params().integer(log_no)); }

  std::int64_t take_chunk_ids(std::int64_t count) {
    if (next_chunk == 0) {
      next_chunk = integer_of(query(connection, work, "chunk_next", "SELECT coalesce(max(first_chunk + chunks), 1) FROM document WHERE log_no = $1 AND "
                                    "first_chunk = (SELECT max(first_chunk) FROM document WHERE log_no = $1)", params())[0][0]);
    }
    const std::int64_t first = next_chunk;
    next_chunk += count;
    return first;
  }

  void operator()(const Revised& revised) {
    const DocumentRow& row = revised.row;
    query(connection, work, "corpus_touch", touch_corpus, params().text(row.corpus).text(revised.actor).integer(row.seq));
    query(connection, work, "document_end", end_current, params().text(row.corpus).text(row.document).integer(row.seq).text("revised"));
    const auto chunks = static_cast<std::int64_t>(revised.chunks.size());
    const std::int64_t first = take_chunk_ids(chunks);
    query(connection, work, "document_put", put_document,
          params().integer(row.seq).text(row.corpus).text(row.document).text(row.revision).text(to_hex(row.hash)).uuid(row.artifact_id)
              .integer(row.start_byte).integer(row.size_bytes).uuid_or_null(row.text_artifact_id).text(row.mime_type).text(row.format)
              .text(row.language).text(row.title).texts(row.tags).text(row.source).texts(row.sources).text_or_null(row.source_url)
              .text(row.trust).time(row.document_time).time(row.recorded_at).text(row.chunker).integer(first).integer(chunks));
    if (revised.chunks.empty()) return;
    std::vector<std::int64_t> starts, ends;
    std::vector<std::string> hashes, headings;
    for (const ChunkRow& chunk : revised.chunks) {
      starts.push_back(chunk.start_byte);
      ends.push_back(chunk.end_byte);
      hashes.push_back(to_hex(chunk.hash));
      headings.push_back(chunk.heading);
    }
    query(connection, work, "chunks_put", put_chunks,
          params().integer(first).integer(row.seq).integers(starts).integers(ends).texts(hashes).texts(headings));
  }

  void operator()(const Retracted& gone) {
    query(connection, work, "document_end", end_current, params().text(gone.corpus).text(gone.document).integer(gone.seq).text("retracted"));
    query(connection, work, "corpus_changed", corpus_changed, params().text(gone.corpus).integer(gone.seq));
  }

  void operator()(const Revoked& gone) {
    query(connection, work, "source_revoke", revoke_source, params().text(gone.source).integer(gone.seq).text_or_null(gone.owner));
    query(connection, work, "source_touch", touch_revoked, params().integer(gone.seq));
  }

  void operator()(const Erased& erased) {
    query(connection, work, "feedback_erase", "DELETE FROM feedback WHERE log_no = $1 AND seq = $2", params().integer(erased.erased_seq));
    const pqxx::result rows = query(connection, work, "document_erase", erase_document, params().integer(erased.erased_seq).integer(erased.seq));
    if (rows.empty()) return;  // it was no document
    query(connection, work, "chunks_erase", "DELETE FROM chunk WHERE log_no = $1 AND seq = $2", params().integer(erased.erased_seq));
    const std::int64_t first = integer_of(rows[0][1]);
    query(connection, work, "feedback_of_erased", "UPDATE feedback SET chunk_id = NULL WHERE log_no = $1 AND chunk_id >= $2 AND chunk_id < $3",
          params().integer(first).integer(first + integer_of(rows[0][2])));
    query(connection, work, "corpus_changed", corpus_changed, params().text(text_of(rows[0][0])).integer(erased.seq));
  }

  void operator()(const FeedbackRow& row) {
    const Citation passage = row.passage.value_or(Citation{});
    query(connection, work, "feedback_put", put_feedback,
          params().integer(row.seq).text(row.pointer).text(fmt::format("{}", row.value)).text(row.actor).text(passage.corpus)
              .text(passage.document).text(passage.revision).integer(passage.number));
  }
};

}  // namespace

void write_followed_corpus(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const std::vector<CorpusChange>& changes) {
  CorpusWriter writer{connection, work, log_no};
  for (const CorpusChange& change : changes) std::visit(writer, change);
}

}  // namespace muniment::store
