// Implements record --follow, which records an agent's session from its file until a signal arrives.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "adapters/commands.hpp"
#include "adapters/record/follow.hpp"
#include "base/text.hpp"

namespace muniment::cli {
namespace {

std::atomic<bool> follow_stopped = false;  // set by a signal handler
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

Status follow_file(Session& session, const std::string& file) {
  ASSIGN_OR_RETURN(const Config config, session.config());
  struct sigaction action {};
  action.sa_handler = [](int) { follow_stopped = true; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  FollowOptions options;
  options.socket = config.socket;
  options.file = file;
  ASSIGN_OR_RETURN(const Followed outcome, follow_session(options, follow_stopped));
  const bool there = ::access(file.c_str(), F_OK) == 0;
  if (!outcome.started && !there) session.exit_code = exit_refused;
  if (session.options.json) {
    json::Writer out;
    out.begin_object().member("run_id", outcome.run_id).member("lines", static_cast<std::int64_t>(outcome.lines));
    out.member("rereads", static_cast<std::int64_t>(outcome.rereads)).end_object();
    session.out().json_line(out.text());
  } else if (!outcome.started) {
    session.out().line(fmt::format("{} lines; nothing was recorded: {} is {}", grouped(outcome.lines),
                                   session.out().one_line(file), there ? "without a complete line" : "missing"));
  } else {
    session.out().line(session.out().advised(fmt::format("{}  {} lines; the run is open: muniment run end {}",
                                                         outcome.run_id, grouped(outcome.lines), outcome.run_id)));
  }
  return success();
}

}  // namespace muniment::cli
