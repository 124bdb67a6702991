#include "verify/postgres/definitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/crypto/sha256.hpp"
#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t added_shown_max = 5;
constexpr std::string_view migration_kind = "migration ";

struct Known {
  std::string postgres;                                         // the major version
  std::map<std::string, std::string> migrations;                // hash by name
  std::map<std::string, std::vector<std::string>> definitions;  // hashes of the accepted wordings, by kind and name
};

// Parses lines of a hash, a space and a name.
Known read_known() {
  Known known;
  std::string_view rest = embedded_definitions("definitions.txt");
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t space = line.find(' ');
    if (line.starts_with('#') || space == std::string_view::npos) continue;
    const std::string value(line.substr(0, space)), name(line.substr(space + 1));
    if (name == "postgres") {
      known.postgres = value;
    } else if (name.starts_with(migration_kind)) {
      known.migrations.emplace(name.substr(migration_kind.size()), value);
    } else {
      known.definitions[name].push_back(value);
    }
  }
  return known;
}

// Returns an empty text if exactly the known migrations made this schema, otherwise the reason why it cannot be
// compared.
Result<std::string> check_migrations(Connection& connection, const Known& known, Findings& findings) {
  RETURN_IF_ERROR(connection.start_copy("SELECT number, name, sha256 FROM schema_migration ORDER BY number"));
  std::set<std::string> applied;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    const std::string name = row.text(1);
    const auto found = known.migrations.find(name);
    if (found == known.migrations.end() && row.integer(0) > static_cast<std::int64_t>(known.migrations.size())) {
      return fmt::format(
          "its schema_migration lists {}, which this verifier does not know. Use the muniment-verify of the version that applied it. If no "
          "version did, the row was inserted by hand",
          preview(name, 100));
    }
    applied.insert(name);
    const std::string number = fmt::format("{:04}_", row.integer(0));
    if (found == known.migrations.end() || found->second != row.bytes(2) || !name.starts_with(number)) {
      findings.add({Check::migration, -1, "",
                    found == known.migrations.end() ? "a migration that this verifier knows"
                                                    : fmt::format("{} with sha256 {}", name, found->second),
                    fmt::format("number {}, {} with sha256 {}", row.integer(0), name, row.bytes(2))});
    }
  }
  // Migrations are applied in order, so the last ones may not be applied yet, unless their rows were deleted.
  std::string missing;
  for (const auto& [name, hash] : known.migrations) {
    if (!applied.contains(name)) {
      if (missing.empty()) missing = name;
    } else if (!missing.empty()) {
      findings.add({Check::migration, -1, "", missing, "no such row, and one of " + name});
      return std::string();
    }
  }
  if (missing.empty()) return missing;
  return fmt::format(
      "its schema_migration does not list {}. Use the muniment-verify of its version, or start this version's daemon on it first. If it was "
      "started before, the row was deleted by hand",
      missing);
}

// Returns whether users may add the object beside the schema: a table, a view or a function. Objects that act on
// Muniment's tables may not be added.
bool may_be_added(std::string_view name) {
  return name.starts_with("table ") || name.starts_with("view ") || name.starts_with("function ");
}

// Returns the table or view in a name such as "column public.event.seq".
std::string_view place_of(std::string_view name) {
  const std::string_view rest = name.substr(name.find(' ') + 1);
  return rest.substr(0, rest.find('.', rest.find('.') + 1));
}

Status compare(Connection& connection, Known known, Findings& findings, std::vector<std::string>& warnings) {
  RETURN_IF_ERROR(connection.start_copy(std::string(embedded_definitions("definitions.sql"))));
  std::vector<std::string> added;
  const auto ours = [all = known.definitions](std::string_view place) {
    return all.contains(fmt::format("table {}", place)) || all.contains(fmt::format("view {}", place));
  };
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    const std::string name = row.text(0), hash = to_hex(sha256(row.bytes(1)));
    const auto wanted = known.definitions.find(name);
    if (wanted == known.definitions.end()) {
      if (may_be_added(name)) {
        added.push_back(name);
      } else if (name.starts_with("partition ")) {
        findings.add({Check::definition, -1, "", "a partition with the definition of its table event",
                      fmt::format("{}: {}", name, row.bytes(1))});
      } else if (name.starts_with("setting ")) {
        findings.add({Check::definition, -1, "", "no setting that disables triggers",
                      fmt::format("{}: {}", name, row.bytes(1))});
      } else if (ours(place_of(name))) {
        findings.add({Check::definition, -1, "", "no " + name, fmt::format("{}: {}", name, row.bytes(1))});
      }
      continue;
    }
    if (std::ranges::find(wanted->second, hash) == wanted->second.end()) {
      findings.add({Check::definition, -1, "", fmt::format("{} with sha256 {}", name, joined(wanted->second, " or ")),
                    fmt::format("{}: {}", name, row.bytes(1))});
    }
    known.definitions.erase(wanted);
  }
  for (const auto& [name, hashes] : known.definitions) findings.add({Check::definition, -1, "", name, "no " + name});
  if (added.empty()) return success();
  const std::size_t count = added.size();
  added.resize(std::min(count, added_shown_max));
  warnings.push_back(fmt::format("{} tables, views or functions in this schema are not Muniment's: {}{}", count,
                                 joined(added, ", "), count > added_shown_max ? ", …" : ""));
  return success();
}

}  // namespace

bool is_own_table(std::string_view table) {
  static const Known known = read_known();
  return known.definitions.contains(fmt::format("table public.{}", table));
}

Result<std::string> check_definitions(Connection& connection, Findings& findings, std::vector<std::string>& warnings,
                                      std::vector<std::string>& not_checked) {
  const std::string what = "the definitions of tables, views, functions and triggers";
  ASSIGN_OR_RETURN(
      const auto listed,
      connection.integer("SELECT count(*) FROM pg_class WHERE oid = to_regclass('public.schema_migration')"));
  Known known = read_known();
  std::string unknown = "there is no table schema_migration";
  if (listed.value_or(0) > 0) {
    ASSIGN_OR_RETURN(unknown, check_migrations(connection, known, findings));
  }
  if (!unknown.empty()) {
    not_checked.push_back(what + " (the schema is unknown)");
    return unknown;
  }
  ASSIGN_OR_RETURN(const auto version,
                   connection.integer("SELECT current_setting('server_version_num')::bigint / 10000"));
  if (std::to_string(version.value_or(0)) != known.postgres) {
    not_checked.push_back(
        fmt::format("{} (known for Postgres {}; this is Postgres {})", what, known.postgres, version.value_or(0)));
    return std::string();
  }
  RETURN_IF_ERROR(compare(connection, std::move(known), findings, warnings));
  return std::string();
}

}  // namespace muniment::verify
