// Writes the rows that followers keep. The functions throw, as those of pq.hpp.
#pragma once

#include "store/read/pq.hpp"
#include "store/tables/follower.hpp"
#include "store/tables/report_fold.hpp"

namespace muniment::store {

void write_followed(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no, const FollowedRows& rows,
                    CorpusEffects* effects = nullptr);

// Writes the corpus tables (followed_corpus.cpp). Assigns ids to chunks in the order of the log. `effects` may be null.
void write_followed_corpus(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const std::vector<CorpusChange>& changes, CorpusEffects* effects);

// Writes the report tables (followed_report.cpp), and reads the newest spans of each key that have no end yet.
void write_followed_report(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const ReportRows& rows);
OpenSpans open_spans(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                     const std::map<SpanKey, std::int64_t>& wanted);

}  // namespace muniment::store
