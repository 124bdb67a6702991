// The schema, held against what the migrations make (schema/sql/definitions.txt): a view that lies about actors, a
// function or a trigger that was replaced, a column, constraint, rule or policy that was changed, and the list of the
// migrations themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

// Only a schema that this verifier knows can be compared. Answers why this one is not known, and otherwise nothing:
// whoever takes a row from schema_migration, or puts one there, must not thereby get a verdict that says nothing of it.
// On a version of Postgres whose words are not known nothing is compared either; `not_checked` says so. What somebody
// added beside the schema is no finding: `warnings` name it.
Result<std::string> check_definitions(Connection& connection, Findings& findings, std::vector<std::string>& warnings,
                                      std::vector<std::string>& not_checked);

// One of the tables that the migrations make in `public`.
bool is_own_table(std::string_view table);

// A file of schema/sql/, as it was when this was built.
std::string_view embedded_definitions(std::string_view file);

}  // namespace muniment::verify
