#include "store/tables/prices.hpp"

#include <fmt/format.h>

#include "store/read/pq.hpp"

namespace muniment::store {

Status keep_prices(Connection& connection, const PriceList& list) {
  const std::string version = version_of(list.models);
  std::vector<std::string> models, input, output, cached_input, cache_write;
  for (const auto& [model, price] : list.models) {
    models.push_back(model);
    input.push_back(fmt::format("{}", price.input));
    output.push_back(fmt::format("{}", price.output));
    cached_input.push_back(fmt::format("{}", price.cached_input.value_or(price.input)));
    cache_write.push_back(fmt::format("{}", price.cache_write.value_or(price.input)));
  }
  return guarded(connection, "storing the prices of models", [&] {
    pqxx::work work(*connection.impl().link);
    work.exec("LOCK TABLE report_price IN SHARE ROW EXCLUSIVE MODE");  // another daemon of the database may start too
    query(connection, work, "prices_end", "UPDATE report_price SET current = false WHERE current AND version <> $1",
          Params().text(version));
    query(connection, work, "prices_put",
          "INSERT INTO report_price (version, model, input, output, cached_input, cache_write, current, list_date) "
          "SELECT $1, u.*, true, nullif($7, '')::date "
          "FROM unnest($2::text[], $3::numeric[], $4::numeric[], $5::numeric[], $6::numeric[]) u "
          "ON CONFLICT (version, model) DO UPDATE SET current = true, list_date = EXCLUDED.list_date "
          "WHERE NOT report_price.current OR report_price.list_date IS DISTINCT FROM EXCLUDED.list_date",
          Params()
              .text(version)
              .texts(models)
              .texts(input)
              .texts(output)
              .texts(cached_input)
              .texts(cache_write)
              .text(list.date));
    work.commit();
    return Done{};
  });
}

}  // namespace muniment::store
