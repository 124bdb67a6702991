// Writing the rows that followers keep. Throws, as everything on pq.hpp.
#pragma once

#include "store/read/pq.hpp"
#include "store/tables/follower.hpp"
#include "store/tables/report_fold.hpp"

namespace muniment::store {

void write_followed(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                    const FollowedRows& rows);

// The corpus part of it (followed_corpus.cpp). Gives out the ids of chunks: the next ones, in the order of the log.
void write_followed_corpus(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const std::vector<CorpusChange>& changes);

// The report tables (followed_report.cpp): what is written, and the spans that have no end yet, the newest of each key.
void write_followed_report(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const ReportRows& rows);
OpenSpans open_spans(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                     const std::map<SpanKey, std::int64_t>& wanted);

}  // namespace muniment::store
