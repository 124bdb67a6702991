// Checks the schema against the migrations (schema/sql/definitions.txt). It finds replaced views, functions and
// triggers, changed columns, constraints, rules and policies, and changes to the list of migrations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "verify/finding.hpp"
#include "verify/postgres/postgres.hpp"

namespace muniment::verify {

// Compares the definitions of a schema that this verifier knows. Returns the reason if the schema is unknown, otherwise
// an empty text; the caller must not report an unknown schema as verified, because anyone who can change
// schema_migration can make it unknown. For a version of Postgres whose wordings are not known, the function compares
// nothing and adds a line to `not_checked`. Objects that users added beside the schema are named in `warnings`; they
// are not findings.
Result<std::string> check_definitions(Connection& connection, Findings& findings, std::vector<std::string>& warnings,
                                      std::vector<std::string>& not_checked);

// Returns whether the migrations create this table in `public`.
bool is_own_table(std::string_view table);

// Returns a file of schema/sql/ as embedded at build time.
std::string_view embedded_definitions(std::string_view file);

}  // namespace muniment::verify
