#include "verify/tables/tables.hpp"

#include <fmt/format.h>

#include "verify/state/value.hpp"

namespace muniment::verify {
namespace {

Text value_of(const Row& row, std::size_t index, Kind kind) {
  if (row.null(index)) return std::nullopt;
  switch (kind) {
    case Kind::text: return row.text(index);
    case Kind::integer: return std::to_string(row.integer(index));
    case Kind::uuid: return row.uuid(index).text();
    case Kind::bytes: return row.hex(index);
    case Kind::time: return format_time(row.time(index));
    case Kind::jsonb: return std::string(row.jsonb(index));
  }
  return std::nullopt;
}

class DatabaseRows : public RowSource {
 public:
  DatabaseRows(const TableSpec& spec, Cursor cursor) : spec_(spec), cursor_(std::move(cursor)) {}

  Result<bool> next(std::int64_t& seq, std::vector<Text>& values) override {
    Row row;
    ASSIGN_OR_RETURN(const bool more, cursor_.next(row));
    if (!more) return false;
    seq = row.integer(0);
    values.clear();
    for (std::size_t i = 0; i < spec_.columns.size(); ++i)
      values.push_back(value_of(row, i + 1, spec_.columns[i].kind));
    return true;
  }

 private:
  const TableSpec& spec_;
  Cursor cursor_;
};

}  // namespace

// One table, read in the order of its events.
struct Table {
  const TableSpec* spec = nullptr;
  std::unique_ptr<RowSource> rows;
  bool there = false;        // a row is pending
  std::int64_t seq = -1;     // seq of that row
  std::vector<Text> values;  // values of that row, one for each column
  std::int64_t count = 0;

  Status advance() {
    ASSIGN_OR_RETURN(there, rows->next(seq, values));
    if (there) ++count;
    return success();
  }

  const Text& at(std::string_view column) const {
    for (std::size_t i = 0; i < spec->columns.size(); ++i) {
      if (spec->columns[i].name == column) return values[i];
    }
    static const Text none;
    return none;
  }
};

struct Tables::Impl {
  const Log& log;
  Findings& findings;
  Extent extent;
  std::vector<Table> tables;
  // Claims with a decision: the status in their rows, and the status in the last claim.decided.
  struct Decision {
    std::string status;
    std::int64_t seq = -1;
  };
  std::map<std::string, Decision> claim_rows, claim_events;

  void found(const Table& table, std::int64_t seq, std::int64_t run_no, std::string expected, std::string actual) {
    findings.add({table.spec->check, seq, log.run_id(run_no), std::move(expected), std::move(actual)});
  }

  void told_by_none(const Table& table) {
    const Text& run_id = table.at("run_id");
    findings.add(
        {table.spec->check, table.seq, run_id.value_or(""), "no row: no event of this seq has one",
         fmt::format("a row of {}, {}", table.spec->name, shown(table.spec->columns[0].name, table.values[0]))});
  }

  Status advance(Table& table) {
    RETURN_IF_ERROR(table.advance());
    for (std::size_t i = 0; table.there && i < table.values.size(); ++i) {
      const Column& column = table.spec->columns[i];
      const Text& value = table.values[i];
      // A bytea value is hexadecimal text here and has its own limits.
      if (!value || column.kind == Kind::bytes || value->size() <= value_bytes_max) continue;
      findings.add({Check::value_size, table.seq, table.at("run_id").value_or(""),
                    fmt::format("at most {} bytes", value_bytes_max),
                    fmt::format("{}.{} of {} bytes", table.spec->name, column.name, value->size())});
    }
    return success();
  }

  Text expected(const Column& column, const SeenEvent& event, const Telling& telling, const json::Value& body) const {
    const json::Value member = body[column.member.empty() ? column.name : column.member];
    switch (column.from) {
      case From::run_id: return log.run_id(event.run_no);
      case From::run_no: return std::to_string(event.run_no);
      case From::step_id: return telling.step_id;
      case From::actor: return telling.actor;
      case From::recorded_at: return format_time(telling.recorded_at);
      case From::participle: return telling.type.substr(telling.type.find('.') + 1);
      case From::body_source: return member ? Text(std::string(member.source())) : std::nullopt;
      case From::elsewhere: return std::nullopt;
      case From::body: break;
    }
    if (!member) return column.absent.empty() ? std::nullopt : Text(std::string(column.absent));
    if (member.is(json::Kind::string) && column.kind != Kind::jsonb) return member.as_string();
    if (member.kind() == json::Kind::null && column.kind != Kind::jsonb) return std::nullopt;
    return std::string(member.source());
  }

  void compare(const Table& table, const SeenEvent& event, const Telling& telling) {
    const auto document = json::parse(telling.body);
    if (!document) {
      found(table, event.seq, event.run_no, "a JSON body", document.error().message);
      return;
    }
    for (std::size_t i = 0; i < table.values.size(); ++i) {
      const Column& column = table.spec->columns[i];
      if (column.from == From::elsewhere) continue;
      const Text wanted = expected(column, event, telling, document->root());
      const Text& held = table.values[i];
      const bool same = column.kind == Kind::jsonb ? same_jsonb(wanted, held) : wanted == held;
      if (!same) found(table, event.seq, event.run_no, shown(column.name, wanted), shown(column.name, held));
    }
    if (table.spec->check == Check::manifest) check_manifest(table, event);
    if (table.spec->check == Check::evidence) check_evidence_id(table, event);
  }

  // Evidence with a pointer has the id of its target.
  void check_evidence_id(const Table& table, const SeenEvent& event) {
    if (!table.at("chunk_id")) return;
    std::string name;
    for (const std::string& part :
         {std::string("evidence"), table.at("corpus_id").value_or(""), table.at("index_id").value_or(""),
          *table.at("chunk_id"), table.at("span").value_or("")}) {
      name += fmt::format("{}:{}", part.size(), part);
    }
    const std::string wanted = make_uuid_v8(name).text();
    if (table.at("evidence_id") != wanted)
      found(table, event.seq, event.run_no, shown("evidence_id", wanted),
            shown("evidence_id", table.at("evidence_id")));
  }

  // Compares the row of an erased event: content columns must be empty, and facts that the log still holds must match.
  void compare_erased(const Table& table, const SeenEvent& event, const Telling& telling) {
    for (std::size_t i = 0; i < table.values.size(); ++i) {
      const Column& column = table.spec->columns[i];
      const bool from_body =
          column.from == From::body || column.from == From::body_source || column.from == From::elsewhere;
      if (from_body && column.erased == Column::Erased::stays) continue;
      const Text wanted = !from_body                              ? expected(column, event, telling, {})
                          : column.erased == Column::Erased::null ? Text()
                                                                  : Text(column.erased_value);
      const Text& held = table.values[i];
      const bool same = column.kind == Kind::jsonb ? same_jsonb(wanted, held) : wanted == held;
      // The content is not shown, because it was to be erased.
      if (!same && from_body)
        found(table, event.seq, event.run_no, "no erased content",
              fmt::format("a row of {} whose {} holds content", table.spec->name, column.name));
      if (!same && !from_body)
        found(table, event.seq, event.run_no, shown(column.name, wanted), shown(column.name, held));
    }
  }

  void note_claim(const Table& table) {
    if (table.spec->check != Check::claim || table.at("status") == "open") return;
    claim_rows[table.at("claim_id").value_or("")] = {table.at("status").value_or(""), table.seq};
  }

  void check_manifest(const Table& table, const SeenEvent& event) {
    const Text& salt = table.at("salt");
    const Text& manifest = table.at("manifest");
    if (!salt || !manifest)
      return found(table, event.seq, event.run_no, "a manifest, or that its event is redacted", "an erased manifest");
    const std::string hash = to_hex(sha256({from_hex(*salt).value_or(""), *manifest}));
    if (table.at("hash") != hash)
      found(table, event.seq, event.run_no, shown("hash", table.at("hash")), shown("sha256(salt, manifest)", hash));
    if (table.at("size_bytes") != std::to_string(manifest->size())) {
      found(table, event.seq, event.run_no, shown("size_bytes", table.at("size_bytes")),
            fmt::format("{} bytes", manifest->size()));
    }
  }

  Status see(Table& table, const SeenEvent& event, const Telling& telling) {
    for (; table.there && table.seq < event.seq;) {
      told_by_none(table);
      RETURN_IF_ERROR(advance(table));
    }
    if (!table.there || table.seq != event.seq) {
      const bool stays = telling.redacted && extent == Extent::all && !table.spec->goes;
      if (!telling.redacted || stays)
        found(table, event.seq, event.run_no, fmt::format("a row of {}", table.spec->name), "no row");
      return success();
    }
    if (telling.redacted) {
      compare_erased(table, event, telling);
    } else {
      compare(table, event, telling);
    }
    note_claim(table);
    return advance(table);
  }

  void decide(const SeenEvent& event, const Telling& telling) {
    const auto document = json::parse(telling.json());
    if (!document) return;
    const Text id = text_of(document->root(), "claim_id");
    if (id) claim_events[*id] = {text_of(document->root(), "status").value_or("open"), event.seq};
  }

  void check_claims() {
    for (const auto& [id, row] : claim_rows) {
      const auto event = claim_events.find(id);
      const std::string wanted = event == claim_events.end() ? "open" : event->second.status;
      if (row.status != wanted)
        findings.add({Check::claim, row.seq, "", "status = " + wanted, "status = " + row.status});
    }
    if (extent == Extent::part) return;  // the claim may be in a part that was not read
    for (const auto& [id, event] : claim_events) {
      if (event.status != "open" && !claim_rows.contains(id)) {
        findings.add({Check::claim, event.seq, "", fmt::format("claim {} with status = {}", id, event.status),
                      "status = open, or no row"});
      }
    }
  }
};

Tables::Tables(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tables::Tables(Tables&&) noexcept = default;
Tables::~Tables() = default;

Result<RowSources> database_rows(Connection& connection, const Log& log) {
  RowSources sources;
  for (std::size_t i = 0; i < table_specs.size(); ++i) {
    const TableSpec& spec = table_specs[i];
    std::string columns(spec.seq_column);
    for (const Column& column : spec.columns) columns += fmt::format(", {}", column.name);
    ASSIGN_OR_RETURN(Cursor cursor,
                     Cursor::open(connection, fmt::format("rows_of_{}", spec.name),
                                  fmt::format("SELECT {} FROM {} WHERE log_no = {} AND {} >= {} ORDER BY {}", columns,
                                              spec.name, log.log_no, spec.seq_column, log.from, spec.seq_column)));
    sources[i] = std::make_unique<DatabaseRows>(spec, std::move(cursor));
  }
  return sources;
}

Result<Tables> Tables::open(RowSources sources, const Log& log, Extent extent, Findings& findings) {
  auto impl = std::make_unique<Impl>(Impl{log, findings, extent, {}, {}, {}});
  for (std::size_t i = 0; i < table_specs.size(); ++i) {
    Table& table = impl->tables.emplace_back(Table{&table_specs[i], std::move(sources[i]), false, -1, {}, 0});
    if (table.rows) RETURN_IF_ERROR(impl->advance(table));
  }
  return Tables(std::move(impl));
}

Status Tables::see(const SeenEvent& event, const Telling& telling) {
  if (telling.type == "claim.decided") impl_->decide(event, telling);
  for (Table& table : impl_->tables) {
    if (table.rows && table.spec->follows(telling.type)) return impl_->see(table, event, telling);
  }
  return success();
}

Status Tables::finish() {
  for (Table& table : impl_->tables) {
    while (table.there) {
      impl_->told_by_none(table);
      RETURN_IF_ERROR(impl_->advance(table));
    }
  }
  impl_->check_claims();
  return success();
}

TableCounts Tables::counts() const {
  const auto& tables = impl_->tables;
  return {tables[0].count, tables[1].count, tables[2].count, tables[3].count, tables[4].count};
}

}  // namespace muniment::verify
