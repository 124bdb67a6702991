// Implements the command import, which converts traces of other systems to runs. Each format has its own file
// (import/formats/, import/otlp/, import/claude_code/); this file iterates over the input and reports errors per file.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "adapters/commands.hpp"
#include "adapters/import/claude_code/claude_code.hpp"
#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/crew.hpp"
#include "adapters/import/forecast.hpp"
#include "adapters/import/format.hpp"
#include "adapters/import/formats/log.hpp"
#include "adapters/import/guess.hpp"
#include "adapters/import/otlp/otlp.hpp"
#include "adapters/import/record.hpp"
#include "adapters/import/translate/import_report.hpp"
#include "adapters/import/translate/translation.hpp"
#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "bridge/scrub.hpp"
#include "client/folder_events.hpp"

namespace muniment::cli {
namespace {

struct ImportOptions {
  std::string format;  // empty: detected per file
  bool dry_run = false;
  bool scrub = false;
  bool mine = false;
  bool watch = false;
  std::int64_t quiet = 60;
  std::string agent;
  std::string artifacts;
  std::vector<std::string> files;

  // Files of sessions that may grow: their runs are named by their sessions.
  bool grow() const { return mine || watch; }
};

void declare_import(CLI::App& command, ImportOptions& options) {
  std::vector<std::string> names;
  for (const TraceFormat& format : trace_formats()) names.emplace_back(format.name);
  command.add_option("--format", options.format, "Format of the files (default: detected per file)")
      ->check(CLI::IsMember(names));
  command.add_flag("--dry-run", options.dry_run, "Show what would be imported and record nothing");
  command.add_flag("--scrub", options.scrub, "Replace obvious secrets before they are recorded");
  command.add_option("--artifacts", options.artifacts, "Folder of artifacts that the export wrote (format jsonl)")
      ->type_name("DIR");
  command.add_option("--agent", options.agent, "Name of the agent (format messages, whose files do not name it)");
  command.add_flag("--mine", options.mine, "Import the sessions of Claude Code, Codex and Gemini CLI of this user");
  command.add_flag("--watch", options.watch,
                   "Keep running, and import new and continued sessions until SIGINT or SIGTERM");
  command
      .add_option("--quiet", options.quiet,
                  "With --mine or --watch: seconds without a change after which a session is imported")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str();
  command.add_option("FILE", options.files, "Trace files, or folders of them; files imported before are skipped");
}

// Names what a search of folders leaves out.
void say_skipped(std::string_view path, std::string_view why) {
  fmt::print(stderr, "muniment: skipped {}: {}\n", escape_for_terminal(path), why);
}

// Returns the named format or the detected one.
Result<const TraceFormat*> format_of(const std::string& path, const std::string& wanted) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    return Error(Errc::invalid_argument, "this is a folder without traces (files *.jsonl, *.json, *.traj, *.ndjson)");
  if (!wanted.empty()) return find_format(wanted);
  ASSIGN_OR_RETURN(const std::string_view name, sniffed_format(path));
  return find_format(name);
}

// State of one invocation. Runs are imported in parallel; reading files and printing happen on this thread only.
class Importer {
 public:
  // `files`: those of `options`, with the files of each folder instead of the folder.
  Importer(Session& session, const ImportOptions& options, const std::vector<std::string>& files,
           const std::string& socket_path)
      : session_(session),
        wanted_(options.format),
        artifacts_(options.artifacts),
        scrub_(options.scrub),
        grows_(options.grow()),
        agent_(options.agent),
        named_(options.files.begin(), options.files.end()),
        progress_("import", bytes_of(files)),
        crew_(socket_path) {}

  // Errors: transient ones, after which the same command resumes where this one stopped.
  Status import(const std::string& path) {
    const auto format = format_of(path, wanted_);
    if (!format && format.error().code == Errc::invalid_argument && !named_.contains(path)) {
      ++skipped_;  // a folder has other files too
      return success();
    }
    if (!format) return judge(path, 0, format.error());
    if (!agent_.empty() && (*format)->name != "messages")
      return judge(path, 0,
                   Error(Errc::invalid_argument,
                         fmt::format("--agent applies to the format messages; this is {}, which names its agent",
                                     (*format)->name)));
    const Status status = (*format)->unit != FileUnit::stream     ? import_sources(path, **format)
                          : (*format)->name == claude_code_format ? import_session(path)
                          : (*format)->name == log_format         ? import_export(path)
                                                                  : import_traces(path);
    return status ? success() : judge(path, 0, status.error());
  }

  Status finish() {
    RETURN_IF_ERROR(crew_.finish());
    for (const auto& [path, report] : reports_) say_report(path, report);
    if (skipped_ > 0)
      fmt::print(stderr, "muniment: skipped {} of unknown format in folders\n", many(skipped_, "file", "files"));
    return success();
  }
  std::size_t failed() const { return failed_; }

 private:
  static std::uint64_t file_size(const std::string& path) {
    std::error_code unknown;
    const auto size = std::filesystem::file_size(path, unknown);
    return unknown ? 0 : size;
  }

  static std::uint64_t bytes_of(const std::vector<std::string>& paths) {
    std::uint64_t bytes = 0;
    for (const std::string& path : paths) bytes += file_size(path);
    return bytes;
  }

  // Reports the bytes read; called on any thread.
  auto bar(const std::string& path) {
    return [this, path, shown = std::int64_t{0}](std::int64_t read, std::int64_t size) mutable {
      if (read - shown <= size / 200 && read < size) return;
      advance(static_cast<std::uint64_t>(std::max<std::int64_t>(read - shown, 0)), path);
      shown = read;
    };
  }

  void advance(std::uint64_t bytes, const std::string& path) {
    const std::lock_guard lock(progress_mutex_);
    progress_.at(done_ += bytes, path);
  }

  void complain(const std::string& path, const std::string& message) {
    ++failed_;
    fmt::print(stderr, "muniment: {}: {}\n", escape_for_terminal(path), escape_for_terminal(message));
  }

  // A transient error ends the import; any other error is reported and the import continues.
  Status judge(const std::string& path, std::uint64_t line, const Error& error) {
    if (is_transient(error.code)) return error;
    complain(path, line > 0 ? fmt::format("line {}: {}", line, error.message) : error.message);
    return success();
  }

  // Imports a file record by record, or as one run; an invalid record is reported and skipped.
  Status import_sources(const std::string& path, const TraceFormat& format) {
    ASSIGN_OR_RETURN(TraceSources sources, TraceSources::open(path, format));
    auto tell = bar(path);
    bool any = false;
    while (sources.goes_on()) {
      auto source = sources.next();
      any = any || !source || *source;
      if (!source) {
        RETURN_IF_ERROR(judge(path, 0, source.error()));
        continue;
      }
      if (!*source) break;
      tell(sources.position(), sources.size());
      RETURN_IF_ERROR(add_source(path, *std::move(*source), format));
    }
    if (!any) complain(path, std::string(no_record));
    return success();
  }

  Status add_source(const std::string& path, TraceSource source, const TraceFormat& format) {
    const std::size_t bytes = source.text.size();
    auto work = [this, path, &format, source = std::move(source)](Client& client) -> ImportCrew::Report {
      auto imported = import_source(client, source, format);
      return [this, path, line = source.line, imported = std::move(imported)]() -> Status {
        if (!imported) return judge(path, line, imported.error());
        for (const RecordedRun& run : *imported) say(path, run, {}, line);
        return success();
      };
    };
    return crew_.add(bytes, std::move(work));
  }

  Result<std::vector<RecordedRun>> import_source(Client& client, const TraceSource& source,
                                                 const TraceFormat& format) const {
    ASSIGN_OR_RETURN(std::vector<TranslatedRun> runs, translate_source(format, source));
    std::vector<RecordedRun> recorded;
    for (TranslatedRun& run : runs) {
      if (!agent_.empty()) run.run.agent = agent_;
      // A file with one run whose source names it is a session.
      if (grows_ && runs.size() == 1 && source.line == 0 && !run.run.external_id.empty())
        run.source.session = session_key(format.name, run.run.external_id);
      ASSIGN_OR_RETURN(RecordedRun one, record_run(client, run, format.name, scrub_));
      recorded.push_back(std::move(one));
    }
    return recorded;
  }

  Status import_export(const std::string& path) {
    if (scrub_) {
      return Error(
          Errc::invalid_argument,
          "--scrub does not apply to an export: its rows have hashes that prove their bodies. Import it without "
          "--scrub");
    }
    return crew_.add(0, [this, path](Client& client) -> ImportCrew::Report {
      auto log = import_log(client, path, artifacts_, bar(path));
      return [this, path, log = std::move(log)]() -> Status {
        if (!log) return judge(path, 0, log.error());
        say_log(path, *log);
        return success();
      };
    });
  }

  void say_log(const std::string& path, const ImportedLog& log) {
    for (const std::string& problem : log.problems) complain(path, problem);
    if (log.bad_lines > log.problems.size())
      complain(path, fmt::format("{} further lines are not events", log.bad_lines - log.problems.size()));
    for (const auto& [type, count] : log.left_out) {
      fmt::print(stderr, "muniment: {}: {} {} are skipped\n", escape_for_terminal(path), grouped(count),
                 escape_for_terminal(type));
    }
    for (const ImportedLog::Run& run : log.runs) {
      if (const std::string lacks = missing_words(run); !lacks.empty())
        complain(path, fmt::format("run {} is only partly imported: {}", run.run_id, lacks));
      // A log has no texts to understand; its events are copied.
      print_run(path, {run.run_id, run.added, run.events, run.artifacts}, {}, 0);
    }
  }

  // Indexes the spans first, then imports trace by trace.
  Status import_traces(const std::string& path) {
    auto opened = OtlpFile::open(
        path, [&](const std::string& problem) { complain(path, problem); }, bar(path));
    if (!opened) return judge(path, 0, opened.error());
    const auto file = std::make_shared<const OtlpFile>(std::move(*opened));
    if (file->duplicates() > 0) {
      fmt::print(stderr, "muniment: {}: {} duplicate spans are recorded once\n", escape_for_terminal(path),
                 grouped(file->duplicates()));
    }
    for (const OtlpTraceItems& items : file->traces()) {
      constexpr std::size_t item_bytes = 100;  // size of a trace's plan
      auto work = [this, path, file, &items](Client& client) -> ImportCrew::Report {
        auto trace = import_trace(client, *file, items, scrub_);
        return [this, path, file, &items, trace = std::move(trace)]() -> Status {
          if (trace)
            say_tree(path, *trace);
          else if (is_transient(trace.error().code))
            return trace.error();
          else
            complain(path, fmt::format("trace {}: {}", items.id, trace.error().message));
          return success();
        };
      };
      RETURN_IF_ERROR(crew_.add(items.count * item_bytes, std::move(work)));
    }
    return success();
  }

  // Imports a session line by line.
  Status import_session(const std::string& path) {
    // The first reading is in the order of the files: a line that several have is the first one's.
    ASSIGN_OR_RETURN(ClaudeCodeSession opened, ClaudeCodeSession::open(path, &identities_));
    const auto session = std::make_shared<ClaudeCodeSession>(std::move(opened));
    return crew_.add(0, [this, path, session](Client& client) -> ImportCrew::Report {
      auto done = import_claude_code(client, path, *session, bar(path), scrub_, grows_);
      return [this, path, done = std::move(done)]() -> Status {
        if (!done) return judge(path, 0, done.error());
        say_tree(path, *done);
        return success();
      };
    });
  }

  // Reports a run and its child runs.
  template <typename Tree>
  void say_tree(const std::string& path, const Tree& tree) {
    say(path, {tree.run_id, tree.added, tree.events, tree.artifacts, tree.repaired, tree.tally}, {}, 0);
    for (const ImportedChild& child : tree.children)
      print_run(path, {child.run_id, child.added, child.events, child.artifacts}, child.parent, 0);
  }

  void say(const std::string& path, const RecordedRun& run, const std::string& parent, std::uint64_t line) {
    if (run.repaired > 0) {
      fmt::print(
          stderr,
          "muniment: {}: {} records have characters that JSON does not allow; U+FFFD replaces them, and an artifact "
          "keeps the bytes\n",
          escape_for_terminal(path), grouped(run.repaired));
    }
    if (run.added) reports_[path].add(run.tally, line > 0 ? fmt::format("line {}", line) : "run " + run.run_id);
    print_run(path, run, parent, line);
  }

  void say_report(const std::string& path, const ImportReport& report) {
    constexpr std::string_view remedy =
        "a format can be named with --format, or the file be converted to the format messages";
    for (const std::string& warning : report.warnings(path, remedy, !session_.options.json))
      fmt::print(stderr, "muniment: {}\n", escape_for_terminal(warning));
  }

  void print_run(const std::string& path, const RecordedRun& run, const std::string& parent, std::uint64_t line) {
    if (session_.options.json) {
      json::Writer writer;
      writer.begin_object().member("file", path).member("run_id", run.run_id).member("added", run.added);
      if (!parent.empty()) writer.member("parent", parent);
      if (line > 0) writer.member("line", static_cast<std::int64_t>(line));
      writer.member("events", static_cast<std::int64_t>(run.events));
      writer.member("artifacts", static_cast<std::int64_t>(run.artifacts));
      run.tally.write(writer);
      session_.out().json_line(std::move(writer.end_object()).text());
    } else {
      const std::string name = (parent.empty() ? "" : "└ ") + run.run_id;
      session_.out().line(
          run.added ? fmt::format("{}  {}  {}", name, many(static_cast<std::int64_t>(run.events), "event", "events"),
                                  many(static_cast<std::int64_t>(run.artifacts), "artifact", "artifacts"))
                    : name + "  is already imported");
    }
  }

  Session& session_;
  const std::string wanted_;
  const std::string artifacts_;
  const bool scrub_;
  const bool grows_;
  const std::string agent_;
  const std::set<std::string> named_;  // files and folders, as given
  std::mutex progress_mutex_;          // guards the next two members
  Progress progress_;
  std::uint64_t done_ = 0;
  std::size_t failed_ = 0;
  std::int64_t skipped_ = 0;
  LineIdentities identities_;
  std::map<std::string, ImportReport> reports_;  // by path
  ImportCrew crew_;                              // last: its threads use the members above
};

// Prints what would be imported, run by run.
class Forecast {
 public:
  Forecast(Session& session, const ImportOptions& options) : session_(session), options_(options) {}

  Status run(const std::vector<std::string>& files) {
    for (const std::string& path : files) {
      const Status done = show(path);
      if (!done) complain(path, 0, done.error().message);
    }
    if (failed_ == 0) return success();
    return Error(Errc::invalid_argument, fmt::format("{} of the inputs could not be imported", failed_));
  }

 private:
  Status show(const std::string& path) {
    const auto found = format_of(path, options_.format);
    const bool is_named = std::ranges::find(options_.files, path) != options_.files.end();
    if (!found && found.error().code == Errc::invalid_argument && !is_named) return success();
    if (!found) return found.error();
    const TraceFormat* const format = *found;
    const ForecastReader reader{[&](const ForecastRun& run) { tell(path, format->name, run); },
                                [&](std::uint64_t line, const std::string& message) { complain(path, line, message); }};
    return forecast_import(path, *format, reader);
  }

  void complain(const std::string& path, std::uint64_t line, const std::string& message) {
    ++failed_;
    fmt::print(stderr, "muniment: {}: {}{}\n", escape_for_terminal(path),
               line > 0 ? fmt::format("line {}: ", line) : "", escape_for_terminal(message));
  }

  void tell(const std::string& path, std::string_view format, const ForecastRun& run) const {
    std::uint64_t events = 0;
    for (const auto& [type, count] : run.events) events += count;
    if (session_.options.json) {
      json::Writer out;
      out.begin_object()
          .member("file", path)
          .member("format", format)
          .member("run_id", run.run_id)
          .member("agent", run.agent);
      out.member("goal", run.goal).member("outcome", run.outcome).key("events").begin_object();
      for (const auto& [type, count] : run.events) out.member(type, static_cast<std::int64_t>(count));
      out.end_object().member("long", static_cast<std::int64_t>(run.long_events));
      session_.out().json_line(std::move(out.end_object()).text());
      return;
    }
    session_.out().line(fmt::format("{}  {}  {}  {} events", session_.out().one_line(run.run_id), format,
                                    session_.out().one_line(run.agent), grouped(events)));
    if (run.long_events > 0)
      session_.out().line(
          fmt::format("  longer   {} of them: each text too long for an event becomes an artifact with its own event",
                      grouped(run.long_events)));
    if (format == log_format)
      session_.out().line(
          "  counted  in the file; events only its own daemon may write (snapshots, halts, erasures) are not imported");
    if (!run.goal.empty()) session_.out().line("  goal     " + fit(session_.out().one_line(run.goal), 100));
    session_.out().line("  outcome  " + run.outcome);
    std::string types;
    for (const auto& [type, count] : run.events)
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", grouped(count), type);
    session_.out().line("  events   " + session_.out().one_line(types));
  }

  Session& session_;
  const ImportOptions& options_;
  std::size_t failed_ = 0;
};

struct FileState {
  std::int64_t size = 0;
  std::int64_t changed_ns = 0;  // since 1970
  friend bool operator==(const FileState&, const FileState&) = default;
};

FileState state_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_size, std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// Selects the files of sessions that are due: those that have been quiet, in the order of their last change, since a
// session that continues another one repeats its lines.
class QuietFiles {
 public:
  explicit QuietFiles(std::chrono::seconds quiet) : quiet_(quiet) {}

  // Returns the files to import. A file of Claude Code is read together with those beside it, for the lines that they
  // have in common.
  std::vector<std::string> due(const std::vector<std::string>& files, bool watched) {
    waiting_ = std::chrono::milliseconds(-1);
    const std::int64_t now_ns = Clock().now().micros * 1'000;
    std::map<std::string, FileState> states;
    std::set<std::string> folders;
    std::vector<std::string> quiet;
    for (const std::string& path : files) {
      const FileState state = state_of(path);
      const auto age = std::chrono::nanoseconds(now_ns - state.changed_ns);
      if (age < quiet_ && state.changed_ns <= now_ns) {
        wait_for(std::chrono::ceil<std::chrono::milliseconds>(quiet_ - age));
        if (!watched)
          say_skipped(path, fmt::format("it changed less than {} s ago; import it again later, or with --quiet 0",
                                        quiet_.count()));
        continue;
      }
      states.emplace(path, state);
      quiet.push_back(path);
      if (const auto done = done_.find(path); done == done_.end() || done->second != state)
        folders.insert(folder(path));
    }
    std::erase_if(quiet, [&](const std::string& path) { return !folders.contains(folder(path)); });
    std::ranges::stable_sort(quiet, {}, [&](const std::string& path) { return states[path].changed_ns; });
    for (const std::string& path : quiet) next_[path] = states[path];
    return quiet;
  }
  // The files of the last due() were imported.
  void done() {
    for (const auto& [path, state] : next_) done_[path] = state;
    next_.clear();
  }
  // Time until the next file is due without a further change; negative: none is waiting.
  std::chrono::milliseconds waiting() const { return waiting_; }

 private:
  static std::string folder(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }
  void wait_for(std::chrono::milliseconds time) {
    if (waiting_.count() < 0 || time < waiting_) waiting_ = time;
  }

  const std::chrono::seconds quiet_;
  std::chrono::milliseconds waiting_{-1};
  std::map<std::string, FileState> done_, next_;
};

Status import_all(Session& session, const ImportOptions& options, const std::vector<std::string>& files) {
  RETURN_IF_ERROR(session.client());  // starts a daemon if none runs
  ASSIGN_OR_RETURN(const Config configuration, session.config());
  if (options.scrub) RETURN_IF_ERROR(bridge::scrub_by(configuration, environ));
  Importer importer(session, options, files, configuration.socket);
  for (const std::string& path : files) RETURN_IF_ERROR(importer.import(path));
  RETURN_IF_ERROR(importer.finish());
  if (importer.failed() == 0) return success();
  return Error(Errc::invalid_argument, fmt::format("{} of the inputs could not be imported", importer.failed()));
}

// A pass follows each burst of changes, and the moment at which a session has been quiet.
Status import_and_watch(Session& session, const ImportOptions& options, const std::vector<std::string>& paths) {
  constexpr std::chrono::milliseconds retry{1'000};
  ASSIGN_OR_RETURN(FolderEvents events, FolderEvents::open());
  QuietFiles quiet{std::chrono::seconds(options.quiet)};
  std::set<std::string> told;  // skipped files, each named once
  const TraceWalk walk{[&](std::string_view path, std::string_view why) {
                         if (told.emplace(path).second) say_skipped(path, why);
                       },
                       [&](int folder, const std::string& path) { return events.add(folder, path); }};
  for (;;) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, session_files(paths, walk));
    const std::vector<std::string> due = quiet.due(files, true);
    const Status imported = due.empty() ? success() : import_all(session, options, due);
    std::fflush(stdout);
    if (events.stopping() || session.out().failed()) return success();
    if (!imported) fmt::print(stderr, "muniment: {}\n", escape_for_terminal(imported.error().message));
    const bool again = !imported && is_transient(imported.error().code);
    if (!again) quiet.done();
    if (again ? !events.pause(retry) : !events.wait_for_change(quiet.waiting())) return success();
  }
}

Status import_files(Session& session, const ImportOptions& options) {
  std::vector<std::string> paths = options.files;
  if (options.mine) {
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home == '\0') return Error(Errc::invalid_argument, "--mine: HOME is not set");
    const std::vector<std::string> folders = agent_folders(home);
    if (folders.empty() && paths.empty())
      return Error(
          Errc::not_found,
          fmt::format(
              "--mine: {} has no sessions of Claude Code (.claude/projects), Codex (.codex/sessions) or Gemini CLI (.gemini/tmp)",
              home));
    paths.insert(paths.end(), folders.begin(), folders.end());
  }
  if (paths.empty()) return Error(Errc::invalid_argument, "give files or folders, or --mine");
  if (options.watch && options.dry_run) return Error(Errc::invalid_argument, "--watch or --dry-run, not both");
  if (options.watch) return import_and_watch(session, options, paths);
  ASSIGN_OR_RETURN(std::vector<std::string> files, session_files(paths, {say_skipped, {}}));
  if (options.dry_run) return Forecast(session, options).run(files);
  if (options.mine) files = QuietFiles(std::chrono::seconds(options.quiet)).due(files, false);
  return import_all(session, options, files);
}

}  // namespace

void add_import_command(CLI::App& app, Session& session) {
  add_command<ImportOptions>(session, app, "import", "Import traces of other systems as runs", declare_import,
                             import_files);
}

}  // namespace muniment::cli
