// Implements the command export: writes events as JSONL or CSV, read from Postgres in one pass, and copies their
// artifacts and manifests.
#include <fcntl.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/export/archive.hpp"
#include "cli/export/connection.hpp"
#include "cli/export/file.hpp"
#include "cli/export/rows.hpp"
#include "cli/time_option.hpp"
#include "store/logs/log_place.hpp"

namespace muniment::cli {
namespace {

struct EventExportOptions {
  std::vector<std::string> runs;
  std::string since;
  std::string until;
  std::vector<std::string> types;
  std::vector<std::string> labels;
  std::string format;
  std::string artifacts;
  std::string output;
  bool resume = false;
  bool scrub = false;
  std::optional<std::int64_t> from_seq;
  std::optional<std::int64_t> log_no;
};

void declare_event_export(CLI::App& command, EventExportOptions& options) {
  command.add_option("RUN", options.runs, "Runs to export (default: the whole log)");
  add_time(command, "--since", options.since, "Recorded at this time or later");
  add_time(command, "--until", options.until, "Recorded before this time");
  command.add_option("--type", options.types, "Event type: tool.called, tool.*, …; repeat for several");
  command.add_option("--label", options.labels, "Only runs with this label k=v; repeat to require several");
  command.add_option("--format", options.format, "Output format: jsonl or csv")
      ->required()
      ->check(CLI::IsMember({"jsonl", "csv"}));
  command.add_option("--artifacts", options.artifacts, "Copy artifacts and manifests of the exported events here")
      ->type_name("DIR");
  command.add_option("--output", options.output, "Output file (default: standard output)")->type_name("FILE");
  command.add_flag("--resume", options.resume, "Resume an interrupted export; repeat its options");
  command.add_flag("--scrub", options.scrub, "Refused, since the hashes of the rows prove their bodies");
  command.add_option("--from-seq", options.from_seq, "First seq to export")->check(CLI::NonNegativeNumber);
  command.add_option("--log", options.log_no, "Export this closed log instead of the current one")
      ->check(CLI::PositiveNumber);
}

class EventExport {
 public:
  EventExport(Session& session, const EventExportOptions& options) : session_(session), options_(options) {}

  Status run() {
    if (options_.scrub) {
      return Error(
          Errc::invalid_argument,
          "an export cannot be scrubbed: each row has the hash of its body, which a replaced secret would "
          "break. Erase the bodies first (muniment audit redact), or scrub what is recorded (muniment exec --scrub)");
    }
    ASSIGN_OR_RETURN(const std::string uri, database_uri());
    ASSIGN_OR_RETURN(ExportConnection connection, ExportConnection::open(uri));
    RETURN_IF_ERROR(find_log(connection));
    ASSIGN_OR_RETURN(const std::string where, condition(connection));
    if (!options_.artifacts.empty()) RETURN_IF_ERROR(open_folders());
    ASSIGN_OR_RETURN(ExportFile file, ExportFile::open(options_.output, options_.resume, form()));
    if (file.so_far()) RETURN_IF_ERROR(check_same_export(connection, where, *file.so_far()));
    RETURN_IF_ERROR(file.go_on());
    const std::string rest = file.so_far() ? fmt::format(" AND e.seq > {}", file.so_far()->last.seq) : "";
    const Status done = write_events(connection, where + rest, file);
    if (!done) return broke_off(done.error(), file);
    if (!options_.artifacts.empty()) RETURN_IF_ERROR(write_manifests(connection, where));
    if (archived_ > 0) {
      fmt::print(stderr, "muniment: the export lacks the bodies of {} archived events: {}\n", grouped(archived_),
                 escape_for_terminal(no_archive_));
      session_.exit_code = exit_refused;  // the rest is written, but a script must treat the export as incomplete
    }
    return success();
  }

 private:
  // Asks the daemon for its database, or reads the configuration if no daemon runs. This command starts no daemon.
  Result<std::string> database_uri() {
    const auto client = session_.running_client();
    if (client) {
      ASSIGN_OR_RETURN(const Message status, (*client)->call("server.status", "{}"));
      log_id_ = status.result()["log"]["log_id"].string_or("");
      data_ = status.result()["data_dir"].string_or("");
      for (const json::Value log : status.result()["earlier_logs"]) {
        closed_.emplace(log["log_no"].as_int().value_or(0),
                        ClosedLog{log["log_id"].string_or(""), log["size"].as_int().value_or(0)});
      }
      return status.result()["database"].string_or("");
    }
    ASSIGN_OR_RETURN(const Config config, session_.config());
    data_ = config.data;
    if (!config.database.empty()) return config.database;
    return client.error();
  }

  ExportForm form() const { return options_.format == "csv" ? ExportForm::csv : ExportForm::jsonl; }

  Status find_log(ExportConnection& connection) {
    RETURN_IF_ERROR(choose_log());
    RETURN_IF_ERROR(connection.start("SELECT log_no, log_id::text FROM log_head ORDER BY log_no"));
    ExportFields fields;
    std::size_t logs = 0;
    std::string found;
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, connection.next(fields));
      if (!more) break;
      const std::string id(fields[1].value_or(""));
      if (!log_id_.empty() && id != log_id_) continue;
      log_no_ = export_integer(fields[0].value_or(""));
      found = id;
      ++logs;
    }
    log_id_ = found;
    if (logs == 1) return success();
    return Error(Errc::not_found, logs == 0
                                      ? "this database contains no such log"
                                      : "this database contains several logs; start the daemon of the one to export");
  }

  // Only the daemon knows which logs are closed and where each ends.
  Status choose_log() {
    if (!options_.log_no) {
      for (const auto& [number, log] : closed_) {
        if (options_.runs.empty())
          fmt::print(stderr, "muniment: closed log {} is not included; export it with --log {}\n", number, number);
      }
      return success();
    }
    const auto closed = closed_.find(*options_.log_no);
    if (closed != closed_.end()) {
      log_id_ = closed->second.log_id;
      size_ = closed->second.size;
      return success();
    }
    if (log_id_.empty())
      return Error(Errc::invalid_argument,
                   "--log: only the daemon knows where a closed log ends. Start it: muniment up");
    return Error(Errc::not_found, fmt::format("--log: the current log does not continue log {}. See: muniment status",
                                              *options_.log_no));
  }

  // Returns the condition of the export as SQL.
  Result<std::string> condition(ExportConnection& connection) {
    std::string where = fmt::format("e.log_no = {}", log_no_);
    if (options_.from_seq.value_or(0) > 0) where += fmt::format(" AND e.seq >= {}", *options_.from_seq);
    if (size_)
      where += fmt::format(" AND e.seq < {}", *size_);  // rows past the end of a closed log do not belong to it
    for (const auto& [given, sign] :
         {std::pair<const std::string&, const char*>{options_.since, ">="}, {options_.until, "<"}}) {
      if (given.empty()) continue;
      const auto time = parse_time(given);
      if (!time)
        return Error(Errc::invalid_argument, fmt::format("{} is not a time; write 2026-01-02T03:04:05Z", given));
      where += fmt::format(" AND e.recorded_at {} '{}'", sign, format_time(*time));
    }
    ASSIGN_OR_RETURN(const std::string types, type_condition(connection));
    ASSIGN_OR_RETURN(const std::string runs, run_condition(connection));
    return where + types + runs;
  }

  Result<std::string> type_condition(const ExportConnection& connection) const {
    std::string any;
    for (const std::string& type : options_.types) {
      std::string pattern;
      for (const char c : type) {
        if (c == '*')
          pattern += '%';
        else if (c == '%' || c == '_' || c == '\\')
          pattern += std::string("\\") + c;
        else
          pattern += c;
      }
      ASSIGN_OR_RETURN(const std::string literal, connection.quoted(pattern));
      any += (any.empty() ? "e.type LIKE " : " OR e.type LIKE ") + literal;
    }
    return any.empty() ? any : " AND (" + any + ")";
  }

  Result<std::string> run_condition(ExportConnection& connection) {
    std::string labels;
    for (const std::string& label : options_.labels) {
      const std::size_t equals = label.find('=');
      if (equals == std::string::npos) return Error(Errc::invalid_argument, label + " is not a label; write k=v");
      ASSIGN_OR_RETURN(const std::string name, connection.quoted(label.substr(0, equals)));
      ASSIGN_OR_RETURN(const std::string value, connection.quoted(label.substr(equals + 1)));
      labels += fmt::format(" AND r.labels ->> {} = {}", name, value);
    }
    RETURN_IF_ERROR(read_runs(connection, labels));
    if (options_.runs.empty() && labels.empty()) return std::string();
    std::string numbers;
    if (options_.runs.empty()) {
      for (const auto& [number, id] : labelled_) numbers += (numbers.empty() ? "" : ",") + std::to_string(number);
    }
    for (const std::string& name : options_.runs) {
      ASSIGN_OR_RETURN(const std::int64_t number, number_of(connection, name));
      if (labels.empty() || labelled_.contains(number))
        numbers += (numbers.empty() ? "" : ",") + std::to_string(number);
    }
    return " AND e.run_no IN (" + (numbers.empty() ? "-1" : numbers) + ")";
  }

  Result<std::int64_t> number_of(ExportConnection& connection, const std::string& name) {
    std::string id = name;
    if (name.starts_with('@') || name.find('=') != std::string::npos) {
      RETURN_IF_ERROR(session_.running_client());
      ASSIGN_OR_RETURN(id, session_.run_id(name));
    }
    for (const auto& [number, known] : runs_) {
      if (known == id) return number;
    }
    ASSIGN_OR_RETURN(const auto other, log_with(connection, id));
    if (!other) {
      Error error(Errc::not_found, "there is no run " + id);
      error.run_id = id;
      return error;
    }
    return Error(Errc::not_found,
                 fmt::format("run {} is in the closed log {}; export it with --log {}", id, *other, *other));
  }

  // Finds a different closed log that contains the run.
  Result<std::optional<std::int64_t>> log_with(ExportConnection& connection, const std::string& run_id) {
    ASSIGN_OR_RETURN(const std::string id, connection.quoted(run_id));
    RETURN_IF_ERROR(connection.start(
        fmt::format("SELECT log_no FROM run WHERE run_id = {} AND log_no <> {} ORDER BY log_no DESC", id, log_no_)));
    std::optional<std::int64_t> found;
    ExportFields fields;
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, connection.next(fields));
      if (!more) return found;
      const std::int64_t number = export_integer(fields[0].value_or(""));
      if (!found && closed_.contains(number)) found = number;
    }
  }

  // Reads run ids from the events that started the runs, or from the follower's row if that event is erased.
  Status read_runs(ExportConnection& connection, const std::string& labels) {
    const std::string matches = labels.empty() ? "false" : "coalesce(true" + labels + ", false)";
    RETURN_IF_ERROR(connection.start(fmt::format(
        "SELECT e.run_no, coalesce(e.body ->> 'run_id', r.run_id), {} FROM event e LEFT JOIN run r USING (log_no, run_no) "
        "WHERE e.log_no = {} AND e.run_seq = 0 AND e.run_no > 0 AND e.seq < {}",
        matches, log_no_, size_.value_or(INT64_MAX))));
    ExportFields fields;
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, connection.next(fields));
      if (!more) return success();
      const std::int64_t number = export_integer(fields[0].value_or(""));
      std::string id(fields[1].value_or(""));
      if (fields[2] && !fields[2]->empty() && fields[2]->front() == '\1') labelled_.emplace(number, id);
      runs_.emplace(number, std::move(id));
    }
  }

  // Detects a resume with different options, which would otherwise leave gaps before the end of the file.
  Status check_same_export(ExportConnection& connection, const std::string& where, const ExportedSoFar& file) const {
    constexpr std::uint64_t modulus = std::uint64_t{1} << 62;  // divides 2^64
    RETURN_IF_ERROR(connection.start(fmt::format(
        "SELECT count(*), mod(coalesce(sum(e.seq::numeric * e.seq * e.seq), 0), {})::bigint FROM event e WHERE {} AND e.seq <= {}",
        modulus, where, file.last.seq)));
    ExportFields fields;
    ASSIGN_OR_RETURN(bool more, connection.next(fields));
    const std::int64_t events = more ? export_integer(fields[0].value_or("")) : -1;
    const std::int64_t seqs = more ? export_integer(fields[1].value_or("")) : -1;
    while (more) {
      ASSIGN_OR_RETURN(more, connection.next(fields));
    }
    if (file.last.log_id != log_id_) {
      return Error(
          Errc::invalid_argument,
          fmt::format("{} belongs to a different export: of log {}, but this is log {}. The file was not changed",
                      options_.output, file.last.log_id, log_id_));
    }
    if (events == file.events && static_cast<std::uint64_t>(seqs) == file.seq_cubes % modulus) return success();
    return Error(
        Errc::invalid_argument,
        fmt::format(
            "{} belongs to a different export: up to seq {} it has {} events, but these runs and filters select {}{}. The file was not changed. "
            "Repeat the original options or name another file",
            options_.output, file.last.seq, file.events, events, events == file.events ? " different ones" : ""));
  }

  // Reads the current archive, because the rows come from an older database snapshot.
  Result<bool> is_erased(std::int64_t seq) {
    ASSIGN_OR_RETURN(Client* const client, session_.running_client());
    const std::string log = size_ ? fmt::format(",\"log_no\":{}", log_no_) : std::string();
    ASSIGN_OR_RETURN(const Message answer, client->call("event.get", fmt::format("{{\"seq\":{}{}}}", seq, log)));
    return answer.result()["event"]["redacted"].as_bool().value_or(false);
  }

  Status write_events(ExportConnection& connection, const std::string& where, ExportFile& file) {
    RETURN_IF_ERROR(
        connection.start(fmt::format("SELECT {} FROM event e WHERE {} ORDER BY e.seq", export_columns, where)));
    ExportArchive archive(store::log_folder(data_, static_cast<std::int16_t>(log_no_)) + "/archive");
    ExportRows rows(form(), log_id_, std::move(runs_));
    if (file.empty()) file.line() += rows.heading();
    Progress progress("export", 0);
    ExportFields fields;
    for (std::uint64_t count = 0;; ++count) {
      ASSIGN_OR_RETURN(const bool more, connection.next(fields));
      if (!more) return file.close();
      if (const Status filled = fill_archived(fields, archive, [this](std::int64_t seq) { return is_erased(seq); });
          !filled && no_archive_.empty())
        no_archive_ = filled.error().message;
      const ExportRow row = rows.append(fields, file.line());
      if (row.archived) ++archived_;
      // Copies the file before the line is written, since the line implies that the artifact was copied.
      if (!options_.artifacts.empty() && row.type == "artifact.stored" && !row.body.empty())
        RETURN_IF_ERROR(copy_artifact(row.body));
      RETURN_IF_ERROR(file.took(row.seq));
      if (count % 65'536 == 0) progress.at(count, fmt::format("seq {}", row.seq));
    }
  }

  // An export that cannot write its file does not halt a run.
  Error broke_off(Error error, const ExportFile& file) const {
    if (error.code == Errc::system_error) error.code = Errc::unavailable;
    error.message +=
        file.written() ? fmt::format(". Everything up to seq {} is written", *file.written()) : ". Nothing is written";
    const std::int64_t next = file.written() ? *file.written() + 1 : options_.from_seq.value_or(0);
    error.message +=
        options_.output.empty() ? fmt::format("; continue with --from-seq {}", next) : "; continue with --resume";
    return error;
  }

  Status open_folders() {
    ASSIGN_OR_RETURN(root_, open_folder(data_ + "/artifacts"));
    if (::mkdir(options_.artifacts.c_str(), 0700) != 0 && errno != EEXIST)
      return file_error("making", options_.artifacts, errno);
    return success();
  }

  // Copies each file once: an existing file is complete.
  Status copy_artifact(std::string_view body) {
    ASSIGN_OR_RETURN(const json::Document document, json::parse(body));
    const std::string id = document.root()["artifact_id"].string_or("");
    const std::string target = options_.artifacts + "/" + id;
    if (!parse_uuid(id) || ::access(target.c_str(), F_OK) == 0) return success();
    const std::string path = document.root()["path"].string_or("");
    const auto source = open_regular_beneath(root_, path);
    if (!source) {  // erased or lost; muniment-verify tells the two apart
      fmt::print(stderr, "muniment: artifact {} is not exported: {}\n", id,
                 escape_for_terminal(source.error().message));
      return success();
    }
    return copy_file(*source, path, target, document.root()["hash"].string_or(""));
  }

  static Status copy_file(const RegularFile& source, const std::string& path, const std::string& target,
                          const std::string& hash) {
    const std::string partial = target + ".part";
    const Fd out(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!out.open()) return file_error("writing", partial, errno);
    Sha256 hasher;
    std::string piece(1 << 20, '\0');
    for (std::int64_t offset = 0;;) {
      ASSIGN_OR_RETURN(const std::size_t got, read_into(source.fd, offset, piece, path));
      if (got == 0) break;
      hasher.update(std::string_view(piece).substr(0, got));
      RETURN_IF_ERROR(write_all(out.get(), std::string_view(piece).substr(0, got), partial));
      offset += static_cast<std::int64_t>(got);
    }
    if (to_hex(hasher.finish()) != hash)
      return Error(Errc::corrupt, path + " does not match the hash in its event: run muniment-verify");
    if (::rename(partial.c_str(), target.c_str()) != 0) return file_error("writing", target, errno);
    return success();
  }

  Status write_manifests(ExportConnection& connection, const std::string& where) const {
    RETURN_IF_ERROR(connection.start(fmt::format(
        "SELECT m.manifest_id::text, m.manifest FROM manifest m JOIN event e USING (log_no, seq) WHERE m.manifest IS NOT NULL AND {}",
        where)));
    ExportFields fields;
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, connection.next(fields));
      if (!more) return success();
      const std::string path = fmt::format("{}/{}.json", options_.artifacts, fields[0].value_or(""));
      const Fd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!out.open()) return file_error("writing", path, errno);
      RETURN_IF_ERROR(write_all(out.get(), fields[1].value_or(""), path));
    }
  }

  Session& session_;
  const EventExportOptions& options_;
  std::string data_;  // data folder of the daemon that answered
  std::string log_id_;
  std::int64_t log_no_ = 0;
  std::optional<std::int64_t> size_;  // number of events in a closed log
  struct ClosedLog {
    std::string log_id;
    std::int64_t size = 0;
  };
  std::map<std::int64_t, ClosedLog> closed_;  // closed logs that the current one continues, by number
  ExportRows::RunIds runs_, labelled_;
  Fd root_;
  std::uint64_t archived_ = 0;  // events whose archived bodies could not be read
  std::string no_archive_;      // reason for the first of them
};

Status export_events(Session& session, const EventExportOptions& options) {
  if (options.resume && options.output.empty()) return Error(Errc::invalid_argument, "--resume requires --output FILE");
  return EventExport(session, options).run();
}

}  // namespace

void add_export_command(CLI::App& app, Session& session) {
  add_command<EventExportOptions>(session, app, "export", "Export events as JSONL or CSV with all hashed fields",
                                  declare_event_export, export_events);
}

}  // namespace muniment::cli
