// Implements reads of the ledger (claims and evidence) and the pointer catalogue. Lists are in the order of the log,
// and `after` is the last element of the preceding page.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "store/read/reader_impl.hpp"

namespace muniment::store {

namespace {

#define MUNIMENT_CLAIM_COLUMNS \
  "claim_id, run_id, step_id, text, pointers, status, " MUNIMENT_MICROS("created_at") ", seq"

#define MUNIMENT_EVIDENCE_COLUMNS                                                             \
  "evidence_id, run_id, type, content, pointer, hash, validator_id, actor, " MUNIMENT_MICROS( \
      "created_at") ", seq, corpus_id, index_id, chunk_id, span, task_id, command_id"

ClaimRow claim_of(const pqxx::row& row) {
  ClaimRow claim;
  claim.claim_id = uuid_of(row[0]);
  claim.run_id = text_of(row[1]);
  claim.step_id = text_if(row[2]);
  claim.text = text_of(row[3]);
  claim.pointers = text_of(row[4]);
  claim.status = text_of(row[5]);
  claim.created_at = time_of(row[6]);
  claim.seq = integer_of(row[7]);
  return claim;
}

EvidenceRow evidence_of(const pqxx::row& row) {
  EvidenceRow evidence;
  evidence.evidence_id = uuid_of(row[0]);
  evidence.run_id = text_of(row[1]);
  evidence.type = text_of(row[2]);
  evidence.content = text_if(row[3]);
  evidence.pointer = text_if(row[4]);
  evidence.hash = hex_hash_of(row[5]);
  evidence.validator_id = text_if(row[6]);
  evidence.actor = text_of(row[7]);
  evidence.created_at = time_of(row[8]);
  evidence.seq = integer_of(row[9]);
  evidence.corpus_id = text_if(row[10]);
  evidence.index_id = text_if(row[11]);
  evidence.chunk_id = text_if(row[12]);
  evidence.span = text_if(row[13]);
  evidence.task_id = text_if(row[14]);
  evidence.command_id = uuid_if(row[15]);
  return evidence;
}

template <typename Row>
std::optional<Row> first_of(const pqxx::result& rows, Row (*row_of)(const pqxx::row&)) {
  if (rows.empty()) return {};
  return row_of(rows[0]);
}

}  // namespace

Result<std::vector<ClaimRow>> Reader::claims(std::string_view run_id, std::optional<Uuid> after, std::size_t limit) {
  return held_rows(*this, *impl_,
                   guarded(impl_->connection, "listing claims",
                           [&] {
                             Params params = impl_->params();
                             params.text(run_id)
                                 .uuid_or_null(after)
                                 .integer(static_cast<std::int64_t>(limit))
                                 .integer(impl_->place.size);
                             return rows_of(
                                 query(impl_->connection, "claims",
                                       "SELECT " MUNIMENT_CLAIM_COLUMNS
                                       " FROM claim WHERE log_no = $1 AND run_id = $2 AND ($3::uuid IS NULL OR "
                                       "(seq, claim_id) > (SELECT seq, claim_id FROM claim WHERE claim_id = $3))"
                                       " AND seq < $5 ORDER BY seq, claim_id LIMIT $4",
                                       params),
                                 claim_of);
                           }),
                   hold_claims);
}

Result<std::optional<ClaimRow>> Reader::claim(const Uuid& claim_id) {
  return held_rows(*this, *impl_,
                   guarded(impl_->connection, "reading a claim",
                           [&] {
                             return first_of(query(impl_->connection, "claim",
                                                   "SELECT " MUNIMENT_CLAIM_COLUMNS
                                                   " FROM claim WHERE log_no = $1 AND claim_id = $2 AND seq < $3",
                                                   impl_->params().uuid(claim_id).integer(impl_->place.size)),
                                             claim_of);
                           }),
                   hold_claims);
}

Result<std::vector<EvidenceRow>> Reader::evidence(std::optional<std::string> run_id, std::optional<std::string> type,
                                                  std::int64_t after_seq, std::size_t limit) {
  EvidenceFilter filter;
  filter.run_id = std::move(run_id);
  filter.type = std::move(type);
  filter.after_seq = after_seq;
  return evidence(filter, limit);
}

Result<std::vector<EvidenceRow>> Reader::evidence(const EvidenceFilter& filter, std::size_t limit) {
  auto rows = guarded(impl_->connection, "listing evidence", [&] {
    Params params = impl_->params();
    params.text_or_null(filter.run_id)
        .text_or_null(filter.type)
        .integer(filter.after_seq)
        .integer(static_cast<std::int64_t>(limit))
        .integer(impl_->place.size)
        .text_or_null(filter.task_id)
        .text_or_null(filter.validator);
    if (filter.of_commands)
      return rows_of(query(impl_->connection, "evidence_of_commands",
                           "SELECT " MUNIMENT_EVIDENCE_COLUMNS
                           " FROM evidence WHERE log_no = $1 AND ($2::text IS NULL OR run_id = $2)"
                           " AND ($3::text IS NULL OR type = $3) AND ($7::text IS NULL OR task_id = $7)"
                           " AND ($8::text IS NULL OR actor = $8 OR validator_id = $8)"
                           " AND seq > $4 AND seq < $6 AND command_id IS NOT NULL ORDER BY seq DESC LIMIT $5",
                           params),
                     evidence_of);
    return rows_of(query(impl_->connection, "evidence",
                         "SELECT " MUNIMENT_EVIDENCE_COLUMNS
                         " FROM evidence WHERE log_no = $1 AND ($2::text IS NULL OR run_id = $2)"
                         " AND ($3::text IS NULL OR type = $3) AND ($7::text IS NULL OR task_id = $7)"
                         " AND ($8::text IS NULL OR actor = $8 OR validator_id = $8)"
                         " AND seq > $4 AND seq < $6 ORDER BY seq LIMIT $5",
                         params),
                   evidence_of);
  });
  return filter.held ? held_rows(*this, *impl_, std::move(rows), hold_evidence) : std::move(rows);
}

Result<std::vector<EvidenceRow>> Reader::evidence_uses(const Uuid& evidence_id, std::optional<std::string> run_id,
                                                       const std::optional<std::string>& owner, std::size_t limit) {
  return guarded(impl_->connection, "reading evidence", [&] {
    Params params = impl_->params();
    params.uuid(evidence_id)
        .text_or_null(run_id)
        .text_or_null(owner)
        .integer(static_cast<std::int64_t>(limit))
        .integer(impl_->place.size);
    return rows_of(
        query(
            impl_->connection, "evidence_uses",
            "SELECT " MUNIMENT_EVIDENCE_COLUMNS
            " FROM evidence e WHERE log_no = $1 AND evidence_id = $2 AND ($3::text IS NULL OR run_id = $3)"
            " AND ($4::text IS NULL OR actor = $4 OR NOT EXISTS (SELECT FROM run r WHERE r.log_no = $1 AND r.run_id = e.run_id"
            " AND r.owner <> $4)) AND seq < $6 ORDER BY seq LIMIT $5",
            params),
        evidence_of);
  });
}

Result<std::optional<EvidenceRow>> Reader::evidence_of_pointer(std::string_view run_id, std::string_view pointer,
                                                               const std::optional<std::string>& actor) {
  return held_rows(
      *this, *impl_,
      guarded(impl_->connection, "looking for evidence of a pointer",
              [&] {
                Params params = impl_->params();
                params.text(run_id).text(pointer).text_or_null(actor);
                return first_of(
                    query(impl_->connection, "evidence_of_pointer",
                          "SELECT " MUNIMENT_EVIDENCE_COLUMNS
                          " FROM evidence WHERE log_no = $1 AND run_id = $2 AND pointer = $3 AND chunk_id IS NOT NULL"
                          " AND ($4::text IS NULL OR actor = $4) ORDER BY seq LIMIT 1",
                          params),
                    evidence_of);
              }),
      hold_evidence);
}

Result<std::vector<EvidenceUse>> Reader::evidence_with_hash(const Hash& hash, std::int64_t before_seq,
                                                            std::size_t limit) {
  return guarded(impl_->connection, "looking for evidence with the same content", [&] {
    Params params = impl_->params();
    params.text(to_hex(hash))
        .integer(std::min(before_seq, impl_->place.size))
        .integer(static_cast<std::int64_t>(limit));
    std::vector<EvidenceUse> uses;
    for (const pqxx::row& row :
         query(impl_->connection, "evidence_with_hash",
               "SELECT seq, evidence_id, run_id, actor, " MUNIMENT_MICROS(
                   "created_at") " FROM evidence WHERE log_no = $1 AND hash = $2 AND seq < $3 ORDER BY seq LIMIT $4",
               params)) {
      uses.push_back({integer_of(row[0]), uuid_of(row[1]), text_of(row[2]), text_of(row[3]), time_of(row[4])});
    }
    return uses;
  });
}

Result<std::optional<EvidenceRow>> Reader::accepted_of_suite(std::string_view suite,
                                                             const std::optional<std::string>& owner) {
  return held_rows(
      *this, *impl_,
      guarded(
          impl_->connection, "looking for accepted evidence of a test suite",
          [&] {
            // The index evidence_suite holds the hash; the text is compared too, because two texts may have the same
            // hash.
            return first_of(
                query(
                    impl_->connection, "accepted_of_suite",
                    "SELECT " MUNIMENT_EVIDENCE_COLUMNS " FROM evidence e WHERE log_no = $1 AND command_id IS NOT NULL"
                    " AND hashtextextended(content #>> '{command,suite}', 0) = hashtextextended($2::text, 0)"
                    " AND content #>> '{command,suite}' = $2 AND seq < $4"
                    " AND EXISTS (SELECT FROM task_evidence t WHERE t.log_no = $1 AND t.evidence_seq = e.seq AND t.seq < $4)"
                    " AND ($3::text IS NULL OR actor = $3 OR NOT EXISTS (SELECT FROM run r WHERE r.log_no = $1 AND r.run_id = e.run_id"
                    " AND r.owner <> $3)) ORDER BY seq DESC LIMIT 1",
                    impl_->params().text(suite).text_or_null(owner).integer(impl_->place.size)),
                evidence_of);
          }),
      hold_evidence);
}

Result<std::vector<EvidenceLinkRow>> Reader::evidence_links(const std::vector<Uuid>& claim_ids) {
  return guarded(impl_->connection, "reading what links evidence to claims", [&] {
    std::vector<EvidenceLinkRow> links;
    std::vector<std::string> ids;
    for (const Uuid& id : claim_ids) ids.push_back(id.text());
    for (
        const pqxx::row& row : query(
            impl_->connection, "evidence_links",
            "SELECT claim_id, run_id, evidence_id, relation, seq FROM evidence_link WHERE log_no = $1 AND claim_id = ANY ($2::text[]::uuid[]) AND seq < $3 ORDER BY seq",
            impl_->params().texts(ids).integer(impl_->place.size))) {
      links.push_back({uuid_of(row[0]), text_of(row[1]), uuid_of(row[2]), text_of(row[3]), integer_of(row[4])});
    }
    return links;
  });
}

Result<std::vector<ClaimRow>> Reader::claims_in(std::string_view run_id, SeqSpan span, std::size_t limit) {
  return rows_in(*impl_, "claims_in",
                 "SELECT " MUNIMENT_CLAIM_COLUMNS
                 " FROM claim WHERE log_no = $1 AND run_id = $2" MUNIMENT_IN_SPAN("seq"),
                 impl_->params().text(run_id), span, limit, claim_of);
}

Result<std::vector<EvidenceRow>> Reader::evidence_in(std::string_view run_id, SeqSpan span, std::size_t limit) {
  return rows_in(*impl_, "evidence_in",
                 "SELECT " MUNIMENT_EVIDENCE_COLUMNS
                 " FROM evidence WHERE log_no = $1 AND run_id = $2" MUNIMENT_IN_SPAN("seq"),
                 impl_->params().text(run_id), span, limit, evidence_of);
}

Result<std::set<std::string>> Reader::needed(const std::vector<std::string>& pointers) {
  return guarded(impl_->connection, "looking for what needs pointers", [&] {
    std::set<std::string> found;
    for (const pqxx::row& row :
         query(impl_->connection, "needed",
               "SELECT DISTINCT pointer FROM pointer WHERE log_no = $1 AND pointer = ANY($2::text[]) AND seq < $3 "
               "AND run_id <> '_log'",
               impl_->params().texts(pointers).integer(impl_->place.size))) {
      found.insert(text_of(row[0]));
    }
    return found;
  });
}

}  // namespace muniment::store
