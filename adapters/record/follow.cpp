#include "adapters/record/follow.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "adapters/import/claude_code/claude_code_lines.hpp"
#include "adapters/import/guess.hpp"
#include "adapters/import/record.hpp"
#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "client/connect/client.hpp"

namespace muniment::cli {
namespace {

using FollowClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_again{100};
constexpr std::chrono::milliseconds away_pause{500};
constexpr std::size_t log_read_bytes = 1 << 20;
constexpr std::size_t session_line_bytes_max = 64U << 20;  // a longer line is noted and skipped
constexpr std::size_t remembered_bytes = 4096;             // bytes remembered to detect a rewritten file

// Reads complete lines of a growing file.
class SessionFile {
 public:
  explicit SessionFile(std::string path) : path_(std::move(path)) {}

  // Returns the next complete line; nullopt if there is none yet. `too_long()` reports a skipped line.
  Result<std::optional<std::string>> next() {
    too_long_ = false;
    for (;;) {
      if (const std::size_t end = ahead_.find('\n', searched_); end != std::string::npos) return take(end);
      searched_ = ahead_.size();
      if (ahead_.size() > session_line_bytes_max) {
        passing_over_ = true;
        forget(ahead_.size());
      }
      ASSIGN_OR_RETURN(const std::string more, read_on());
      if (more.empty()) return std::optional<std::string>();
      ahead_ += more;
    }
  }

  bool too_long() const { return too_long_; }

  // Returns whether the file is unchanged so far, judged by its inode, its length and the last bytes read.
  Result<bool> same() {
    struct stat about {};
    if (::stat(path_.c_str(), &about) != 0) {
      if (errno == ENOENT) return true;  // the file is being replaced; check again later
      return Error(Errc::denied, fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    }
    if (!file_.open()) return true;
    if (about.st_ino != inode_ || about.st_dev != device_ || about.st_size < offset_) return false;
    std::string now(remembered_.size(), '\0');
    const auto from = offset_ - static_cast<std::int64_t>(remembered_.size());
    ASSIGN_OR_RETURN(const std::size_t got, read_into(file_, from, now, path_));
    return got == remembered_.size() && now == remembered_;
  }

  void start_again() { *this = SessionFile(path_); }

 private:
  std::optional<std::string> take(std::size_t end) {
    std::optional<std::string> line = ahead_.substr(0, end);
    forget(end + 1);
    too_long_ = std::exchange(passing_over_, false);
    if (too_long_) line->clear();
    return line;
  }

  void forget(std::size_t count) {
    ahead_.erase(0, count);
    searched_ = 0;
  }

  Result<std::string> read_on() {
    if (!file_.open()) {
      auto file = open_named(path_);
      if (!file && file.error().code == Errc::not_found) return std::string();
      if (!file) return std::move(file).error();
      struct stat about {};
      if (::fstat(file->fd.get(), &about) != 0) return file_error("reading", path_, errno);
      inode_ = about.st_ino;
      device_ = about.st_dev;
      file_ = std::move(file->fd);
    }
    std::string piece(log_read_bytes, '\0');
    ASSIGN_OR_RETURN(const std::size_t got, read_into(file_, offset_, piece, path_));
    piece.resize(got);
    offset_ += static_cast<std::int64_t>(got);
    remembered_ += piece;
    if (remembered_.size() > remembered_bytes) remembered_.erase(0, remembered_.size() - remembered_bytes);
    return piece;
  }

  std::string path_;
  Fd file_;
  ino_t inode_ = 0;
  dev_t device_ = 0;
  std::int64_t offset_ = 0;   // offset in the file up to which it was read
  std::string ahead_;         // the incomplete last line
  std::size_t searched_ = 0;  // ahead_ has no line feed before this offset
  std::string remembered_;    // last bytes before offset_
  bool passing_over_ = false;
  bool too_long_ = false;
};

// Returns a number derived from the id of a line, which the translation uses as line number for event ids.
std::uint64_t line_identity(const std::string& line) {
  const auto document = json::parse(std::string_view(line));
  const std::string uuid = document ? document->root()["uuid"].string_or("") : std::string();
  const Hash hash = sha256(uuid.empty() ? line : uuid);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8 | hash[i];
  return number >> 1;
}

// Returns whether the line may belong to a session: an object with a type that does not look like another format.
bool may_be_of_session(const std::string& line) {
  const auto document = json::parse(std::string_view(line));
  if (!document || !document->root().is(json::Kind::object)) return false;
  const std::string_view format = guessed_format(document->root());
  return format.empty() ? document->root()["type"].is(json::Kind::string) : format == claude_code_format;
}

// Records events: one run for the session and one for each subagent.
class SessionRuns {
 public:
  SessionRuns(const FollowOptions& options, const std::atomic<bool>& stop)
      : options_(options), stop_(stop), stem_(std::filesystem::path(options.file).stem().string()) {
    run_id_ = "claude-code-file-" + stem_;
    if (!check_run_id(run_id_)) run_id_ = "claude-code-file-" + make_uuid_v8(stem_).text();
  }

  const std::string& run_id() const { return run_id_; }
  bool started() const { return started_; }

  // Records the actions in order; waits while the daemon is unavailable.
  Status carry_out(std::vector<RunAction>& actions, const SessionFacts& facts) {
    for (RunAction& action : actions) {
      switch (action.kind) {
        case RunAction::Kind::event: batch(std::move(action)); break;
        case RunAction::Kind::start_child: RETURN_IF_ERROR(start_child(action, facts)); break;
        case RunAction::Kind::end_child: RETURN_IF_ERROR(end_child(action, facts)); break;
      }
    }
    actions.clear();
    return flush(facts);
  }

  // Resets the state before the file is read again.
  void start_again() { ended_.clear(); }

 private:
  std::string run_of(const std::string& child) const {
    if (child.empty()) return run_id_;
    std::string id = run_id_ + "." + child;
    return check_run_id(id) ? id : run_id_.substr(0, 60) + "." + make_uuid_v8(child).text();
  }

  void batch(RunAction action) {
    if (ended_.contains(action.child)) return;
    action.event.kind += "/" + to_hex(sha256(action.event.step_id + "\n" + action.event.body));
    batches_[action.child].push_back(std::move(action.event));
  }

  Status flush(const SessionFacts& facts) {
    for (auto& [child, events] : batches_) {
      if (events.empty()) continue;
      if (child.empty()) RETURN_IF_ERROR(start_session(facts));
      RETURN_IF_ERROR(send(child, events, facts));
      events.clear();
    }
    return success();
  }

  // The daemon accepts a new or a known batch but refuses a partly known one, which is therefore split in halves.
  Status send(const std::string& child, const std::vector<ImportedEvent>& events, const SessionFacts& facts) {
    const Status sent = append(child, events);
    if (sent || sent.error().code != Errc::conflict) return sent;
    if (events.size() > 1) {
      const auto middle = events.begin() + static_cast<std::ptrdiff_t>(events.size() / 2);
      RETURN_IF_ERROR(send(child, {events.begin(), middle}, facts));
      return send(child, {middle, events.end()}, facts);
    }
    // The run was ended meanwhile. The run of a subagent remains ended, because it has all of its events.
    if (!child.empty()) {
      ended_[child] = true;
      return success();
    }
    started_ = false;
    RETURN_IF_ERROR(start_session(facts));
    return append(child, events);
  }

  Status append(const std::string& child, const std::vector<ImportedEvent>& events) {
    return insist([&](Client& client) -> Status {
      ImportRecorder recorder(client, run_of(child), "claude-code file/" + stem_);
      RETURN_IF_ERROR(recorder.append(0, events));
      return success();
    });
  }

  Status start_session(const SessionFacts& facts) {
    if (std::exchange(started_, true)) return success();
    json::Writer params;
    params.begin_object().member("run_id", run_id_).key("agent").begin_object().member("name", claude_code_format);
    if (!facts.version.empty()) params.member("version", preview(facts.version, 250));
    params.end_object().member("external_id", preview(facts.session_id.empty() ? stem_ : facts.session_id, 1000));
    if (!facts.goal.empty()) params.member("goal", preview(facts.goal, 1000));
    if (!facts.cwd.empty()) params.member("cwd", preview(facts.cwd, 4000));
    params.member("client", "muniment record claude-code --follow").member("reopen", true).end_object();
    return insist([&](Client& client) -> Status {
      RETURN_IF_ERROR(client.call("run.start", params.text()));
      return success();
    });
  }

  // A subagent run that has ended already has all of its events.
  Status start_child(const RunAction& action, const SessionFacts& facts) {
    RETURN_IF_ERROR(start_session(facts));
    RETURN_IF_ERROR(flush(facts));
    json::Writer params;
    params.begin_object().member("run_id", run_of(action.child)).key("agent").begin_object();
    params.member("name", action.agent.empty() ? "subagent" : preview(action.agent, 250)).end_object();
    if (!action.goal.empty()) params.member("goal", preview(action.goal, 1000));
    params.key("parent").begin_object().member("run_id", run_id_).member("kind", "subagent");
    if (!action.call_id.empty()) params.member("call_id", action.call_id);
    params.end_object().end_object();
    return insist([&](Client& client) -> Status {
      const auto started = client.call("run.start", params.text());
      if (!started && started.error().code == Errc::conflict) ended_[action.child] = true;
      return started || started.error().code == Errc::conflict ? success() : Status(started.error());
    });
  }

  Status end_child(const RunAction& action, const SessionFacts& facts) {
    RETURN_IF_ERROR(flush(facts));
    if (ended_.contains(action.child)) return success();
    ended_[action.child] = true;
    json::Writer params;
    params.begin_object().member("run_id", run_of(action.child)).member("outcome", action.outcome).end_object();
    return insist([&](Client& client) -> Status {
      const auto ended = client.call("run.end", params.text());
      return ended || ended.error().code == Errc::conflict ? success() : Status(ended.error());
    });
  }

  // Repeats the request until the daemon answers; all requests have ids.
  Status insist(const std::function<Status(Client&)>& send) {
    for (;;) {
      Status status = success();
      if (!client_) {
        auto connected = Client::connect(options_.socket);
        if (connected)
          client_.emplace(std::move(*connected));
        else
          status = Status(connected.error());
      }
      if (client_) status = send(*client_);
      const bool wait = !status && (is_transient(status.error().code) || status.error().code == Errc::over_budget);
      if (!wait) return status;
      client_.reset();
      if (stop_) return status;
      std::this_thread::sleep_for(away_pause);
    }
  }

  const FollowOptions& options_;
  const std::atomic<bool>& stop_;
  const std::string stem_;
  std::string run_id_;
  std::optional<Client> client_;
  std::map<std::string, std::vector<ImportedEvent>> batches_;  // key "": the session
  std::map<std::string, bool> ended_;                          // subagents whose runs have ended
  bool started_ = false;
};

class SessionFollower {
 public:
  SessionFollower(const FollowOptions& options, const std::atomic<bool>& stop)
      : options_(options), stop_(stop), file_(options.file), runs_(options, stop) {
    outcome_.run_id = runs_.run_id();
  }

  Result<Followed> follow() {
    FollowClock::time_point last = FollowClock::now();
    bool settled = true;
    for (;;) {
      const bool last_look = stop_;  // reads everything written before the stop
      ASSIGN_OR_RETURN(const bool same, file_.same());
      if (!same) start_again();
      ASSIGN_OR_RETURN(const bool came, read_all());
      if (came) {
        last = FollowClock::now();
        settled = false;
      } else if (last_look || (!settled && FollowClock::now() - last >= options_.settle_after)) {
        lines_.settle(actions_);
        RETURN_IF_ERROR(runs_.carry_out(actions_, lines_.facts()));
        settled = true;
      }
      outcome_.started = outcome_.started || runs_.started();
      if (last_look && !came) return outcome_;
      if (!came) std::this_thread::sleep_for(look_again);
    }
  }

 private:
  void start_again() {
    ++outcome_.rereads;
    file_.start_again();
    lines_ = ClaudeCodeLines();
    runs_.start_again();
  }

  // Records all available lines in batches that fit a request. Returns whether there were any.
  Result<bool> read_all() {
    constexpr std::size_t actions_max = 256;
    bool came = false;
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, file_.next());
      if (line) {
        came = true;
        ++outcome_.lines;
        if (file_.too_long())
          lines_.skip(outcome_.lines, fmt::format("it is longer than {}", human_size(session_line_bytes_max)),
                      actions_);
        else if (!line->empty())
          take(*line);
      }
      if (!begun_ && strange_ > 0 &&
          (!line || strange_ >= strange_lines_max || strange_bytes_ >= session_line_bytes_max))
        return not_a_session();
      if (!line || (begun_ && actions_.size() >= actions_max))
        RETURN_IF_ERROR(runs_.carry_out(actions_, lines_.facts()));
      if (!line) return came;
    }
  }

  void take(const std::string& line) {
    begun_ = begun_ || may_be_of_session(line);
    if (!begun_) {  // actions are held until a line of a session arrives or the file is refused
      ++strange_;
      strange_bytes_ += line.size();
    }
    lines_.take(line, line_identity(line), actions_);
  }

  Error not_a_session() const {
    return {Errc::invalid_argument,
            fmt::format("{} is not a session of Claude Code: none of the first {} has its format. Nothing was recorded",
                        options_.file, strange_ == 1 ? "lines" : fmt::format("{} lines", strange_))};
  }

  static constexpr std::size_t strange_lines_max =
      200;  // lines examined before the file is refused; at most the bytes of one line

  const FollowOptions& options_;
  const std::atomic<bool>& stop_;
  SessionFile file_;
  SessionRuns runs_;
  ClaudeCodeLines lines_;
  bool begun_ = false;       // a line of a session was found; all later lines are recorded
  std::size_t strange_ = 0;  // number of lines before that line
  std::size_t strange_bytes_ = 0;
  std::vector<RunAction> actions_;
  Followed outcome_;
};

}  // namespace

Result<Followed> follow_session(const FollowOptions& options, const std::atomic<bool>& stop) {
  return SessionFollower(options, stop).follow();
}

}  // namespace muniment::cli
