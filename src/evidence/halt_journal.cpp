// Writes the files of the halt journal, and appends their halts when Postgres accepts them.
#include "evidence/halt_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "events/catalogue.hpp"

namespace muniment::evidence {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds journal_retry_pause{500};
constexpr std::chrono::seconds journal_commit_wait{30};

std::string journal_text(const PendingHalt& pending) {
  json::Writer out;
  out.begin_object()
      .member("run_id", pending.run_id)
      .member("code", pending.halt.code)
      .member("reason", pending.halt.reason)
      .member("pointer", pending.halt.pointer)
      .member("at", format_time(pending.halt.at))
      .key("events")
      .begin_array();
  for (const PendingHalt::Event& event : pending.events) {
    out.begin_object()
        .member("run_id", event.run_id)
        .member("type", event.type)
        .member("event_id", event.event_id.text())
        .member("if_open", event.if_open)
        .raw_member("body", event.body)
        .end_object();
  }
  out.end_array().end_object();
  return std::move(out).text();
}

Result<PendingHalt> read_journal(const std::string& text) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(text));
  const json::Value root = document.root();
  PendingHalt pending;
  pending.run_id = root["run_id"].string_or("");
  pending.halt = {root["code"].string_or(""), root["reason"].string_or(""), root["pointer"].string_or(""),
                  parse_time(root["at"].string_or("")).value_or(Time{}), -1};
  for (const json::Value item : root["events"]) {
    const auto id = parse_uuid(item["event_id"].string_or(""));
    if (!id || !item["body"]) return Error(Errc::corrupt, "an event without id or body");
    pending.events.push_back({item["run_id"].string_or(""), item["type"].string_or(""),
                              std::string(item["body"].source()), *id, item["if_open"].as_bool().value_or(false)});
  }
  if (pending.run_id.empty() || pending.events.empty()) return Error(Errc::corrupt, "no run or no events");
  return pending;
}

Error journal_error(std::string_view doing, const std::string& path) {
  return Error(Errc::system_error, std::string(doing) + " " + path + ": " + std::strerror(errno));
}

Status sync_path(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return journal_error("opening", path);
  const bool synced = ::fsync(fd) == 0;
  const int failed = errno;
  ::close(fd);
  errno = failed;
  if (!synced) return journal_error("syncing", path);
  return success();
}

// Atomic: the file is renamed to its name after it is synced.
Status write_journal(const std::string& folder, const std::string& path, const std::string& text) {
  const std::string draft = path + ".draft";
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return journal_error("making", draft);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  const int failed = errno;
  ::close(fd);
  errno = failed;
  if (!written) return journal_error("writing", draft);
  if (::rename(draft.c_str(), path.c_str()) != 0) return journal_error("naming", path);
  return sync_path(folder, O_RDONLY | O_DIRECTORY);
}

}  // namespace

store::Addressed daemon_event(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body,
                              const Uuid& event_id, bool event_id_is_ours) {
  store::Addressed item;
  item.run = run;
  item.event.type = type;
  if (const events::TypeInfo* info = events::find_type(type)) item.event.schema_version = info->schema_version;
  item.event.body = std::move(body);
  item.event.event_id = event_id;
  item.event.event_id_is_ours = event_id_is_ours;
  const bool imported = run->view().origin == events::Origin::imported;
  item.event.origin = imported ? events::Origin::imported : events::Origin::observed;
  events::seal_own(item.event);
  return item;
}

Result<std::unique_ptr<HaltJournal>> HaltJournal::open(Options options, store::Appender& appender,
                                                       store::RunDirectory& runs) {
  if (::mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST) return journal_error("making", options.folder);
  RETURN_IF_ERROR(sync_path(options.folder + "/..", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<HaltJournal> journal(new HaltJournal(std::move(options), appender, runs));
  RETURN_IF_ERROR(journal->load());
  journal->worker_.start("halt journal", [raw = journal.get()] { raw->bring_back(); });
  return journal;
}

HaltJournal::HaltJournal(Options options, store::Appender& appender, store::RunDirectory& runs)
    : options_(std::move(options)), appender_(appender), runs_(runs), reader_(options_.place) {}

Status HaltJournal::load() {
  for (const auto& entry : fs::directory_iterator(options_.folder)) {
    const std::string path = entry.path();
    if (!path.ends_with(".json")) {
      fs::remove(entry.path());  // an unfinished file: its halt was never acknowledged
      continue;
    }
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto pending = read_journal(text);
    if (!pending) {
      return Error(Errc::corrupt, "the halt journal " + path + " cannot be read: " + pending.error().message +
                                      ". It records the halt of a run: inspect that run, then move the file away.");
    }
    if (const auto run = run_of(pending->run_id); run && *run) (*run)->fail_stop(pending->halt);
    if (append(*pending)) {
      fs::remove(entry.path());
    } else {
      waiting_.push_back(std::move(*pending));
    }
  }
  return success();
}

Status HaltJournal::record(PendingHalt pending) {
  if (const auto run = runs_.find(pending.run_id)) run->fail_stop(pending.halt);
  FAILPOINT("halt.before_journal");
  RETURN_IF_ERROR(write_journal(options_.folder, file_of(pending), journal_text(pending)));
  FAILPOINT("halt.after_journal");
  log_error("a run was halted while Postgres was unavailable",
            {{"run_id", pending.run_id}, {"reason", pending.halt.reason}});
  {
    const auto lock = worker_.lock();
    waiting_.push_back(std::move(pending));
  }
  worker_.notify();
  return success();
}

std::size_t HaltJournal::waiting() const {
  const auto lock = worker_.lock();
  return waiting_.size();
}

bool HaltJournal::holds(std::string_view run_id) const {
  const auto lock = worker_.lock();
  return std::ranges::any_of(waiting_, [&](const PendingHalt& pending) { return pending.run_id == run_id; });
}

std::string HaltJournal::file_of(const PendingHalt& pending) const {
  return options_.folder + "/" + pending.events.front().event_id.text() + ".json";
}

Result<std::shared_ptr<store::Run>> HaltJournal::run_of(const std::string& run_id) {
  return runs_.find_or_load(run_id, [&] { return reader_.load_run(run_id); });
}

Status HaltJournal::append_once(const PendingHalt& pending, bool ids_checked) {
  store::AppendRequest request;
  request.actor = events::daemon_actor;
  request.ids_checked = ids_checked;
  for (const PendingHalt::Event& event : pending.events) {
    ASSIGN_OR_RETURN(const auto run, run_of(event.run_id));
    if (!run) return Error(Errc::not_found, "no run " + event.run_id);
    request.events.push_back(daemon_event(run, event.type, event.body, event.event_id, false));
    request.events.back().if_open = event.if_open;
  }
  auto receipts = store::append_and_wait(appender_, std::move(request), journal_commit_wait);
  return receipts ? success() : Status(std::move(receipts).error());
}

Status HaltJournal::append(const PendingHalt& pending) {
  Status appended = append_once(pending, false);
  if (!appended && appended.error().conflict == AppendConflict::maybe_duplicate) {
    ASSIGN_OR_RETURN(const auto run, run_of(pending.run_id));
    ASSIGN_OR_RETURN(const auto there, reader_.event_by_id(run->view().run_no, pending.events.front().event_id));
    if (there) return success();
    appended = append_once(pending, true);
  }
  if (appended) return success();
  // A concurrent request has halted the run, or the run was never acknowledged. The halt needs no event.
  const Errc code = appended.error().code;
  const bool moot = code == Errc::run_halted || code == Errc::not_found;
  if (moot) return success();
  return appended;
}

void HaltJournal::bring_back() {
  auto lock = worker_.lock();
  // On a stop the files stay, and the next start appends their halts.
  while (worker_.wait(lock, [this] { return !waiting_.empty(); })) {
    const PendingHalt next = waiting_.front();
    lock.unlock();
    const Status appended = append(next);
    if (appended) {
      FAILPOINT("halt.before_unlink");
      ::unlink(file_of(next).c_str());
      log_info("a halt was appended from the journal", {{"run_id", next.run_id}});
    }
    lock.lock();
    if (appended) {
      waiting_.erase(waiting_.begin());
    } else {
      worker_.pause(lock, journal_retry_pause);
    }
  }
}

}  // namespace muniment::evidence
