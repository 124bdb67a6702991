// Events of another log, recorded once more in a run of this one: what only the daemon writes goes through its methods
// where they can say the same, and ids that they give anew are replaced in what follows. Shared by the import of a
// bundle and of an export.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/bundle/ids.hpp"
#include "cli/connect/client.hpp"

namespace muniment::cli {

// Those of the members of `body` that are named, as they were written.
void copy_known(json::Writer& out, const json::Value& body, std::initializer_list<std::string_view> names);

// When an event of another log occurred: as it says itself, or when it was recorded there.
std::string when_of(const json::Value& event);

class EventReplay {
 public:
  // `key` and an event's run_seq make its idempotency key: a replay that broke off goes on.
  EventReplay(Client& client, std::string run_id, std::string old_run, std::string key)
      : client_(client), run_id_(std::move(run_id)), key_(std::move(key)), ids_(std::move(old_run), run_id_) {}

  BundleIds& ids() { return ids_; }

  // A client's event as an item of event.append: its ids are this run's, and what was conditional on the other run's
  // state is so no longer. Without an occurred_at it occurred when it was recorded.
  std::string item(const json::Value& event, const json::Value& body, std::string* rewritten_body = nullptr) const;

  // Once a patch did not come a later one may lean on what it made. The fold passes over such a patch, and the daemon
  // takes none: each that may be one is sent by itself. `lost_patch` says that one did not come.
  void lost_patch() { patch_is_gone_ = true; }
  bool may_not_apply(const json::Value& event, const json::Value& body);
  Result<bool> append_patch(const std::string& item);  // true: it applied, and is in the log

  // Claims, what became of them, evidence and its links, commands, annotations. False: nothing was recorded, since it
  // leads out of what was imported, or is of another type.
  Result<bool> record(const json::Value& event, const json::Value& body);
  // False: nothing was recorded, since the manifest that it stands on was not.
  Result<bool> put_manifest(const json::Value& event, const std::string& old_id, const std::string& manifest);

 private:
  Result<bool> record_claim(const json::Value& event, const json::Value& body);
  Result<bool> record_evidence(const json::Value& event, const json::Value& body);
  Result<bool> link_evidence(const json::Value& event, const json::Value& body);
  Result<bool> decide_claim(const json::Value& event, const json::Value& body);
  Result<bool> start_command(const json::Value& event, const json::Value& body);
  Result<bool> end_command(const json::Value& event, const json::Value& body);
  Result<bool> annotate(const json::Value& event, const json::Value& body);
  json::Writer params_for(const json::Value& event) const;
  Status recorded(std::string_view method, json::Writer& params, const json::Value& event, const std::string& old_id,
                  std::string_view id_name);
  std::string here(const std::string& pointer) const;

  Client& client_;
  const std::string run_id_;
  const std::string key_;
  BundleIds ids_;
  bool patch_is_gone_ = false;  // a state.patched of this run, or the artifact that holds its patch
};

}  // namespace muniment::cli
