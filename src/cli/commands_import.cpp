// import: traces of other systems, as runs.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/import_record.hpp"
#include "cli/import_swe_agent.hpp"

namespace muniment::cli {
namespace {

struct ImportOptions {
  std::string format;
  std::vector<std::string> files;
};

void declare_import(CLI::App& command, ImportOptions& options) {
  command.add_option("--format", options.format, "What the files are")
      ->required()
      ->check(CLI::IsMember({std::string(swe_agent_format)}));
  command.add_option("FILE", options.files, "Each becomes a run; the same file twice adds nothing")->required();
}

Result<std::string> read_source(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) return Error(Errc::invalid_argument, "cannot be read");
  return text;
}

Status import_file(Session& session, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_source(path));
  const SourceFile source{std::filesystem::path(path).stem().string(), to_hex(sha256(text)), text};
  const std::string run_id = imported_run_id(source);
  ASSIGN_OR_RETURN(Client* const client, session.client());
  ImportRecorder recorder(*client, run_id, source.sha256);
  RETURN_IF_ERROR(import_swe_agent(source, recorder));
  const bool added = recorder.events() > 0;
  if (session.options.json) {
    json::Writer writer;
    writer.begin_object().member("file", path).member("run_id", run_id).member("added", added);
    writer.member("events", static_cast<std::int64_t>(recorder.events()));
    writer.member("artifacts", static_cast<std::int64_t>(recorder.artifacts())).end_object();
    session.out().json_line(writer.text());
  } else {
    session.out().line(added ? fmt::format("{}  {} events  {} artifacts", run_id, grouped(recorder.events()),
                                           grouped(recorder.artifacts()))
                             : run_id + "  was imported already");
  }
  return success();
}

// A file that cannot be imported is named, and the others are imported all the same.
Status import_files(Session& session, const ImportOptions& options) {
  std::size_t failed = 0;
  Progress progress("import", options.files.size());
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    progress.at(i, options.files[i]);
    const Status status = import_file(session, options.files[i]);
    if (status) continue;
    if (is_transient(status.error().code)) return status;
    ++failed;
    fmt::print(stderr, "muniment: {}: {}\n", escape_for_terminal(options.files[i]),
               escape_for_terminal(status.error().message));
  }
  if (failed == 0) return success();
  return Error(Errc::invalid_argument,
               fmt::format("{} of {} files could not be imported", failed, options.files.size()));
}

}  // namespace

void add_import_command(CLI::App& app, Session& session) {
  add_command<ImportOptions>(session, app, "import", "Traces of other systems, as runs", declare_import,
                             import_files);
}

}  // namespace muniment::cli
