#include "verify/tables/table_specs.hpp"

namespace muniment::verify {
namespace {

using enum Column::Erased;
constexpr std::string_view no_hash = "0000000000000000000000000000000000000000000000000000000000000000";

constexpr std::array artifact_columns{Column{"artifact_id", Kind::uuid},
                                      Column{"run_id", Kind::text, From::run_id},
                                      Column{"step_id"},
                                      Column{"path"},
                                      Column{"hash", Kind::text, From::body, {}, {}, value, no_hash},
                                      Column{"mime_type"},
                                      Column{"size_bytes", Kind::integer},
                                      Column{"created_at", Kind::time, From::recorded_at},
                                      Column{"metadata", Kind::jsonb, From::body, {}, "{}", value, "{}"}};
constexpr std::array manifest_columns{Column{"manifest_id", Kind::uuid},
                                      Column{"run_id", Kind::text, From::run_id},
                                      Column{"base_id", Kind::uuid, From::body, "base"},
                                      Column{"hash", Kind::bytes},
                                      Column{"size_bytes", Kind::integer},
                                      Column{"created_at", Kind::time, From::recorded_at},
                                      Column{"salt", Kind::bytes, From::elsewhere, {}, {}, null},
                                      Column{"manifest", Kind::text, From::elsewhere, {}, {}, null}};
constexpr std::array snapshot_columns{Column{"run_no", Kind::integer, From::run_no},
                                      Column{"seq", Kind::integer},
                                      Column{"run_seq", Kind::integer},
                                      Column{"hash", Kind::bytes},
                                      Column{"size_bytes", Kind::integer},
                                      Column{"artifact_id", Kind::uuid},
                                      Column{"reason"},
                                      Column{"created_at", Kind::time, From::recorded_at}};
constexpr std::array claim_columns{Column{"claim_id", Kind::uuid},
                                   Column{"run_id", Kind::text, From::run_id},
                                   Column{"step_id", Kind::text, From::step_id},
                                   Column{"text", Kind::text, From::body, {}, {}, value, ""},
                                   Column{"pointers", Kind::jsonb, From::body, {}, "[]", value, "[]"},
                                   Column{"status", Kind::text, From::elsewhere},
                                   Column{"created_at", Kind::time, From::recorded_at}};
constexpr std::array evidence_columns{Column{"evidence_id", Kind::uuid},
                                      Column{"run_id", Kind::text, From::run_id},
                                      Column{"type", Kind::text, From::body, {}, {}, value, ""},
                                      Column{"content", Kind::text, From::body_source, {}, {}, value, "{}"},
                                      Column{"pointer", Kind::text, From::body, {}, {}, null},
                                      Column{"hash", Kind::text, From::body, {}, {}, value, no_hash},
                                      Column{"validator_id", Kind::text, From::body, {}, {}, null},
                                      Column{"actor", Kind::text, From::actor},
                                      Column{"created_at", Kind::time, From::recorded_at},
                                      Column{.name = "corpus_id", .erased = null, .later = true},
                                      Column{.name = "index_id", .erased = null, .later = true},
                                      Column{.name = "chunk_id", .erased = null, .later = true},
                                      Column{.name = "span", .erased = null, .later = true},
                                      Column{.name = "task_id", .erased = null, .later = true},
                                      Column{.name = "command_id", .kind = Kind::uuid, .erased = null, .later = true}};
constexpr std::array link_columns{Column{"claim_id", Kind::uuid}, Column{"run_id", Kind::text, From::run_id},
                                  Column{"evidence_id", Kind::uuid}, Column{"relation"}};
constexpr std::array task_columns{Column{"task_id"}, Column{"run_id", Kind::text, From::run_id},
                                  Column{"change", Kind::text, From::participle}};

}  // namespace

constinit const std::array<TableSpec, table_specs_count> table_specs{{
    {"artifact", Check::artifact_row, "artifact.stored", "seq", artifact_columns},
    {"manifest", Check::manifest, "manifest.recorded", "seq", manifest_columns},
    {"snapshot", Check::snapshot, "snapshot.taken", "event_seq", snapshot_columns},
    {"claim", Check::claim, "claim.recorded", "seq", claim_columns},
    {"evidence", Check::evidence, "evidence.recorded", "seq", evidence_columns},
    {"evidence_link", Check::evidence_link, "evidence.linked", "seq", link_columns, {}, true},
    {"task_change", Check::task_change, "task.opened", "seq", task_columns, "task.completed", true},
}};

}  // namespace muniment::verify
