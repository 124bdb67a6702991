// Writing the rows that followers keep. Throws, as everything on pq.hpp.
#pragma once

#include "store/follower.hpp"
#include "store/pq.hpp"

namespace muniment::store {

void write_followed(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no, const FollowedRows& rows);

// The corpus part of it (followed_corpus.cpp). Gives out the ids of chunks: the next ones, in the order of the log.
void write_followed_corpus(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no,
                           const std::vector<CorpusChange>& changes);

}  // namespace muniment::store
