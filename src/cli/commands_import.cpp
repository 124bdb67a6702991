// import: traces of other systems, as runs. What a format means is said by its own file (import_*.hpp);
// here files are walked, and what went wrong is said for each.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cli/claude_code_lines.hpp"
#include "cli/commands.hpp"
#include "cli/import_claude_code.hpp"
#include "cli/import_log.hpp"
#include "cli/import_openhands.hpp"
#include "cli/import_record.hpp"
#include "cli/import_records.hpp"
#include "cli/import_swe_agent.hpp"
#include "cli/import_tau_bench.hpp"

namespace muniment::cli {
namespace {

struct ImportOptions {
  std::string format;
  std::string artifacts;
  std::vector<std::string> files;
};

using TranslateRecord = Result<ImportedRun> (*)(const json::Value& record);

// A format whose files are read record by record has a translation; the others have an importer of their own.
struct ImportFormat {
  std::string_view name;
  TranslateRecord translate;
};

constexpr ImportFormat import_formats[] = {
    {swe_agent_format, nullptr},
    {openhands_format, translate_openhands},
    {tau_bench_format, translate_tau_bench},
    {claude_code_format, nullptr},
    {log_format, nullptr},
};

void declare_import(CLI::App& command, ImportOptions& options) {
  std::vector<std::string> names;
  for (const ImportFormat& format : import_formats) names.emplace_back(format.name);
  command.add_option("--format", options.format, "What the files are")->required()->check(CLI::IsMember(names));
  command.add_option("--artifacts", options.artifacts, "jsonl: the folder that the export wrote beside it")->type_name("DIR");
  command.add_option("FILE", options.files, "Each becomes a run, or one for each record; the same file twice adds nothing")
      ->required();
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

// One invocation: the files, one after the other, and what is printed of them.
class Importer {
 public:
  Importer(Session& session, const ImportFormat& format, const std::string& artifacts)
      : session_(session), format_(format), artifacts_(artifacts) {}

  // Errors: transient ones, after which the same command goes on where this one broke off.
  Status import(const std::string& path) {
    path_ = path;
    const Status status = format_.translate != nullptr            ? import_records()
                          : format_.name == claude_code_format ? import_session()
                          : format_.name == log_format         ? import_export()
                                                               : import_whole();
    if (status) return success();
    if (is_transient(status.error().code)) return status;
    complain(status.error().message);
    return success();
  }

  std::size_t failed() const { return failed_; }

 private:
  void complain(const std::string& message) {
    ++failed_;
    fmt::print(stderr, "muniment: {}: {}\n", escape_for_terminal(path_), escape_for_terminal(message));
  }

  // A file that is one JSON object: it is held in memory.
  Status import_whole() {
    std::ifstream file(path_, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (!file) return Error(Errc::invalid_argument, "cannot be read");
    const SourceFile source{stem_of(path_), to_hex(sha256(text)), text};
    ASSIGN_OR_RETURN(Client* const client, session_.client());
    ImportRecorder recorder(*client, imported_run_id(source), source.sha256);
    if (const Status done = import_swe_agent(source, recorder); !done) return recorder.broke_off(done.error());
    say({recorder.run_id(), recorder.events() > 0, recorder.events(), recorder.artifacts()}, 0);
    return success();
  }

  // One record after the other: one that is no good is named, and the others are imported all the same.
  Status import_records() {
    ASSIGN_OR_RETURN(RecordReader reader, RecordReader::open(path_));
    Progress progress("import", static_cast<std::uint64_t>(reader.size()));
    while (reader.goes_on()) {
      auto record = reader.next();
      if (!record && !is_transient(record.error().code)) {
        complain(record.error().message);
        continue;
      }
      if (!record) return std::move(record).error();
      if (!*record) break;
      progress.at(static_cast<std::uint64_t>(reader.position()), path_);
      const Status status = import_record(**record);
      if (status) continue;
      if (is_transient(status.error().code)) return status;
      complain(fmt::format("line {}: {}", (*record)->line, status.error().message));
    }
    return success();
  }

  Status import_record(const TraceRecord& record) {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(record.text));
    ASSIGN_OR_RETURN(const ImportedRun run, format_.translate(document.root()));
    const SourceFile source{fmt::format("{}-{}", stem_of(path_), record.number), to_hex(sha256(record.text)), record.text};
    ASSIGN_OR_RETURN(Client* const client, session_.client());
    ImportRecorder recorder(*client, imported_run_id(source), source.sha256);
    const auto added = record_run(recorder, run, source, format_.name);
    if (!added) return recorder.broke_off(added.error());
    say({recorder.run_id(), *added, recorder.events(), recorder.artifacts()}, record.line);
    return success();
  }

  // What the import of a file tells of its bytes, on a bar that is not drawn for every line.
  auto bar(Progress& progress, std::int64_t& shown) {
    return [&](std::int64_t read, std::int64_t size) {
      if (read - shown <= size / 200) return;
      shown = read;
      progress.at(static_cast<std::uint64_t>(read), path_);
    };
  }

  std::uint64_t file_size() const {
    std::error_code unknown;
    const auto size = std::filesystem::file_size(path_, unknown);
    return unknown ? 0 : size;
  }

  Status import_export() {
    ASSIGN_OR_RETURN(Client* const client, session_.client());
    Progress progress("import", file_size());
    std::int64_t shown = 0;
    ASSIGN_OR_RETURN(const ImportedLog log, import_log(*client, path_, artifacts_, bar(progress, shown)));
    for (const std::string& problem : log.problems) complain(problem);
    if (log.bad_lines > log.problems.size()) complain(fmt::format("{} further lines are no events", log.bad_lines - log.problems.size()));
    for (const auto& [type, count] : log.left_out) {
      fmt::print(stderr, "muniment: {}: {} {} are left out\n", escape_for_terminal(path_), grouped(count), escape_for_terminal(type));
    }
    for (const ImportedLog::Run& run : log.runs) {
      if (run.missing > 0) complain(fmt::format("run {} is imported in part: {} of its events are not in the file", run.run_id, run.missing));
      say({run.run_id, run.added, run.events, run.artifacts}, 0);
    }
    return success();
  }

  // A session is followed line by line.
  Status import_session() {
    ASSIGN_OR_RETURN(Client* const client, session_.client());
    Progress progress("import", file_size());
    std::int64_t shown = 0;
    const auto tell = bar(progress, shown);
    ASSIGN_OR_RETURN(const ImportedSession done, import_claude_code(*client, path_, tell));
    if (done.unreadable > 0) {
      fmt::print(stderr, "muniment: {}: {} lines are no JSON; they are kept as x.claude_code.unreadable\n",
                 escape_for_terminal(path_), grouped(done.unreadable));
    }
    say({done.run_id, done.added, done.events, done.artifacts}, 0);
    return success();
  }

  struct Imported {
    std::string run_id;
    bool added = false;
    std::uint64_t events = 0;
    std::uint64_t artifacts = 0;
  };

  void say(const Imported& run, std::uint64_t line) {
    if (session_.options.json) {
      json::Writer writer;
      writer.begin_object().member("file", path_).member("run_id", run.run_id).member("added", run.added);
      if (line > 0) writer.member("line", static_cast<std::int64_t>(line));
      writer.member("events", static_cast<std::int64_t>(run.events));
      writer.member("artifacts", static_cast<std::int64_t>(run.artifacts)).end_object();
      session_.out().json_line(writer.text());
    } else {
      session_.out().line(run.added ? fmt::format("{}  {} events  {} artifacts", run.run_id, grouped(run.events), grouped(run.artifacts))
                                    : run.run_id + "  was imported already");
    }
  }

  Session& session_;
  const ImportFormat& format_;
  const std::string& artifacts_;
  std::string path_;
  std::size_t failed_ = 0;
};

Status import_files(Session& session, const ImportOptions& options) {
  const auto* const format = std::find_if(std::begin(import_formats), std::end(import_formats),
                                          [&](const ImportFormat& known) { return known.name == options.format; });
  Importer importer(session, *format, options.artifacts);
  Progress progress("import", options.files.size());
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    progress.at(i, options.files[i]);
    RETURN_IF_ERROR(importer.import(options.files[i]));
  }
  if (importer.failed() == 0) return success();
  return Error(Errc::invalid_argument, fmt::format("{} of what was to be imported could not be", importer.failed()));
}

}  // namespace

void add_import_command(CLI::App& app, Session& session) {
  add_command<ImportOptions>(session, app, "import", "Traces of other systems, as runs", declare_import,
                             import_files);
}

}  // namespace muniment::cli
