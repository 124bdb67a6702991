#include "verify/postgres/shadows.hpp"

#include <fmt/format.h>

#include <string>

namespace muniment::verify {
namespace {

constexpr int arguments_looked_at = 8;

// Condition for a function with an argument of a user-defined type, which the verifier's calls never match.
std::string takes_own_type() {
  std::string sql = "false";
  for (int i = 0; i < arguments_looked_at; ++i)
    sql += fmt::format(" OR COALESCE(f.proargtypes[{}] OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid, false)", i);
  return sql;
}

// The query itself uses nothing that a shadow could replace: every operator is qualified with its schema, and the types
// match exactly. Oids below 16384 belong to Postgres. int4[] (1007) is left to the extension intarray.
std::string shadows_sql() {
  return fmt::format(R"(
WITH place AS (SELECT n.oid, n.nspname FROM pg_catalog.pg_namespace n
               WHERE n.nspname OPERATOR(pg_catalog.=) 'public'::pg_catalog.name OR n.oid OPERATOR(pg_catalog.=) 11::pg_catalog.oid)
SELECT 'function', p.nspname, f.proname FROM pg_catalog.pg_proc f JOIN place p ON p.oid OPERATOR(pg_catalog.=) f.pronamespace
WHERE f.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND NOT ({0})
  AND EXISTS (SELECT FROM pg_catalog.pg_proc b WHERE b.proname OPERATOR(pg_catalog.=) f.proname AND b.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc b WHERE b.proname OPERATOR(pg_catalog.=) f.proname AND b.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
                    AND b.proargtypes OPERATOR(pg_catalog.=) f.proargtypes)
UNION ALL
SELECT 'operator', p.nspname, o.oprname FROM pg_catalog.pg_operator o JOIN place p ON p.oid OPERATOR(pg_catalog.=) o.oprnamespace
WHERE o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND o.oprleft OPERATOR(pg_catalog.<) 16384::pg_catalog.oid AND o.oprright OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
  AND o.oprleft OPERATOR(pg_catalog.<>) 1007::pg_catalog.oid AND o.oprright OPERATOR(pg_catalog.<>) 1007::pg_catalog.oid
  AND EXISTS (SELECT FROM pg_catalog.pg_operator b WHERE b.oprname OPERATOR(pg_catalog.=) o.oprname AND b.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid)
UNION ALL
SELECT 'cast', 'pg_catalog'::pg_catalog.name, t.typname FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) c.castsource
WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND c.castsource OPERATOR(pg_catalog.<) 16384::pg_catalog.oid AND c.casttarget OPERATOR(pg_catalog.<) 16384::pg_catalog.oid)",
                     takes_own_type());
}

}  // namespace

Status check_shadows(Connection& connection, Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy(shadows_sql()));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    findings.add(
        {Check::definition, -1, "", "only the functions, operators and casts of Postgres",
         fmt::format(
             "{} {}.{}, which is called instead of one of them: results that this verification read may be wrong",
             row.bytes(0), row.bytes(1), row.bytes(2))});
  }
}

}  // namespace muniment::verify
