// Implements the command top, a live view of a daemon. It calls only server.metrics, server.status, run.list and
// event.list.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <thread>

#include "cli/commands.hpp"
#include "cli/show/top_frame.hpp"

namespace muniment::cli {
namespace {

using std::chrono::milliseconds;

constexpr int runs_shown_max = 40;
constexpr std::size_t frame_lines = 15;       // without the runs
constexpr std::size_t height_elsewhere = 40;  // without a terminal

struct TopOptions {
  bool once = false;
  double seconds = 1;
};

void declare_top(CLI::App& command, TopOptions& options) {
  command.add_flag("--once", options.once, "Print one frame and exit; works without a terminal");
  command.add_option("--interval", options.seconds, "Seconds between frames")
      ->type_name("S")
      ->check(CLI::Range(0.1, 3600.0));
}

volatile std::sig_atomic_t end_asked = 0;

// Switches the terminal to unbuffered input and hides the cursor; the destructor restores both.
class LiveTerminal {
 public:
  LiveTerminal() {
    struct sigaction action {};
    action.sa_handler = [](int) { end_asked = 1; };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
    keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  ~LiveTerminal() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  LiveTerminal(const LiveTerminal&) = delete;

  void draw(const std::vector<std::string>& lines) const {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
    text += "\x1b[J";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  // Waits until the time has passed; returns true if the user asked to quit.
  bool wait(milliseconds time) const {
    const auto until = std::chrono::steady_clock::now() + time;
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
      if (end_asked != 0) return true;
      if (left.count() <= 0) return false;
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, static_cast<int>(left.count())) <= 0) continue;
      char key = 0;
      if (::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == 3) return true;
    }
  }

  static std::size_t height() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 ? size.ws_row : 24;
  }

 private:
  termios before_{};
  bool keys_ = false;
};

// Returns the newest open runs, each with its last event. Runs that disappear in the meantime are skipped.
Result<std::vector<TopRun>> look_at_runs(Client& client, int most) {
  std::vector<TopRun> runs;
  if (most <= 0) return runs;
  ASSIGN_OR_RETURN(const Message listed,
                   client.call("run.list", fmt::format(R"({{"status":"open","limit":{}}})", most)));
  for (const json::Value item : listed.result()["runs"]) {
    if (item["log_no"]) break;  // runs of a closed log are listed last and no longer change
    TopRun run;
    run.run_id = item["run_id"].string_or("");
    run.agent = item["agent"].string_or("");
    const std::string params = json::Writer()
                                   .begin_object()
                                   .member("run_id", run.run_id)
                                   .member("order", "desc")
                                   .member("limit", 1)
                                   .raw_member("fields", R"(["type","run_seq","recorded_at"])")
                                   .end_object()
                                   .text();
    auto last = client.call("event.list", params);
    if (!last) continue;
    for (const json::Value event : last->result()["events"]) {
      run.last_type = event["type"].string_or("");
      run.last_run_seq = event["run_seq"].as_int().value_or(-1);
      run.last_at = parse_time(event["recorded_at"].string_or(""));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

// `runs` is the number of runs to show. Parts that need Postgres are omitted while it is unavailable.
Result<TopLook> look(Client& client, int runs) {
  TopLook seen;
  ASSIGN_OR_RETURN(const Message metrics, client.call("server.metrics", "{}"));
  seen.at = std::chrono::steady_clock::now();
  seen.now = Clock().now();
  ASSIGN_OR_RETURN(seen.metrics, parse_metrics(metrics.result()["text"].string_or("")));
  ASSIGN_OR_RETURN(const Message status, client.call("server.status", "{}"));
  for (const json::Value text : status.result()["degraded"]) seen.degraded.emplace_back(text.string_or(""));
  seen.late = late_followers(client, status.result(), seen.now);
  if (auto found = look_at_runs(client, runs)) seen.runs = *std::move(found);
  return seen;
}

Status print_frames(Session& session, const TopOptions& options, Client& client, milliseconds interval) {
  const Output& out = session.out();
  ASSIGN_OR_RETURN(TopLook before, look(client, 0));
  do {
    std::this_thread::sleep_for(interval);
    ASSIGN_OR_RETURN(TopLook after, look(client, runs_shown_max));
    const TopFrame frame = frame_of(before, after);
    if (session.options.json) {
      out.json_line(json_of(frame));
    } else {
      for (const std::string& line : lines_of(frame, out, height_elsewhere)) out.line(line);
    }
    std::fflush(stdout);
    before = std::move(after);
  } while (session.options.json && !options.once && !out.failed());
  return success();
}

Status show_live(Session& session, Client& client, milliseconds interval) {
  const LiveTerminal terminal;
  ASSIGN_OR_RETURN(TopLook before, look(client, 0));
  while (!terminal.wait(interval)) {
    const std::size_t height = LiveTerminal::height();
    const int runs =
        static_cast<int>(std::min<std::size_t>(height > frame_lines ? height - frame_lines : 0, runs_shown_max));
    ASSIGN_OR_RETURN(TopLook after, look(client, runs));
    terminal.draw(lines_of(frame_of(before, after), session.out(), height - 1));
    before = std::move(after);
  }
  return success();
}

Status run_top(Session& session, const TopOptions& options) {
  ASSIGN_OR_RETURN(Client* const client, session.running_client());
  const milliseconds interval(static_cast<std::int64_t>(options.seconds * 1'000));
  const bool live = session.out().terminal() && ::isatty(STDIN_FILENO) != 0;
  if (options.once || session.options.json || !live) return print_frames(session, options, *client, interval);
  return show_live(session, *client, interval);
}

}  // namespace

void add_top_command(CLI::App& app, Session& session) {
  add_command<TopOptions>(session, app, "top", "Show the daemon's activity live; q quits", declare_top, run_top);
}

}  // namespace muniment::cli
