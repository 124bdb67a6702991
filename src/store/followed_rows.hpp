// Writing the rows that followers keep. Throws, as everything on pq.hpp.
#pragma once

#include "store/follower.hpp"
#include "store/pq.hpp"

namespace muniment::store {

void write_followed(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no, const FollowedRows& rows);

}  // namespace muniment::store
