// Patches the agent's own part of the state; a patch applies completely or not at all (docs/format.md, Working).
#include "events/run_state.hpp"

namespace muniment::events {
namespace {

using json::Kind;
using json::Value;

Status apply_patch(json::Tree& working, std::string_view format, const Value& patch) {
  if (format == "merge") {
    if (!patch.is(Kind::object)) return Error(Errc::invalid_argument, "patch: a merge patch is an object");
    json::merge_patch(working, patch);
    return success();
  }
  if (format == "json_patch") {
    if (!patch.is(Kind::array)) return Error(Errc::invalid_argument, "patch: a JSON patch is an array of operations");
    return json::json_patch(working, patch);
  }
  return Error(Errc::invalid_argument, "format: expected one of \"merge\", \"json_patch\"");
}

Status check_limits(const json::Tree& working) {
  if (!working.is(Kind::object)) return Error(Errc::invalid_argument, "patch: working state must stay an object");
  if (working.levels() > limits::working_state_levels_max) {
    return Error(Errc::too_large, "working state would be nested " + std::to_string(working.levels()) +
                                      " levels, limit " + std::to_string(limits::working_state_levels_max) +
                                      ". Flatten it.");
  }
  if (working.bytes() <= limits::working_state_bytes_max) return success();
  Error error(Errc::too_large, "working state would be " + std::to_string(working.bytes()) + " bytes, limit " +
                                   std::to_string(limits::working_state_bytes_max) +
                                   ". Store large values as artifacts and refer to them.");
  error.limit = static_cast<std::int64_t>(limits::working_state_bytes_max);
  return error;
}

}  // namespace

Status patch_working(json::Tree& working, const Value& body, std::string_view spilled_patch) {
  json::Tree patched = working;  // shares everything that the patch does not change
  const std::string format = body["format"].string_or("");
  if (const Value patch = body["patch"]) {
    RETURN_IF_ERROR(apply_patch(patched, format, patch));
  } else {
    if (!body["ref"].is(Kind::object)) return Error(Errc::invalid_argument, "patch: missing. Send patch or ref.");
    if (spilled_patch.size() > limits::working_state_bytes_max) {
      return Error(Errc::too_large, "the patch is " + std::to_string(spilled_patch.size()) + " bytes, limit " +
                                        std::to_string(limits::working_state_bytes_max));
    }
    ASSIGN_OR_RETURN(const json::Document document, json::parse(spilled_patch));
    RETURN_IF_ERROR(apply_patch(patched, format, document.root()));
  }
  RETURN_IF_ERROR(check_limits(patched));
  working = std::move(patched);
  return success();
}

}  // namespace muniment::events
