// Stores the prices of models in the table report_price, from which the report views estimate costs.
#pragma once

#include "base/config/prices.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// Makes these prices the current ones. Other lists stay in the table, without being current. Needs the role writer.
Status keep_prices(Connection& connection, const PriceList& list);

}  // namespace muniment::store
