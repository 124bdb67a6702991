// Replays events of another log in a run of this log. Events that only the daemon writes are recreated with its methods
// where possible, and their new ids replace the old ones in later events. Shared by the imports of bundles and exports.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "client/connect/client.hpp"
#include "client/replay/ids.hpp"

namespace muniment::cli {

// Outcome of a run, a step or a call that the source does not give.
inline constexpr std::string_view unknown_end = "unknown";

// The end of a run of another system.
struct RunEnd {
  std::string outcome;  // success, failure, unknown
  std::string summary;
  std::string usage = {};  // JSON: usage that the source counts only for the whole run; empty: none
};

// Returns the named members of `body` with their original text.
void copy_known(json::Writer& out, const json::Value& body, std::initializer_list<std::string_view> names);

// Returns the time of an event of another log: its occurred_at, otherwise its recorded_at.
std::string when_of(const json::Value& event);

class EventReplay {
 public:
  // `key` and the run_seq of an event form its idempotency key, so that an interrupted replay can be repeated.
  EventReplay(Client& client, std::string run_id, std::string old_run, std::string key)
      : client_(client), run_id_(std::move(run_id)), key_(std::move(key)), ids_(std::move(old_run), run_id_) {}

  BundleIds& ids() { return ids_; }

  // Returns a client's event as an item of event.append, with the ids of this run and without conditions on the state
  // of the other run. If occurred_at is missing, recorded_at replaces it.
  std::string item(const json::Value& event, const json::Value& body, std::string* rewritten_body = nullptr) const;

  // After a missing patch, later patches may not apply. The fold skips such a patch and the daemon refuses it, so from
  // then on each patch is sent separately. `lost_patch` reports a missing patch.
  void lost_patch() { patch_is_gone_ = true; }
  bool may_not_apply(const json::Value& event, const json::Value& body);
  Result<bool> append_patch(const std::string& item);  // true: applied and recorded

  // Recreates claims, decisions, evidence, links, commands and annotations. Returns false and records nothing if the
  // event refers to data that was not imported or has another type.
  Result<bool> record(const json::Value& event, const json::Value& body);
  // Returns false and records nothing if the base manifest was not imported.
  Result<bool> put_manifest(const json::Value& event, const std::string& old_id, const std::string& manifest);

 private:
  Result<bool> record_claim(const json::Value& event, const json::Value& body);
  Result<bool> record_evidence(const json::Value& event, const json::Value& body);
  Result<bool> link_evidence(const json::Value& event, const json::Value& body);
  Result<bool> decide_claim(const json::Value& event, const json::Value& body);
  Result<bool> start_command(const json::Value& event, const json::Value& body);
  Result<bool> end_command(const json::Value& event, const json::Value& body);
  Result<bool> annotate(const json::Value& event, const json::Value& body);
  void write_mapped(json::Writer& params, std::string_view name, const json::Value& old_ids) const;
  json::Writer params_for(const json::Value& event) const;
  Status recorded(std::string_view method, json::Writer& params, const json::Value& event, const std::string& old_id,
                  std::string_view id_name);
  std::string here(const std::string& pointer) const;

  Client& client_;
  const std::string run_id_;
  const std::string key_;
  BundleIds ids_;
  bool patch_is_gone_ = false;  // a state.patched of this run, or the artifact with its patch, is missing
};

}  // namespace muniment::cli
