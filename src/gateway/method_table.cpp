// Lists every method of the socket, with its function, thread and order.
#include "gateway/method_table.hpp"

#include <algorithm>
#include <array>

#include "gateway/methods/methods.hpp"

namespace muniment::gateway {
namespace {

using namespace methods;

// Sorted by name. A test compares each row with its schema.
constexpr MethodInfo table[] = {
    {.name = "artifact.get", .function = artifact_get, .order = Order::reading},
    {.name = "artifact.list", .function = artifact_list},
    {.name = "artifact.put",
     .function = artifact_put,
     .writes = true,
     .order = Order::in_turn,
     .open_body = artifact_put_body},
    {.name = "artifact.stat", .function = artifact_stat},
    {.name = "ask", .function = ask, .writes = true},
    {.name = "audit.archive", .function = audit_archive, .writes = true},
    {.name = "audit.checkpoint", .function = audit_checkpoint, .runs = Runs::loop_first},
    {.name = "audit.key", .function = audit_key, .writes = true},
    {.name = "audit.prove", .function = audit_prove},
    {.name = "audit.redact", .function = audit_redact, .writes = true},
    {.name = "audit.verified", .function = audit_verified, .runs = Runs::loop_first, .writes = true},
    {.name = "bundle.close", .function = bundle_close, .writes = true},
    {.name = "bundle.nodes", .function = bundle_nodes},
    {.name = "bundle.read", .function = bundle_read},
    {.name = "claim.decide", .function = claim_decide, .writes = true, .order = Order::in_turn},
    {.name = "claim.list", .function = claim_list},
    {.name = "claim.record", .function = claim_record, .writes = true, .order = Order::in_turn},
    {.name = "cloud.answer", .function = cloud_answer, .writes = true},
    {.name = "command.end", .function = command_end, .writes = true, .order = Order::in_turn},
    {.name = "command.executor", .function = command_executor, .runs = Runs::on_loop, .always_answers = true},
    {.name = "command.start",
     .function = command_start,
     .runs = Runs::loop_first,
     .writes = true,
     .order = Order::in_turn},
    {.name = "context.build", .function = context_build, .writes = true},
    {.name = "corpus.ingest", .function = corpus_ingest, .writes = true, .order = Order::in_turn},
    {.name = "corpus.list", .function = corpus_list},
    {.name = "document.diff", .function = document_diff},
    {.name = "document.get", .function = document_get},
    {.name = "document.history", .function = document_history},
    {.name = "document.list", .function = document_list},
    {.name = "document.retract", .function = document_retract, .writes = true, .order = Order::after_earlier},
    {.name = "event.append",
     .function = event_append,
     .runs = Runs::loop_first,
     .writes = true,
     .order = Order::in_turn},
    {.name = "event.get", .function = event_get},
    {.name = "event.list", .function = event_list},
    // A subscription outlives its request, so the session serves these two.
    {.name = "event.subscribe", .function = nullptr, .runs = Runs::on_loop},
    {.name = "event.unsubscribe", .function = nullptr, .runs = Runs::on_loop},
    {.name = "evidence.attest", .function = evidence_attest},
    {.name = "evidence.check", .function = evidence_check},
    {.name = "evidence.export", .function = evidence_export},
    {.name = "evidence.get", .function = evidence_get},
    {.name = "evidence.import", .function = evidence_import, .writes = true, .order = Order::in_turn},
    {.name = "evidence.link", .function = evidence_link, .writes = true, .order = Order::in_turn},
    {.name = "evidence.list", .function = evidence_list},
    {.name = "evidence.record", .function = evidence_record, .writes = true, .order = Order::in_turn},
    {.name = "evidence.retrieve", .function = evidence_retrieve},
    {.name = "evidence.verify", .function = evidence_verify},
    {.name = "feedback.record", .function = feedback_record, .writes = true, .order = Order::in_turn},
    {.name = "manifest.get", .function = manifest_get},
    {.name = "manifest.put",
     .function = manifest_put,
     .runs = Runs::loop_first,
     .writes = true,
     .order = Order::in_turn},
    {.name = "pointer.render", .function = pointer_render},
    {.name = "pointer.resolve", .function = pointer_resolve, .writes = true},
    {.name = "pointer.validate", .function = pointer_validate},
    {.name = "run.annotate",
     .function = run_annotate,
     .runs = Runs::loop_first,
     .writes = true,
     .order = Order::in_turn},
    {.name = "run.costs", .function = run_costs},
    {.name = "run.end", .function = run_end, .runs = Runs::loop_first, .writes = true, .order = Order::before_later},
    {.name = "run.get", .function = run_get},
    {.name = "run.judge", .function = run_judge},
    {.name = "run.list", .function = run_list},
    {.name = "run.recover", .function = run_recover, .writes = true, .order = Order::before_later},
    {.name = "run.rehydrate", .function = run_rehydrate},
    {.name = "run.start",
     .function = run_start,
     .runs = Runs::loop_first,
     .writes = true,
     .order = Order::before_later},
    {.name = "server.health", .function = server_health, .runs = Runs::on_loop, .always_answers = true},
    {.name = "server.metrics", .function = server_metrics, .runs = Runs::on_loop, .always_answers = true},
    {.name = "server.rebuild", .function = server_rebuild},
    {.name = "server.status", .function = server_status, .runs = Runs::loop_first, .always_answers = true},
    {.name = "snapshot.latest", .function = snapshot_latest},
    {.name = "snapshot.list", .function = snapshot_list},
    {.name = "snapshot.take", .function = snapshot_take, .writes = true, .order = Order::in_turn},
    {.name = "source.revoke", .function = source_revoke, .writes = true, .order = Order::after_earlier},
    {.name = "task.complete", .function = task_complete, .writes = true, .order = Order::after_earlier},
    {.name = "task.list", .function = task_list},
    {.name = "task.open", .function = task_open, .writes = true, .order = Order::in_turn},
    {.name = "task.validate", .function = task_validate, .writes = true, .order = Order::after_earlier},
};

constexpr bool before(const MethodInfo& a, const MethodInfo& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(table), std::end(table), before));

}  // namespace

std::span<const MethodInfo> method_table() { return table; }

const MethodInfo* find_method(std::string_view name) {
  const auto* row =
      std::lower_bound(std::begin(table), std::end(table), name,
                       [](const MethodInfo& known, std::string_view wanted) { return known.name < wanted; });
  return row != std::end(table) && row->name == name ? row : nullptr;
}

}  // namespace muniment::gateway
