// manifest.put and manifest.get: store the content of a context window and the reasons as JSON in the database. A
// manifest holds references (to transcript ranges, artifacts, cards) and may add to and drop from a base manifest, so
// that a run's manifests grow linearly with its length.
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "base/text.hpp"
#include "evidence/pointer_follower.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/log/manifest_rows.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

std::string_view view_of(const Salt& salt) { return {reinterpret_cast<const char*>(salt.data()), salt.size()}; }

Status check_size(std::string_view manifest) {
  if (manifest.size() <= limits::manifest_bytes_max) return success();
  Error error(
      Errc::too_large,
      "manifest is " + grouped(manifest.size()) + " bytes, limit " + grouped(limits::manifest_bytes_max) +
          ". Name a base manifest and send only additions and removals, or store large parts with artifact.put.");
  error.limit = static_cast<std::int64_t>(limits::manifest_bytes_max);
  return error;
}

// Returns the base of `manifest`. Errors: invalid_argument, not_found.
Result<std::optional<Uuid>> base_of(Call& call, const store::Run& run, const json::Value& manifest) {
  const json::Value named = manifest["base"];
  if (!named || named.is(json::Kind::null)) return std::optional<Uuid>();
  const auto id = parse_uuid(named.string_or(""));
  if (!id) return Error(Errc::invalid_argument, "manifest.base: expected the manifest_id of an earlier manifest");
  ASSIGN_OR_RETURN(const std::optional<store::ManifestRow> row, call.reader->manifest(*id));
  if (row && row->run_id == run.run_id) return std::optional<Uuid>(*id);
  return Error(Errc::not_found, "manifest.base: the run " + run.run_id + " has no manifest " + id->text());
}

std::string put_result(const store::ManifestRow& row, std::int64_t seq, bool duplicate) {
  json::Writer out;
  out.begin_object()
      .member("manifest_id", row.manifest_id.text())
      .member("hash", to_hex(row.hash))
      .member("salt", row.salt ? to_hex(view_of(*row.salt)) : std::string())
      .member("size_bytes", row.size_bytes)
      .member("seq", seq)
      .member("duplicate", duplicate);
  return std::move(out.end_object()).text();
}

// Equal idempotency keys give equal ids of the event and of the manifest.
Uuid repeated_id(const Call& call, const store::Run& run, std::size_t index) {
  return idempotent_id_in(run, call.caller, "manifest.put", call.idempotency_key, index);
}

// Returns the first reply to a repeated request; nullopt if it was not recorded. Errors: conflict if the request
// differs or the recorded manifest was erased.
Result<std::optional<Reply>> first_answer(Call& call, const store::Run& run) {
  const std::int64_t run_no = run.view().run_no;
  if (run_no < 0) return std::optional<Reply>();
  ASSIGN_OR_RETURN(const auto known, call.reader->event_by_id(run_no, repeated_id(call, run, 0)));
  if (!known) return std::optional<Reply>();
  FAILPOINT("manifest.known");
  ASSIGN_OR_RETURN(const auto row, call.reader->manifest(repeated_id(call, run, 1)));
  if (!known->body || !row || !row->salt)
    return used_key(*known, true);  // an erasure removes both, perhaps between the two reads
  const bool same_step = known->step_id.value_or("") == call.params["step_id"].string_or("");
  if (!same_step || sha256({view_of(*row->salt), call.params["manifest"].source()}) != row->hash)
    return used_key(*known);
  return std::optional<Reply>(Reply{put_result(*row, row->seq, true), {}});
}

}  // namespace

store::ManifestRow make_manifest(const Uuid& manifest_id, const std::string& run_id, std::string text) {
  store::ManifestRow row;
  row.manifest_id = manifest_id;
  row.run_id = run_id;
  row.size_bytes = static_cast<std::int64_t>(text.size());
  row.salt = random_salt();
  row.hash = sha256({view_of(*row.salt), text});
  row.manifest = std::move(text);
  return row;
}

std::string manifest_recorded_body(const store::ManifestRow& row) {
  json::Writer out;
  out.begin_object()
      .member("manifest_id", row.manifest_id.text())
      .member("hash", to_hex(row.hash))
      .member("size_bytes", row.size_bytes);
  if (row.base_id) out.member("base", row.base_id->text());
  return std::move(out.end_object()).text();
}

Result<Answer> manifest_put(Call& call) {
  const json::Value manifest = call.params["manifest"];
  RETURN_IF_ERROR(check_size(manifest.source()));
  ASSIGN_OR_RETURN(const std::shared_ptr<store::Run> run, find_run(call, call.params["run_id"].string_or("")));
  const bool repeatable = !call.idempotency_key.empty();
  if (!run) return NeedsWorker{};
  const bool imported = run->view().origin == events::Origin::imported;
  // Every target of a manifest's references must exist, except in an imported manifest.
  const std::vector<std::string> pointers =
      imported ? std::vector<std::string>() : evidence::pointers_of_manifest(manifest, run->run_id);
  if (!call.reader && (!pointers.empty() || manifest["base"] || repeatable)) return NeedsWorker{};
  if (call.reader) RETURN_IF_ERROR(begin_referring(call));

  const Uuid id = repeatable ? repeated_id(call, *run, 1) : make_uuid_v7(call.services.clock.now());
  if (repeatable) {
    ASSIGN_OR_RETURN(std::optional<Reply> first, first_answer(call, *run));
    if (first) return *std::move(first);
  }
  RETURN_IF_ERROR(check_open(*run));
  store::ManifestRow row = make_manifest(id, run->run_id, std::string(manifest.source()));
  ASSIGN_OR_RETURN(row.base_id, base_of(call, *run, manifest));
  evidence::Outcome outcome;
  if (!pointers.empty()) {
    ASSIGN_OR_RETURN(outcome, resolve_needed(call, pointers, run));
    if (outcome.damage() != nullptr) return stop(outcome, run);
  }

  PendingAppend append;
  append.request.actor = call.caller.actor;
  const std::string step_id = call.params["step_id"].string_or("");
  append.request.events.push_back(
      {run, make_event(call, *run, "manifest.recorded", manifest_recorded_body(row), step_id), false});
  if (repeatable) {  // a second, concurrent request is returned for retry and finds the first
    events::NewEvent& event = append.request.events.back().event;
    event.event_id = repeated_id(call, *run, 0);
    event.event_id_is_ours = false;
    append.request.ids_checked = call.check_ids;
  }
  append.request.rows.push_back({0, row});
  log_outcome(outcome, append.request);
  append.finish = [row](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{put_result(row, receipts.back().seq, false), {}};
  };
  return append;
}

Result<Answer> manifest_get(Call& call) {
  if (!call.reader) return NeedsWorker{};
  const auto id = parse_uuid(call.params["manifest_id"].string_or(""));
  if (!id) return Error(Errc::invalid_argument, "manifest_id: expected a UUID");
  const Error none(Errc::not_found, "no manifest " + id->text());
  ASSIGN_OR_RETURN(const auto found,
                   find_in_all<store::ManifestRow>(call, [&](store::Reader& reader) { return reader.manifest(*id); }));
  const std::optional<store::ManifestRow>& row = found.row;
  if (!row) return none;
  ASSIGN_OR_RETURN(const bool visible, sees_run(call, row->run_id, found.reader->log_no()));
  if (!visible) return none;  // the same error as for a manifest of another user
  note_log(call, *found.reader);
  if (row->manifest && sha256({view_of(*row->salt), *row->manifest}) != row->hash) {
    Error error(Errc::corrupt, "manifest " + id->text() + " does not match its hash");
    error.run_id = row->run_id;
    error.pointer = "manifest://" + id->text();
    Using use;
    const bool here = found.reader == call.reader;
    if (here) {
      ASSIGN_OR_RETURN(use.run, find_run(call, row->run_id));
    }
    ASSIGN_OR_RETURN(auto answer, answer_damage(call, error.pointer, use, error));
    return answer ? Result<Answer>(*std::move(answer)) : error;
  }
  json::Writer out;
  out.begin_object().member("manifest_id", id->text()).member("run_id", row->run_id);
  if (row->base_id) out.member("base", row->base_id->text());
  out.member("hash", to_hex(row->hash)).member("size_bytes", row->size_bytes).member("seq", row->seq);
  out.member("created_at", format_time(row->created_at));
  if (row->manifest) {
    out.member("salt", to_hex(view_of(*row->salt))).raw_member("manifest", *row->manifest);
  } else {
    out.member("erased", true);
  }
  return Reply{std::move(out.end_object()).text(), {}};
}

}  // namespace muniment::gateway::methods
