// Implements reads of costs. The views of migrations/0026_prices.sql compute every estimate.
#include "store/read/reader_impl.hpp"

namespace muniment::store {

Result<std::vector<AnswerCost>> Reader::answer_costs(std::int64_t run_no, std::int64_t after, std::size_t limit) {
  return guarded(impl_->connection, "reading the costs of a run", [&] {
    std::vector<AnswerCost> costs;
    for (const pqxx::row& row :
         query(impl_->connection, "answer_costs",
               "SELECT seq, ended_seq, coalesce(answered_by, name), trim_scale(coalesce(cost, estimate))::text, "
               "coalesce(currency, 'USD'), cost_basis FROM report_model_span WHERE log_no = $1 AND run_no = $2 "
               "AND seq > $3 AND cost_basis IS NOT NULL AND ended_seq < $5 ORDER BY seq LIMIT $4",
               impl_->params()
                   .integer(run_no)
                   .integer(after)
                   .integer(static_cast<std::int64_t>(limit))
                   .integer(impl_->place.size))) {
      costs.push_back({integer_of(row[0]), integer_of(row[1]), text_if(row[2]).value_or(""), text_of(row[3]),
                       text_of(row[4]), text_of(row[5])});
    }
    return costs;
  });
}

}  // namespace muniment::store
