// Implements the command audit archive, which moves the bodies of old partitions out of the database.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <optional>

#include "base/limits.hpp"
#include "cli/commands.hpp"
#include "client/output.hpp"

namespace muniment::cli {
namespace {

struct ArchiveOptions {
  std::optional<std::int64_t> partition;
};

void declare(CLI::App& command, ArchiveOptions& options) {
  command.add_option("PARTITION", options.partition, "Partition number (default: the oldest not yet archived)");
}

Status archive(Session& session, const ArchiveOptions& options) {
  json::Writer params;
  params.begin_object();
  if (options.partition) params.member("partition", *options.partition);
  // The last call for a large partition, which removes the bodies from the database, takes long.
  params.key("_meta").begin_object().member("deadline_ms", limits::deadline_ms_max).end_object();
  const std::string text = std::move(params.end_object()).text();
  std::optional<Progress> progress;
  for (;;) {
    ASSIGN_OR_RETURN(const Message answer, session.call("audit.archive", text));
    const json::Value result = answer.result();
    const auto number = [&](std::string_view name) { return result[name].as_int().value_or(0); };
    const std::int64_t events = number("to_seq") + 1 - number("from_seq");
    if (result["archived"].as_bool().value_or(false)) {
      progress.reset();
      if (session.printed_json(answer)) return success();
      session.out().line(fmt::format(
          "archived partition {}: events {} to {}. Their rows stay in the database, their bodies are in the "
          "data folder's archive/",
          number("partition"), number("from_seq"), number("to_seq")));
      return success();
    }
    // Each body is written and then compared with its row, hence two units per event.
    if (!progress)
      progress.emplace(fmt::format("partition {}", number("partition")), static_cast<std::uint64_t>(2 * events));
    progress->at(static_cast<std::uint64_t>(number("exported") + number("checked")));
  }
}

}  // namespace

void add_archive_command(CLI::App& audit, Session& session) {
  add_command(session, audit, "archive", "Move the bodies of a full partition from the database to files", declare,
              archive);
}

}  // namespace muniment::cli
