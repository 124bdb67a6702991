// Implements the command metrics.
#include "cli/commands.hpp"

namespace muniment::cli {
namespace {

Status print_metrics(Session& session, const NoOptions&) {
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  ASSIGN_OR_RETURN(const Message answer, client->call("server.metrics", "{}"));
  if (!session.printed_json(answer)) session.out().print(session.out().safe(answer.result()["text"].string_or("")));
  return success();
}

}  // namespace

void add_metrics_command(CLI::App& app, Session& session) {
  add_command<NoOptions>(session, app, "metrics", "Print the daemon's metrics in the Prometheus text format", nullptr,
                         print_metrics);
}

}  // namespace muniment::cli
