// Implements reads of corpora: documents, revisions, chunks, and feedback on cards.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "store/read/event_text.hpp"
#include "store/read/reader_impl.hpp"

namespace muniment::store {
namespace {

#define MUNIMENT_DOCUMENT_COLUMNS \
  "d.seq, d.corpus, d.document, d.revision, d.hash, d.artifact_id, d.start_byte, d.size_bytes, d.text_artifact_id, d.mime_type, " \
  "d.format, d.language, d.title, array_to_json(d.tags)::text, d.source, array_to_json(d.sources)::text, d.source_url, d.trust, " \
  MUNIMENT_MICROS("d.document_time") ", " MUNIMENT_MICROS("d.recorded_at") ", d.chunker, d.first_chunk, d.chunks, d.valid_to, "   \
  "d.ended_by, d.removed_at, d.owner, d.origin"
#define MUNIMENT_CHUNK_COLUMNS "c.chunk_id, c.seq, c.number, c.start_byte, c.end_byte, c.hash, coalesce(c.heading, '')"

constexpr int document_column_count = 28;
constexpr int chunk_column_count = 7;

std::vector<std::string> strings_of(const pqxx::field& field) {
  const std::string text = text_of(field);
  const auto document = json::parse(text);
  std::vector<std::string> strings;
  if (document)
    for (const json::Value item : document->root()) strings.push_back(item.string_or(""));
  return strings;
}

std::optional<std::int64_t> integer_if(const pqxx::field& field) {
  return field.is_null() ? std::nullopt : std::optional(integer_of(field));
}

DocumentRow document_at(const pqxx::row& row, int at) {
  DocumentRow out;
  const auto next = [&] { return row[at++]; };
  out.seq = integer_of(next());
  out.corpus = text_of(next());
  out.document = text_of(next());
  out.revision = text_of(next());
  out.hash = hash_of(next());
  out.artifact_id = uuid_if(next()).value_or(Uuid{});
  out.start_byte = integer_of(next());
  out.size_bytes = integer_of(next());
  out.text_artifact_id = uuid_if(next());
  out.mime_type = text_of(next());
  out.format = text_of(next());
  out.language = text_of(next());
  out.title = text_of(next());
  out.tags = strings_of(next());
  out.source = text_of(next());
  out.sources = strings_of(next());
  out.source_url = text_if(next());
  out.trust = text_of(next());
  out.document_time = time_of(next());
  out.recorded_at = time_of(next());
  out.chunker = text_of(next());
  out.first_chunk = integer_of(next());
  out.chunks = integer_of(next());
  out.valid_to = integer_if(next());
  out.ended_by = text_if(next());
  out.removed_at = integer_if(next());
  out.owner = text_if(next());
  if (const auto origin = integer_if(next())) out.origin = static_cast<events::Origin>(*origin);
  return out;
}

ChunkRow chunk_at(const pqxx::row& row, int at) {
  ChunkRow out;
  out.chunk_id = integer_of(row[at]);
  out.seq = integer_of(row[at + 1]);
  out.number = integer_of(row[at + 2]);
  out.start_byte = integer_of(row[at + 3]);
  out.end_byte = integer_of(row[at + 4]);
  out.hash = hash_of(row[at + 5]);
  out.heading = text_of(row[at + 6]);
  return out;
}

DocumentRow document_of(const pqxx::row& row) { return document_at(row, 0); }
ChunkRow chunk_of(const pqxx::row& row) { return chunk_at(row, 0); }

ChunkInDocument chunk_in_document(const pqxx::row& row) {
  return {chunk_at(row, document_column_count), document_at(row, 0),
          text_of(row[document_column_count + chunk_column_count])};
}

std::optional<DocumentRow> first_document(const pqxx::result& rows) {
  return rows.empty() ? std::nullopt : std::optional(document_of(rows[0]));
}

#define MUNIMENT_CHUNK_IN_DOCUMENT                                         \
  "SELECT " MUNIMENT_DOCUMENT_COLUMNS ", " MUNIMENT_CHUNK_COLUMNS          \
  ", coalesce(a.path, '') "                                                \
  "FROM chunk c JOIN document d ON d.log_no = c.log_no AND d.seq = c.seq " \
  "LEFT JOIN artifact a ON a.artifact_id = coalesce(d.text_artifact_id, d.artifact_id) WHERE c.log_no = $1 "

// Holds the rows against their events.
template <typename Rows>
Result<Rows> held(Reader& reader, Reader::Impl& impl, Result<Rows> read) {
  if (!read) return read;
  std::vector<DocumentRow*> rows;
  if constexpr (std::is_same_v<Rows, std::optional<DocumentRow>>) {
    if (*read) rows.push_back(&**read);
  } else if constexpr (std::is_same_v<Rows, std::map<std::string, DocumentRow>>) {
    for (auto& [id, row] : *read) rows.push_back(&row);
  } else {
    for (DocumentRow& row : *read) rows.push_back(&row);
  }
  RETURN_IF_ERROR(hold_documents(reader, impl, rows));
  return read;
}

Result<std::vector<ChunkInDocument>> held_chunks(Reader& reader, Reader::Impl& impl,
                                                 Result<std::vector<ChunkInDocument>> read) {
  if (read) RETURN_IF_ERROR(hold_chunks(reader, impl, *read));
  return read;
}

constexpr std::chrono::milliseconds fits_within{1'000}, look_again_after{10};

// Reads until the rows fit the lives of the documents, because a change may be written meanwhile. Errors: those of
// `read`; corrupt if they do not fit.
template <typename Read, typename Fits>
auto read_fitting(Reader::Impl& impl, std::string_view corpus, Read read, Fits fits) -> decltype(read()) {
  const auto at_latest = std::chrono::steady_clock::now() + fits_within;
  while (true) {
    auto rows = read();
    if (!rows || corpus == run_corpus) return rows;
    ASSIGN_OR_RETURN(const DocumentLives* const lives, lives_up_to(impl, 0));
    if (lives == nullptr) return rows;
    const Result<bool> fit = fits(*rows, *lives);
    if (!fit && is_transient(fit.error().code)) return fit.error();
    if (fit && *fit) return rows;
    if (std::chrono::steady_clock::now() > at_latest)
      return Error(Errc::corrupt,
                   fmt::format("the tables of the corpus {} lack documents, or have others, than the log recorded. "
                               "Run muniment-verify, and: muniment rebuild",
                               corpus));
    std::this_thread::sleep_for(look_again_after);
  }
}

std::int64_t seq_of(const std::optional<DocumentRow>& row) { return row ? row->seq : -1; }

// Puts the actor of its first revision into the row of a corpus. Returns false if the log does not tell who it is.
// Errors: as for `confirm`.
Result<bool> put_owner(Reader& reader, CorpusRow& row, std::int64_t first_seq) {
  ASSIGN_OR_RETURN(const auto first, reader.confirmed(reader.event_at(first_seq)));
  if (!first) return false;
  if (row.first_seq != first_seq || row.owner != first->actor)
    log_warning("a row of the table corpus differs from the log, and is not used",
                {{"corpus", row.corpus}, {"owner", first->actor}});
  row.first_seq = first_seq;
  row.owner = first->actor;
  return true;
}

constexpr std::size_t owners_held_max = 65'536;

// Puts the owner of the corpus, the current revision and the erasure into what was found, as the log recorded them.
Status hold_place(Reader& reader, Reader::Impl& impl, const Citation& citation, CitedDocument& found) {
  ASSIGN_OR_RETURN(const DocumentLives* const lives, lives_up_to(impl, 0));
  if (lives == nullptr || citation.corpus == run_corpus || found.owner.empty()) return success();
  const std::int64_t first = lives->first_seq(citation.corpus);
  if (impl.owners.size() >= owners_held_max) impl.owners.clear();
  if (first < 0) {
    found = {};
    return success();
  }
  if (!impl.owners.contains(first)) {
    CorpusRow row{citation.corpus, found.owner, first};
    ASSIGN_OR_RETURN(const bool put, put_owner(reader, row, first));
    if (put) impl.owners[first] = row.owner;
  }
  if (const auto owner = impl.owners.find(first); owner != impl.owners.end()) found.owner = owner->second;
  const std::int64_t current = lives->current(citation.corpus, citation.document, {});
  const bool is_current = found.document && found.document->seq == current;
  if (is_current || current < 0) {
    found.current = is_current ? std::optional(found.document->revision) : std::nullopt;
  } else {
    const auto row = reader.document(citation.corpus, citation.document);
    if (!row && is_transient(row.error().code)) return row.error();
    found.current = row && *row && (*row)->differs.empty() ? std::optional((*row)->revision) : std::nullopt;
    if (!row && found.document) found.document->differs = row.error().message;
  }
  if (!found.erased || !found.document) return success();
  const auto file = reader.artifact(found.document->text_artifact());
  if (!file && !is_transient(file.error().code)) found.document->differs = file.error().message;
  return success();
}

Status hold_cited(Reader& reader, Reader::Impl& impl, const std::vector<Citation>& citations,
                  std::vector<CitedDocument>& found) {
  std::vector<ChunkInDocument> passages;
  std::vector<CitedDocument*> of_passages;
  std::vector<DocumentRow*> documents;
  for (CitedDocument& one : found) {
    if (one.document && one.chunk) {
      passages.push_back({*one.chunk, *one.document, one.path});
      of_passages.push_back(&one);
    } else if (one.document) {
      documents.push_back(&*one.document);
    }
  }
  RETURN_IF_ERROR(hold_documents(reader, impl, documents));
  RETURN_IF_ERROR(hold_chunks(reader, impl, passages));
  for (std::size_t i = 0; i < passages.size(); ++i) {
    of_passages[i]->document = std::move(passages[i].document);
    of_passages[i]->chunk = std::move(passages[i].chunk);
  }
  for (std::size_t i = 0; i < found.size(); ++i) RETURN_IF_ERROR(hold_place(reader, impl, citations[i], found[i]));
  return success();
}

}  // namespace

Result<std::vector<CorpusRow>> Reader::corpora(const std::optional<std::string>& owner, bool counted) {
  const auto read = [&] {
    return guarded(impl_->connection, "listing corpora", [&] {
      std::vector<CorpusRow> out;
      const std::string_view plain =
          "SELECT corpus, owner, first_seq, last_seq, 0, 0 FROM corpus WHERE log_no = $1 AND ($2::text IS NULL OR owner = $2) ORDER BY corpus";
      const std::string_view counting =
          "SELECT c.corpus, c.owner, c.first_seq, c.last_seq, count(d.seq), coalesce(sum(d.chunks), 0)::bigint FROM corpus c LEFT JOIN document d "
          "ON d.log_no = c.log_no AND d.corpus = c.corpus AND d.valid_to IS NULL WHERE c.log_no = $1 AND ($2::text IS NULL OR c.owner = $2) "
          "GROUP BY c.corpus, c.owner, c.first_seq, c.last_seq ORDER BY c.corpus";
      for (const pqxx::row& row : query(impl_->connection, counted ? "corpora_counted" : "corpora",
                                        counted ? counting : plain, impl_->params().text_or_null(owner))) {
        out.push_back({text_of(row[0]), text_of(row[1]), integer_of(row[2]), integer_of(row[3]), integer_of(row[4]),
                       integer_of(row[5])});
      }
      return out;
    });
  };
  return read_fitting(*impl_, {}, read, [&](std::vector<CorpusRow>& rows, const DocumentLives& lives) -> Result<bool> {
    const auto recorded = lives.corpora();
    if (!owner && rows.size() != recorded.size()) return false;
    for (CorpusRow& row : rows) {
      const auto known = recorded.find(row.corpus);
      if (known == recorded.end()) return false;
      ASSIGN_OR_RETURN(const bool put, put_owner(*this, row, known->second));
      if (!put) return false;
    }
    if (owner) std::erase_if(rows, [&](const CorpusRow& row) { return row.owner != *owner; });
    return true;
  });
}

Result<std::optional<CorpusRow>> Reader::corpus(std::string_view corpus) {
  const auto read = [&] {
    return guarded(impl_->connection, "reading a corpus", [&] {
      std::optional<CorpusRow> out;
      const pqxx::result rows = query(
          impl_->connection, "corpus",
          "SELECT corpus, owner, first_seq, last_seq FROM corpus WHERE log_no = $1 AND corpus = $2 AND first_seq < $3",
          impl_->params().text(corpus).integer(impl_->place.size));
      if (!rows.empty())
        out = CorpusRow{text_of(rows[0][0]), text_of(rows[0][1]), integer_of(rows[0][2]), integer_of(rows[0][3])};
      return out;
    });
  };
  return read_fitting(*impl_, corpus, read,
                      [&](std::optional<CorpusRow>& row, const DocumentLives& lives) -> Result<bool> {
                        const auto recorded = lives.corpora();
                        const auto known = recorded.find(std::string(corpus));
                        if (!row || known == recorded.end()) return row.has_value() == (known != recorded.end());
                        return put_owner(*this, *row, known->second);
                      });
}

Result<std::optional<DocumentRow>> Reader::document(std::string_view corpus, std::string_view document,
                                                    std::optional<std::int64_t> as_of) {
  const auto read = [&] {
    return held(*this, *impl_, guarded(impl_->connection, "reading a document", [&] {
      if (!as_of) {
        return first_document(
            query(impl_->connection, "document_current",
                  "SELECT " MUNIMENT_DOCUMENT_COLUMNS
                  " FROM document d WHERE d.log_no = $1 AND d.corpus = $2 AND d.document = $3 AND d.valid_to IS NULL",
                  impl_->params().text(corpus).text(document)));
      }
      return first_document(
          query(impl_->connection, "document_as_of",
                "SELECT " MUNIMENT_DOCUMENT_COLUMNS
                " FROM document d WHERE d.log_no = $1 AND d.corpus = $2 AND d.document = $3 AND d.seq <= $4 "
                "AND (d.valid_to IS NULL OR d.valid_to > $4) ORDER BY d.seq DESC LIMIT 1",
                impl_->params().text(corpus).text(document).integer(*as_of)));
    }));
  };
  return read_fitting(*impl_, corpus, read, [&](const std::optional<DocumentRow>& row, const DocumentLives& lives) {
    return seq_of(row) == lives.current(corpus, document, as_of);
  });
}

Result<std::map<std::string, DocumentRow>> Reader::current_documents(std::string_view corpus,
                                                                     const std::vector<std::string>& documents) {
  const auto read = [&] {
    return held(*this, *impl_, guarded(impl_->connection, "reading documents", [&] {
      std::map<std::string, DocumentRow> out;
      for (const pqxx::row& row :
           query(impl_->connection, "documents_current",
                 "SELECT " MUNIMENT_DOCUMENT_COLUMNS " FROM document d "
                 "WHERE d.log_no = $1 AND d.corpus = $2 AND d.document = ANY ($3::text[]) AND d.valid_to IS NULL",
                 impl_->params().text(corpus).texts(documents))) {
        DocumentRow document = document_of(row);
        std::string id = document.document;
        out.emplace(std::move(id), std::move(document));
      }
      return out;
    }));
  };
  return read_fitting(*impl_, corpus, read,
                      [&](const std::map<std::string, DocumentRow>& rows, const DocumentLives& lives) {
                        return std::ranges::all_of(documents, [&](const std::string& document) {
                          const auto row = rows.find(document);
                          return (row == rows.end() ? -1 : row->second.seq) == lives.current(corpus, document, {});
                        });
                      });
}

Result<bool> Reader::has_tag(const std::vector<std::string>& corpora, std::string_view tag) {
  return guarded(impl_->connection, "reading tags", [&] {
    return !query(impl_->connection, "document_tag",
                  "SELECT 1 FROM document WHERE log_no = $1 AND corpus = ANY ($2::text[]) AND $3 = ANY (tags) LIMIT 1",
                  impl_->params().texts(corpora).text(tag))
                .empty();
  });
}

Result<bool> Reader::has_documents(const std::vector<std::string>& corpora, const std::vector<std::string>& sources) {
  constexpr std::string_view current =
      "SELECT 1 FROM document WHERE log_no = $1 AND corpus = ANY ($2::text[]) AND valid_to IS NULL";
  return guarded(impl_->connection, "looking for documents", [&] {
    Params params = impl_->params().texts(corpora);
    if (sources.empty())
      return !query(impl_->connection, "any_document", fmt::format("{} LIMIT 1", current), params).empty();
    return !query(impl_->connection, "document_from", fmt::format("{} AND sources && $3::text[] LIMIT 1", current),
                  params.texts(sources))
                .empty();
  });
}

Result<std::optional<DocumentRow>> Reader::document_revision(std::string_view corpus, std::string_view document,
                                                             std::string_view revision) {
  return held(*this, *impl_, guarded(impl_->connection, "reading a revision", [&] {
    return first_document(query(
        impl_->connection, "document_revision",
        "SELECT " MUNIMENT_DOCUMENT_COLUMNS
        " FROM document d WHERE d.log_no = $1 AND d.corpus = $2 AND d.document = $3 AND d.revision = $4 AND d.seq < $5 "
        "ORDER BY d.valid_to IS NULL DESC, d.seq DESC LIMIT 1",
        impl_->params().text(corpus).text(document).text(revision).integer(impl_->place.size)));
  }));
}

Result<std::vector<DocumentRow>> Reader::documents(std::string_view corpus, const std::optional<std::string>& after,
                                                   std::size_t limit) {
  const auto read = [&] {
    return held(*this, *impl_, guarded(impl_->connection, "listing documents", [&] {
      return rows_of(query(impl_->connection, "documents",
                           "SELECT " MUNIMENT_DOCUMENT_COLUMNS
                           " FROM document d WHERE d.log_no = $1 AND d.corpus = $2 AND d.valid_to IS NULL "
                           "AND ($3::text IS NULL OR d.document > $3) ORDER BY d.document LIMIT $4",
                           impl_->params().text(corpus).text_or_null(after).integer(static_cast<std::int64_t>(limit))),
                     document_of);
    }));
  };
  // The lives have no order by name, so that the first page compares the number of all documents.
  return read_fitting(*impl_, corpus, read, [&](const std::vector<DocumentRow>& rows, const DocumentLives& lives) {
    if (!std::ranges::all_of(rows, &DocumentRow::current)) return false;
    if (after) return true;
    const auto count = guarded(impl_->connection, "counting documents", [&] {
      return integer_of(query(impl_->connection, "documents_count",
                              "SELECT count(*) FROM document WHERE log_no = $1 AND corpus = $2 AND valid_to IS NULL",
                              impl_->params().text(corpus))[0][0]);
    });
    return count && *count == lives.current_count(corpus);
  });
}

Result<std::map<std::int64_t, std::optional<Time>>> Reader::carried(const std::vector<std::int64_t>& seqs) {
  return guarded(impl_->connection, "reading the origins of carried documents", [&] {
    std::map<std::int64_t, std::optional<Time>> found;
    const pqxx::result rows = query(
        impl_->connection, "carried_documents",
        "WITH RECURSIVE back AS ("
        "SELECT e.seq AS asked, e.log_no, e.recorded_at, e.body, 0 AS logs FROM event e "
        "WHERE e.log_no = $1 AND e.seq = ANY ($2::bigint[]) AND e.body #>> '{carried_from,seq}' IS NOT NULL "
        "UNION ALL SELECT b.asked, e.log_no, e.recorded_at, e.body, b.logs + 1 FROM back b JOIN event e ON e.log_no < b.log_no "
        "AND e.log_no = (b.body #>> '{carried_from,log_no}')::smallint AND e.seq = (b.body #>> '{carried_from,seq}')::bigint) "
        "SELECT DISTINCT ON (asked) asked, logs, " MUNIMENT_MICROS(
            "recorded_at") " FROM back ORDER BY asked, logs DESC",
        impl_->params().integers(seqs));
    for (const pqxx::row& row : rows)
      found[integer_of(row[0])] = integer_of(row[1]) > 0 ? std::optional(time_of(row[2])) : std::nullopt;
    return found;
  });
}

Result<std::vector<DocumentRow>> Reader::document_history(std::string_view corpus, std::string_view document,
                                                          std::optional<std::int64_t> before, std::size_t limit) {
  const auto read = [&] {
    return held(*this, *impl_, guarded(impl_->connection, "reading a document's history", [&] {
      return rows_of(query(impl_->connection, "document_history",
                           "SELECT " MUNIMENT_DOCUMENT_COLUMNS
                           " FROM document d WHERE d.log_no = $1 AND d.corpus = $2 AND d.document = $3 "
                           "AND ($4::bigint IS NULL OR d.seq < $4) ORDER BY d.seq DESC LIMIT $5",
                           impl_->params()
                               .text(corpus)
                               .text(document)
                               .text_or_null(before ? std::optional(std::to_string(*before)) : std::nullopt)
                               .integer(static_cast<std::int64_t>(limit))),
                     document_of);
    }));
  };
  return read_fitting(*impl_, corpus, read, [&](const std::vector<DocumentRow>& rows, const DocumentLives& lives) {
    return std::ranges::equal(rows, lives.revisions(corpus, document, before, limit), {}, &DocumentRow::seq);
  });
}

Result<std::vector<DocumentRow>> Reader::document_lives(std::int64_t from_seq, std::size_t limit) {
  return guarded(impl_->connection, "reading the lives of documents", [&] {
    std::vector<DocumentRow> out;
    for (const pqxx::row& row :
         query(impl_->connection, "document_lives",
               "SELECT seq, corpus, document, first_chunk, chunks, valid_to, ended_by, removed_at FROM document "
               "WHERE log_no = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
               impl_->params().integer(from_seq).integer(static_cast<std::int64_t>(limit)))) {
      DocumentRow& life = out.emplace_back();
      life.seq = integer_of(row[0]);
      life.corpus = text_of(row[1]);
      life.document = text_of(row[2]);
      life.first_chunk = integer_of(row[3]);
      life.chunks = integer_of(row[4]);
      life.valid_to = integer_if(row[5]);
      life.ended_by = text_if(row[6]);
      life.removed_at = integer_if(row[7]);
    }
    return out;
  });
}

Result<std::vector<DocumentRow>> Reader::documents_added(SeqSpan span, std::size_t limit) {
  return held(*this, *impl_, guarded(impl_->connection, "reading new revisions", [&] {
    return rows_of(query(impl_->connection, "documents_added",
                         "SELECT " MUNIMENT_DOCUMENT_COLUMNS
                         " FROM document d WHERE d.log_no = $1 AND d.seq >= $2 AND d.seq < $3 ORDER BY d.seq LIMIT $4",
                         impl_->params().integer(span.from).integer(span.to).integer(static_cast<std::int64_t>(limit))),
                   document_of);
  }));
}

Result<std::vector<DocumentRow>> Reader::documents_ended(SeqSpan span) {
  return guarded(impl_->connection, "reading ended revisions", [&] {
    return rows_of(query(impl_->connection, "documents_ended",
                         "SELECT " MUNIMENT_DOCUMENT_COLUMNS
                         " FROM document d WHERE d.log_no = $1 AND ((d.valid_to >= $2 AND d.valid_to < $3) OR "
                         "(d.removed_at >= $2 AND d.removed_at < $3)) ORDER BY d.seq",
                         impl_->params().integer(span.from).integer(span.to)),
                   document_of);
  });
}

Result<std::vector<ChunkRow>> Reader::chunks_of(const DocumentRow& document) {
  ASSIGN_OR_RETURN(std::vector<ChunkRow> rows, guarded(impl_->connection, "reading a document's chunks", [&] {
                     return rows_of(query(impl_->connection, "chunks_of",
                                          "SELECT " MUNIMENT_CHUNK_COLUMNS
                                          " FROM chunk c WHERE c.log_no = $1 AND c.seq = $2 ORDER BY c.number",
                                          impl_->params().integer(document.seq)),
                                    chunk_of);
                   }));
  std::vector<ChunkInDocument> passages;
  for (ChunkRow& row : rows) passages.push_back({std::move(row), document, {}});
  RETURN_IF_ERROR(hold_chunks(*this, *impl_, passages));
  rows.clear();
  for (ChunkInDocument& passage : passages) {
    if (!passage.document.differs.empty()) return Error(Errc::corrupt, passage.document.differs);
    rows.push_back(std::move(passage.chunk));
  }
  return rows;
}

Result<std::vector<ChunkInDocument>> Reader::chunks(const std::vector<std::int64_t>& chunk_ids) {
  return held_chunks(*this, *impl_, guarded(impl_->connection, "reading chunks", [&] {
    return rows_of(
        query(impl_->connection, "chunks_by_id", MUNIMENT_CHUNK_IN_DOCUMENT "AND c.chunk_id = ANY ($2::bigint[])",
              impl_->params().integers(chunk_ids)),
        chunk_in_document);
  }));
}

// A single statement, so that a batch of pointers is validated within milliseconds.
Result<std::vector<CitedDocument>> Reader::cited(const std::vector<Citation>& citations) {
  std::vector<std::string> corpora, documents, revisions;
  std::vector<std::int64_t> numbers;
  for (const Citation& citation : citations) {
    corpora.push_back(citation.corpus);
    documents.push_back(citation.document);
    revisions.push_back(citation.revision);
    numbers.push_back(citation.number);
  }
  ASSIGN_OR_RETURN(
      auto found, guarded(impl_->connection, "reading what is cited", [&] {
        std::vector<CitedDocument> out(citations.size());
        for (
            const pqxx::row& row : query(
                impl_->connection, "cited",
                "SELECT " MUNIMENT_DOCUMENT_COLUMNS ", " MUNIMENT_CHUNK_COLUMNS
                ", coalesce(a.path, ''), w.place, k.owner, n.revision, coalesce(a.hash = repeat('0', 64), false) "
                "FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS w(corpus, document, revision, number, place) "
                "JOIN corpus k ON k.log_no = $1 AND k.corpus = w.corpus AND k.first_seq < $6 "
                "LEFT JOIN document n ON n.log_no = $1 AND n.corpus = w.corpus AND n.document = w.document AND n.valid_to IS NULL AND n.seq < $6 "
                "LEFT JOIN LATERAL (SELECT * FROM document r WHERE r.log_no = $1 AND r.corpus = w.corpus AND r.document = w.document "
                "AND r.revision = w.revision AND r.seq < $6 ORDER BY r.valid_to IS NULL DESC, r.seq DESC LIMIT 1) d ON true "
                "LEFT JOIN chunk c ON c.log_no = $1 AND c.seq = d.seq AND c.number = w.number "
                "LEFT JOIN artifact a ON a.artifact_id = coalesce(d.text_artifact_id, d.artifact_id)",
                impl_->params().texts(corpora).texts(documents).texts(revisions).integers(numbers).integer(
                    impl_->place.size))) {
          constexpr int rest = document_column_count + chunk_column_count;
          CitedDocument& found = out.at(static_cast<std::size_t>(integer_of(row[rest + 1])) - 1);
          found.owner = text_of(row[rest + 2]);
          found.current = text_if(row[rest + 3]);
          if (row[0].is_null()) continue;
          found.document = document_at(row, 0);
          if (!row[document_column_count].is_null()) found.chunk = chunk_at(row, document_column_count);
          found.path = text_of(row[rest]);
          found.erased = row[rest + 4].as<bool>();
        }
        return out;
      }));
  RETURN_IF_ERROR(hold_cited(*this, *impl_, citations, found));
  return found;
}

Result<std::vector<ChunkInDocument>> Reader::chunks_of_documents(const std::vector<std::int64_t>& seqs) {
  return held_chunks(*this, *impl_, guarded(impl_->connection, "reading documents' chunks", [&] {
    return rows_of(query(impl_->connection, "chunks_of_documents",
                         MUNIMENT_CHUNK_IN_DOCUMENT "AND c.seq = ANY ($2::bigint[]) ORDER BY c.chunk_id",
                         impl_->params().integers(seqs)),
                   chunk_in_document);
  }));
}

Result<std::vector<ChunkInDocument>> Reader::chunks_of_corpus(std::string_view corpus, std::int64_t after,
                                                              std::int64_t before_seq, bool current_only,
                                                              std::size_t limit) {
  return held_chunks(*this, *impl_, guarded(impl_->connection, "reading a corpus' chunks", [&] {
    return rows_of(
        query(impl_->connection, "chunks_of_corpus",
              MUNIMENT_CHUNK_IN_DOCUMENT
              "AND d.corpus = $2 AND c.chunk_id > $3 AND d.seq < $4 AND (d.removed_at IS NULL OR d.removed_at >= $4) "
              "AND (NOT $5::boolean OR d.valid_to IS NULL) ORDER BY c.chunk_id LIMIT $6",
              impl_->params()
                  .text(corpus)
                  .integer(after)
                  .integer(before_seq)
                  .text(current_only ? "t" : "f")
                  .integer(static_cast<std::int64_t>(limit))),
        chunk_in_document);
  }));
}

Result<std::int64_t> Reader::count_of_source(std::string_view source, const std::optional<std::string>& owner,
                                             std::optional<std::int16_t> newer_log) {
  return guarded(impl_->connection, "counting a source's documents", [&] {
    return integer_of(query(
        impl_->connection, "count_of_source",
        "SELECT count(*) FROM document d LEFT JOIN corpus c USING (log_no, corpus) WHERE d.log_no = $1 "
        "AND d.sources @> ARRAY[$2] AND d.removed_at IS NULL AND ($3::text IS NULL OR coalesce(d.owner, c.owner) = $3) "
        "AND NOT EXISTS (SELECT FROM document n WHERE n.log_no = $4 AND n.corpus = d.corpus AND n.document = d.document AND n.revision = d.revision)",
        impl_->params().text(source).text_or_null(owner).integer(newer_log.value_or(0)))[0][0]);
  });
}

Result<std::int64_t> Reader::last_corpus_change() {
  return guarded(impl_->connection, "reading the last change of the corpora", [&] {
    return integer_of(query(
        impl_->connection, "last_corpus_change",
        "SELECT greatest((SELECT max(last_seq) FROM corpus WHERE log_no = $1), (SELECT max(seq) FROM feedback WHERE log_no = $1), -1)",
        impl_->params())[0][0]);
  });
}

Result<bool> Reader::has_feedback() {
  return guarded(impl_->connection, "looking for feedback", [&] {
    return !query(impl_->connection, "has_feedback", "SELECT 1 FROM feedback WHERE log_no = $1 LIMIT 1",
                  impl_->params())
                .empty();
  });
}

Result<std::map<std::int64_t, double>> Reader::feedback_means(const std::vector<std::int64_t>& chunk_ids,
                                                              std::int64_t before_seq) {
  return guarded(impl_->connection, "reading feedback", [&] {
    std::map<std::int64_t, double> out;
    for (const pqxx::row& row : query(impl_->connection, "feedback_means",
                                      "SELECT chunk_id, avg(value)::text FROM feedback WHERE log_no = $1 "
                                      "AND chunk_id = ANY ($2::bigint[]) AND seq < $3 GROUP BY chunk_id",
                                      impl_->params().integers(chunk_ids).integer(before_seq))) {
      out.emplace(integer_of(row[0]), std::stod(text_of(row[1])));
    }
    return out;
  });
}

}  // namespace muniment::store
