// Implements the command ingest, which turns files and folders into documents of a corpus. Unchanged documents are not
// sent, so an interrupted call can be repeated.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/ingest/folder_walk.hpp"
#include "cli/ingest/ingest.hpp"
#include "client/folder_events.hpp"

namespace muniment::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds watch_retry_min{250};     // first pause while the daemon does not answer
constexpr milliseconds watch_pause_max{10'000};  // longest pause then, and after a pass

struct IngestOptions {
  std::vector<std::string> paths;
  std::string corpus;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::vector<std::string> tags;
  std::string source;
  std::string trust = "untrusted";
  std::string language;
  bool hidden = false;
  bool no_ignore = false;
  bool dry_run = false;
  bool no_wait = false;
  bool prune = false;
  bool watch = false;
};

void declare_ingest(CLI::App& command, IngestOptions& options) {
  command.add_option(
      "PATH", options.paths,
      "Files and folders; a document's id is its path in the folder (default: the root in a capsule's config)");
  command.add_option("--corpus", options.corpus, "Target corpus; created by its first document")->required();
  command.add_option("--include", options.include, "Only files matching this .gitignore pattern: '*.md', 'docs/'")
      ->allow_extra_args(false);
  command.add_option("--exclude", options.exclude, "Exclude files matching this pattern")->allow_extra_args(false);
  command.add_option("--tag", options.tags, "Tag for each document")->allow_extra_args(false);
  command.add_option("--source", options.source, "Source of the documents, for revocation (default: file://FOLDER)");
  command.add_option("--trust", options.trust, "Trust level: trusted, untrusted or quarantined")
      ->check(CLI::IsMember({"trusted", "untrusted", "quarantined"}))
      ->capture_default_str();
  command.add_option("--language", options.language,
                     "Language of the documents: en, de, … or none (default: detected)");
  command.add_flag("--hidden", options.hidden, "Include names that begin with a dot (never .git)");
  command.add_flag("--no-ignore", options.no_ignore, "Ignore .gitignore files");
  CLI::Option* const dry_run =
      command.add_flag("--dry-run", options.dry_run, "Show what would be done and change nothing");
  command.add_flag("--no-wait", options.no_wait, "Do not wait until the documents are indexed");
  command.add_flag("--prune", options.prune, "Retract documents of these folders whose files are missing");
  command.add_flag("--watch", options.watch, "Keep running, and ingest what changes until SIGINT or SIGTERM")
      ->excludes(dry_run);
}

// A path from the command line: a folder, or one file in a folder.
struct Root {
  std::string folder;
  std::string file;  // empty: the whole folder
  std::string source;
  Fd fd;
};

std::string file_url(const std::string& path) {
  std::string url = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte > 0x20 && byte != 0x7f && c != '%' && c != '?' && c != '#' && byte < 0x80;
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return url;
}

Result<Root> root_of(const std::string& path, const std::string& source) {
  namespace fs = std::filesystem;
  std::error_code failed;
  Root root;
  if (!fs::exists(path, failed))
    return failed ? file_error("opening", path, failed.value())
                  : Error(Errc::not_found, path + ": no such file or folder");
  const bool folder = fs::is_directory(path, failed);
  const fs::path absolute = (fs::absolute(path) / "").parent_path().lexically_normal();
  root.folder = folder ? fs::canonical(path, failed).string() : fs::canonical(absolute.parent_path(), failed).string();
  if (failed) return Error(Errc::invalid_argument, path + ": " + failed.message());
  if (!folder) root.file = absolute.filename().string();
  root.source = source.empty() ? file_url(root.folder) : source;
  ASSIGN_OR_RETURN(root.fd, open_folder(root.folder));
  return root;
}

// State of --watch between its passes, each of which walks all folders.
struct Watch {
  FolderEvents events;
  bool began = false;                  // the first pass was reported
  std::uint64_t failed = 0, gone = 0;  // files that the last report counted
};

class IngestCommand {
 public:
  // `watch`: null without --watch.
  IngestCommand(Session& session, const IngestOptions& options, Client& client, Watch* watch)
      : session_(session),
        options_(options),
        client_(client),
        watch_(watch),
        target_(target_of(options)),
        sender_(client, target_, report_) {}

  Status run() {
    const Monotonic began = Clock().monotonic();
    for (const std::string& path : options_.paths) {
      ASSIGN_OR_RETURN(Root root, root_of(path, options_.source));
      roots_.push_back(std::move(root));
    }
    set_walk_options();
    RETURN_IF_ERROR(known_.load(client_, target_, [&](const json::Value& row) {
      Missing document{row["document"].string_or(""), row["revision"].string_or(""), row["source"].string_or("")};
      if (is_gone(document)) missing_.push_back(std::move(document));
    }));
    {
      Progress progress("ingest", ::isatty(STDERR_FILENO) != 0 ? count_files() : 0);
      progress_ = &progress;
      const Status taken = take_roots();
      if (stopping()) return sender_.finish(false);
      RETURN_IF_ERROR(taken);
      progress.at(done_, "waiting for the index");
      if (!options_.dry_run) RETURN_IF_ERROR(sender_.finish(!options_.no_wait));
      RETURN_IF_ERROR(retract_gone());
    }
    const std::chrono::duration<double> took = Clock().monotonic() - began;
    if (report_.failed.count > 0) session_.exit_code = exit_refused;
    if (watch_ != nullptr && !is_news(*watch_)) return success();
    if (session_.options.json) {
      print_json();
    } else {
      print_text(took.count());
      RETURN_IF_ERROR(print_lag());
    }
    return success();
  }

 private:
  bool stopping() const { return watch_ != nullptr && watch_->events.stopping(); }

  // Returns whether a pass of --watch has something to report that the one before had not.
  bool is_news(Watch& watch) const {
    const bool news = !watch.began || report_.added + report_.changed + report_.retracted > 0 ||
                      report_.failed.count != watch.failed || report_.gone.count != watch.gone;
    watch.began = true;
    watch.failed = report_.failed.count;
    watch.gone = report_.gone.count;
    return news;
  }

  static IngestTarget target_of(const IngestOptions& options) {
    IngestTarget target{options.corpus, options.tags, options.trust, options.language};
    std::ranges::sort(target.tags);
    target.tags.erase(std::unique(target.tags.begin(), target.tags.end()), target.tags.end());
    return target;
  }

  void set_walk_options() {
    walk_.hidden = options_.hidden;
    walk_.ignore_files = !options_.no_ignore;
    for (const std::string& pattern : options_.include) walk_.include.add(pattern);
    for (const std::string& pattern : options_.exclude) walk_.exclude.add(pattern);
  }

  // Used only for the progress bar; the walk itself reports unreadable folders.
  std::uint64_t count_files() {
    std::uint64_t files = 0;
    const WalkVisitor counting{[&](const FoundFile&) { return ++files, success(); },
                               [](std::string_view, std::string_view) {}, [] {}};
    for (const Root& root : roots_) {
      if (!root.file.empty()) {
        ++files;
      } else if (!walk_folder(root.folder, walk_, counting)) {
        return files;
      }
    }
    return files;
  }

  Status take_roots() {
    for (const Root& root : roots_) RETURN_IF_ERROR(take_root(root));
    return success();
  }

  Status take_root(const Root& root) {
    const auto entered = [&](int folder, const std::string& path) {
      return watch_ == nullptr ? success() : watch_->events.add(folder, path);
    };
    if (!root.file.empty()) {
      RETURN_IF_ERROR(entered(root.fd.get(), root.folder));
      return take({root.fd.get(), root.file, root.file}, root.source, true);
    }
    const WalkVisitor visitor{[&](const FoundFile& file) { return take(file, root.source, false); },
                              [&](std::string_view path, std::string_view why) { report_.skipped.add(path, why); },
                              [&] { ++report_.ignored; }, entered};
    return walk_folder(root.folder, walk_, visitor);
  }

  // Returns why the path cannot be a document id; empty if it can.
  std::string why_no_id(const std::string& id) {
    if (first_invalid_utf8(id) != std::string_view::npos) return "the name is not UTF-8";
    if (std::ranges::any_of(id, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
      return "the name contains control characters";
    if (id.size() > limits::document_id_bytes_max)
      return fmt::format("the path is longer than {} bytes", limits::document_id_bytes_max);
    if (roots_.size() > 1 && !seen_.insert(to_hex(sha256(id)).substr(0, 32)).second)
      return "an earlier file in this call has the same id";
    return {};
  }

  Status take(const FoundFile& found, const std::string& source, bool named) {
    if (stopping()) return Error(Errc::unavailable, "stopped by a signal");
    progress_->at(done_++, found.path);
    if (const std::string why = why_no_id(found.path); !why.empty()) {
      report_.failed.add(found.path, why);
      return success();
    }
    FileCandidate file = read_candidate(found.folder, found.name, named);
    if (file.fate != Fate::document) {
      (file.fate == Fate::failed ? report_.failed : report_.skipped).add(found.path, file.why);
      return success();
    }
    const KnownDocuments::Standing standing = known_.of(found.path, file.hash, source);
    if (standing == KnownDocuments::Standing::same) {
      ++report_.unchanged;
      return success();
    }
    const bool is_new = standing == KnownDocuments::Standing::absent;
    if (!options_.dry_run) return sender_.add(found.path, source, file, is_new);
    ++(is_new ? report_.added : report_.changed);
    report_.bytes += static_cast<std::uint64_t>(file.size());
    if (!session_.options.json)
      session_.out().line(fmt::format("{}  {}", is_new ? "new    " : "changed", session_.out().one_line(found.path)));
    return success();
  }

  struct Missing {
    std::string id, revision, source;
  };

  // Returns whether the document came from one of the folders and its file is now missing from all of them.
  bool is_gone(const Missing& document) const {
    bool from_here = false;
    for (const Root& root : roots_) {
      if (!root.file.empty() || root.source != document.source) continue;
      const auto there = open_beneath(root.fd, document.id, O_RDONLY);
      if (there || (there.error().code != Errc::not_found && there.error().code != Errc::corrupt)) return false;
      from_here = true;
    }
    return from_here;
  }

  Status retract_gone() {
    for (const Missing& document : missing_) {
      if (!is_gone(document)) continue;  // its file was made during the walk
      report_.gone.add(document.id, "missing on disk");
      if (!options_.prune || options_.dry_run) continue;
      json::Writer params;
      params.begin_object()
          .member("corpus", target_.corpus)
          .member("document", document.id)
          .member("base", document.revision);
      params.member("reason", "the file is missing").end_object();
      const auto retracted = client_.call("document.retract", params.text());
      if (!retracted && is_transient(retracted.error().code)) return retracted.error();
      if (!retracted) {
        report_.failed.add(document.id, retracted.error().message);
        continue;
      }
      ++report_.retracted;
      report_.seq = std::max(report_.seq, retracted->result()["seq"].as_int().value_or(-1));
    }
    return success();
  }

  static void write_notes(json::Writer& out, std::string_view name, const Notes& notes) {
    out.key(name).begin_object().member("count", static_cast<std::int64_t>(notes.count)).key("files").begin_array();
    for (const auto& [path, why] : notes.first) out.begin_object().member("path", path).member("why", why).end_object();
    out.end_array().end_object();
  }

  void print_json() {
    json::Writer out;
    out.begin_object().member("corpus", target_.corpus).member("added", static_cast<std::int64_t>(report_.added));
    out.member("changed", static_cast<std::int64_t>(report_.changed))
        .member("unchanged", static_cast<std::int64_t>(report_.unchanged));
    out.member("ignored", static_cast<std::int64_t>(report_.ignored))
        .member("bytes", static_cast<std::int64_t>(report_.bytes));
    out.key("ingested").begin_array();
    for (const auto& [id, passages] : report_.sent)
      out.begin_object().member("path", id).member("chunks", passages).end_object();
    out.end_array();
    write_notes(out, "skipped", report_.skipped);
    write_notes(out, "failed", report_.failed);
    write_notes(out, "gone", report_.gone);
    out.member("retracted", static_cast<std::int64_t>(report_.retracted)).member("seq", report_.seq);
    if (!report_.run_id.empty()) out.member("run_id", report_.run_id);
    if (options_.dry_run) out.member("dry_run", true);
    session_.out().json_line(std::move(out.end_object()).text());
  }

  // Prints one line per reason: number, reason and first names.
  void print_notes(const Notes& notes, std::string_view suffix) {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const auto& [path, why] : notes.first) by_reason[why].push_back(path);
    const Output& out = session_.out();
    for (const auto& [why, paths] : by_reason) {
      constexpr std::size_t named_max = 3;
      std::string names =
          joined(std::vector<std::string>(
                     paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), named_max))),
                 ", ");
      if (paths.size() > named_max) names += ", …";
      out.line(fmt::format("  {:>6}  {}{}  {}", grouped(paths.size()), out.one_line(why), suffix,
                           out.tone(Tone::dim, out.one_line(names))));
    }
    if (notes.count > notes.first.size())
      out.line(fmt::format("  {:>6}  more", grouped(notes.count - notes.first.size())));
  }

  // A slow lane of the search may lack the documents that the other indexes have.
  Status print_lag() {
    if (options_.no_wait || options_.dry_run || report_.added + report_.changed == 0) return success();
    ASSIGN_OR_RETURN(const Message status, client_.call("server.status", "{}"));
    for (const json::Value note : status.result()["notes"]) {
      const std::string text = note.string_or("");
      if (text.starts_with("search: ") && text.find(": behind (") != std::string::npos)
        session_.out().line(
            fmt::format("  {}. Answers come without this lane until then.", session_.out().one_line(text.substr(8))));
    }
    return success();
  }

  void print_text(double seconds) {
    const Output& out = session_.out();
    out.line(fmt::format("{}{}  {} new  {} changed  {} unchanged  ({} in {:.1f} s)",
                         out.tone(Tone::bold, target_.corpus), options_.dry_run ? " (dry run)" : "",
                         grouped(report_.added), grouped(report_.changed), grouped(report_.unchanged),
                         human_size(report_.bytes), seconds));
    print_notes(report_.skipped, "");
    if (report_.ignored > 0) out.line(fmt::format("  {:>6}  ignored by .gitignore rules", grouped(report_.ignored)));
    const bool pruned = options_.prune && !options_.dry_run;
    print_notes(report_.gone, pruned ? ": retracted" : "; --prune retracts them");
    for (const auto& [path, why] : report_.failed.first) {
      fmt::print(stderr, "muniment: {}: {}\n", escape_for_terminal(path), escape_for_terminal(why));
    }
    if (report_.failed.count > 0)
      out.line(fmt::format("  {:>6}  {}", grouped(report_.failed.count), out.tone(Tone::red, "could not be ingested")));
  }

  Session& session_;
  const IngestOptions& options_;
  Client& client_;
  Watch* const watch_;
  const IngestTarget target_;
  IngestReport report_;
  IngestSender sender_;
  KnownDocuments known_;
  std::vector<Missing> missing_;  // documents without a file when the documents were listed
  WalkOptions walk_;
  std::vector<Root> roots_;
  std::set<std::string> seen_;  // ids of the visited files, which several paths may share
  Progress* progress_ = nullptr;
  std::uint64_t done_ = 0;
};

// The first pass may start a daemon. Later ones wait for one, since an operator may have stopped it.
Status ingest_pass(Session& session, const IngestOptions& options, Watch& watch) {
  session.exit_code = exit_done;
  ASSIGN_OR_RETURN(Client* const client, watch.began ? session.running_client() : session.client());
  return IngestCommand(session, options, *client, &watch).run();
}

// A pass follows each burst of changes, after a pause as long as the last pass. It reads all files, and the
// events of the folders say only that one is due: an overflow of their queue is one more.
Status ingest_and_watch(Session& session, const IngestOptions& options) {
  ASSIGN_OR_RETURN(FolderEvents events, FolderEvents::open());
  Watch watch{std::move(events)};
  milliseconds retry = watch_retry_min;
  for (;;) {
    const Monotonic began = Clock().monotonic();
    Status passed = ingest_pass(session, options, watch);
    const auto took = std::chrono::ceil<milliseconds>(Clock().monotonic() - began);
    session.disconnect();
    std::fflush(stdout);
    if (watch.events.stopping() || session.out().failed()) return success();
    if (passed) {
      retry = watch_retry_min;
      if (!watch.events.pause(std::min(took, watch_pause_max)) || !watch.events.wait_for_change()) return success();
      continue;
    }
    if (!watch.began || !is_transient(passed.error().code)) return passed;
    if (retry == watch_retry_min)
      fmt::print(stderr, "muniment: {}; retrying\n", escape_for_terminal(passed.error().message));
    if (!watch.events.pause(retry)) return success();
    retry = std::min(retry * 2, watch_pause_max);
  }
}

// Returns the folder of the collection in the config of the capsule.
Result<std::string> configured_root(Session& session, const std::string& corpus) {
  const Error missing(Errc::invalid_argument, "PATH is required: the files and folders to ingest");
  if (session.options.capsule.empty()) return missing;
  auto answer = session.call("config.get", "{}");
  if (!answer && answer.error().code == Errc::not_found) return missing;
  if (!answer) return std::move(answer).error();
  const std::string root = answer->result()["config"]["collections"][corpus]["root"].string_or("");
  if (root.empty()) return missing;
  if (answer->result()["trusted"].as_bool().value_or(false)) return root;
  return Error(
      Errc::denied,
      "the config of the capsule names a folder, but you do not trust it. Name the folder, or: muniment capsule trust FILE");
}

Status ingest(Session& session, const IngestOptions& given) {
  IngestOptions options = given;
  if (options.paths.empty()) {
    ASSIGN_OR_RETURN(std::string root, configured_root(session, options.corpus));
    options.paths.push_back(std::move(root));
  }
  if (options.watch) return ingest_and_watch(session, options);
  ASSIGN_OR_RETURN(Client* const client, session.client());
  return IngestCommand(session, options, *client, nullptr).run();
}

}  // namespace

void add_ingest_command(CLI::App& app, Session& session) {
  add_command<IngestOptions>(session, app, "ingest", "Ingest files and folders as documents of a corpus",
                             declare_ingest, ingest);
}

}  // namespace muniment::cli
