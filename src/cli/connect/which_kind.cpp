#include "cli/connect/which_kind.hpp"

#include <fmt/format.h>

#include "base/json/json.hpp"

namespace muniment::cli {

Result<bool> is_run(Session& session, const std::string& id) {
  const auto found = session.call("run.get", "{\"run_id\":" + json::quote(id) + "}");
  if (found) return true;
  if (found.error().code == Errc::not_found) return false;
  return found.error();
}

Status check_is_only_seq(Session& session, const std::string& digits, std::string_view ways) {
  ASSIGN_OR_RETURN(const bool run, is_run(session, digits));
  if (!run) return success();
  return Error(Errc::conflict,
               fmt::format("{} may be the seq of an event and is also the id of a run. Use {}", digits, ways));
}

}  // namespace muniment::cli
