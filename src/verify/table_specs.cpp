#include "verify/table_specs.hpp"

namespace muniment::verify {
namespace {

constexpr std::array artifact_columns{
    Column{"artifact_id", Kind::uuid},     Column{"run_id", Kind::text, From::run_id}, Column{"step_id"},
    Column{"path"},                        Column{"hash"},                             Column{"mime_type"},
    Column{"size_bytes", Kind::integer},   Column{"created_at", Kind::time, From::recorded_at},
    Column{"metadata", Kind::jsonb, From::body, {}, "{}"}};
constexpr std::array manifest_columns{
    Column{"manifest_id", Kind::uuid},     Column{"run_id", Kind::text, From::run_id},
    Column{"base_id", Kind::uuid, From::body, "base"},
    Column{"hash", Kind::bytes},           Column{"size_bytes", Kind::integer},
    Column{"created_at", Kind::time, From::recorded_at},
    Column{"salt", Kind::bytes, From::elsewhere},
    Column{"manifest", Kind::text, From::elsewhere}};
constexpr std::array snapshot_columns{
    Column{"run_no", Kind::integer, From::run_no}, Column{"seq", Kind::integer}, Column{"run_seq", Kind::integer},
    Column{"hash", Kind::bytes},           Column{"size_bytes", Kind::integer}, Column{"artifact_id", Kind::uuid},
    Column{"reason"},                      Column{"created_at", Kind::time, From::recorded_at}};
constexpr std::array claim_columns{
    Column{"claim_id", Kind::uuid},        Column{"run_id", Kind::text, From::run_id},
    Column{"step_id", Kind::text, From::step_id}, Column{"text"},
    Column{"pointers", Kind::jsonb, From::body, {}, "[]"},
    Column{"status", Kind::text, From::elsewhere}, Column{"created_at", Kind::time, From::recorded_at}};
constexpr std::array evidence_columns{
    Column{"evidence_id", Kind::uuid},     Column{"run_id", Kind::text, From::run_id}, Column{"type"},
    Column{"content", Kind::text, From::body_source}, Column{"pointer"}, Column{"hash"}, Column{"validator_id"},
    Column{"actor", Kind::text, From::actor}, Column{"created_at", Kind::time, From::recorded_at}};
constexpr std::array link_columns{
    Column{"claim_id", Kind::uuid}, Column{"evidence_id", Kind::uuid}, Column{"relation"}};

}  // namespace

constinit const std::array<TableSpec, table_specs_count> table_specs{{
    {"artifact", Check::artifact_row, "artifact.stored", "seq", artifact_columns},
    {"manifest", Check::manifest, "manifest.recorded", "seq", manifest_columns},
    {"snapshot", Check::snapshot, "snapshot.taken", "event_seq", snapshot_columns},
    {"claim", Check::claim, "claim.recorded", "seq", claim_columns},
    {"evidence", Check::evidence, "evidence.recorded", "seq", evidence_columns},
    {"evidence_link", Check::evidence_link, "evidence.linked", "seq", link_columns},
}};

}  // namespace muniment::verify
