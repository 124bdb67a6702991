// Implements the command otlp, which receives traces over OTLP/HTTP and records each as a run when it is complete
// (docs/opentelemetry.md). With a command, it serves that command alone and ends with it.
#include <fmt/format.h>
#include <uv.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <optional>

#include "adapters/commands.hpp"
#include "adapters/import/translate/import_report.hpp"
#include "adapters/receive/otlp_receiver.hpp"
#include "adapters/receive/trace_recorder.hpp"
#include "adapters/receive/trace_spool.hpp"
#include "adapters/record/spool.hpp"
#include "base/config/listen_address.hpp"
#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "http/token.hpp"

extern char** environ;

namespace muniment::cli {
namespace {

constexpr const char* default_listen = "127.0.0.1:4318";  // OTLP/HTTP's own port
constexpr const char* any_port = "127.0.0.1:0";

struct OtlpOptions {
  std::string listen;
  std::string token_file;
  std::string spool;
  std::int64_t quiet = limits::otlp_quiet_seconds;
  std::int64_t unended = limits::otlp_unended_seconds;
};

void declare_otlp(CLI::App& command, OtlpOptions& options) {
  command
      .add_option("--listen", options.listen,
                  fmt::format("Address (default {}; a free port for COMMAND)", default_listen))
      ->type_name("HOST:PORT");
  command.add_option("--token-file", options.token_file, "File of the bearer token (default: http_token_file)")
      ->type_name("FILE");
  command.add_option("--spool", options.spool, "Folder of incomplete traces (default: in the state folder)")
      ->type_name("DIR");
  command
      .add_option("--quiet", options.quiet,
                  fmt::format("Seconds without spans after a root's end (default {})", limits::otlp_quiet_seconds))
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86'400));
  command
      .add_option("--unended", options.unended,
                  fmt::format("Seconds without spans, without a root's end (default {})", limits::otlp_unended_seconds))
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86'400));
  command.footer(
      "It prints the settings for the exporters of OpenTelemetry's SDKs. For one command alone:\n"
      "  muniment otlp -- python agent.py\n"
      "sets them in the command's environment, records its traces when it ends, and exits with its code.");
}

Result<std::string> spool_folder(const OtlpOptions& options, const Config& config) {
  if (!options.spool.empty()) return options.spool;
  ASSIGN_OR_RETURN(const std::string hooks, default_spool_folder(config.socket));
  return hooks + "-otlp";
}

std::string new_token() {
  std::string bytes(32, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  return to_hex(bytes);
}

// The exporters' settings, in the order in which they are shown.
std::vector<std::pair<std::string, std::string>> settings_of(const std::string& url, const std::string& token) {
  return {{"OTEL_EXPORTER_OTLP_ENDPOINT", url},
          {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"},
          {"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20" + token}};
}

// The receiver's loop: it ends with a signal or with the command.
class OtlpLoop {
 public:
  OtlpLoop(Session& session, TraceSpool& spool, ReceiverOptions options)
      : session_(session), receiver_(spool, std::move(options)) {
    uv_loop_init(&loop_);
    for (uv_signal_t* const handle : {&interrupt_, &terminate_}) {
      uv_signal_init(&loop_, handle);
      handle->data = this;
    }
  }
  ~OtlpLoop() {
    receiver_.close();
    const auto close_it = [](uv_handle_t* handle, void*) {
      if (uv_is_closing(handle) == 0) uv_close(handle, nullptr);
    };
    uv_walk(&loop_, close_it, nullptr);
    while (uv_loop_close(&loop_) == UV_EBUSY) uv_run(&loop_, UV_RUN_NOWAIT);
  }
  OtlpLoop(const OtlpLoop&) = delete;
  OtlpLoop& operator=(const OtlpLoop&) = delete;

  Status listen() { return receiver_.listen(&loop_); }
  std::uint16_t port() const { return receiver_.port(); }

  void run() {
    const auto ask = [](uv_signal_t* handle, int number) { static_cast<OtlpLoop*>(handle->data)->stop(number); };
    uv_signal_start(&interrupt_, ask, SIGINT);
    uv_signal_start(&terminate_, ask, SIGTERM);
    uv_run(&loop_, UV_RUN_DEFAULT);
  }

  // Runs the session's command in this environment until it ends.
  void run_command(const std::vector<std::pair<std::string, std::string>>& settings) {
    std::vector<std::string> variables;
    for (char** one = environ; *one != nullptr; ++one) {
      const std::string variable = *one;
      const bool is_set =
          std::ranges::any_of(settings, [&](const auto& setting) { return variable.starts_with(setting.first + "="); });
      if (!is_set && !variable.starts_with("OTEL_EXPORTER_OTLP_TRACES_") &&
          !variable.starts_with("OTEL_EXPORTER_OTLP_LOGS_"))
        variables.push_back(variable);
    }
    for (const auto& [name, value] : settings) variables.push_back(fmt::format("{}={}", name, value));
    std::vector<char*> arguments = pointers(session_.command), environment = pointers(variables);
    uv_stdio_container_t streams[3];
    for (int i = 0; i < 3; ++i) {
      streams[i].flags = UV_INHERIT_FD;
      streams[i].data.fd = i;
    }
    uv_process_options_t options{};
    options.file = arguments[0];
    options.args = arguments.data();
    options.env = environment.data();
    options.stdio = streams;
    options.stdio_count = 3;
    options.exit_cb = [](uv_process_t* process, std::int64_t status, int signal) {
      static_cast<OtlpLoop*>(process->data)->ended(status, signal);
    };
    command_.data = this;
    const int failed = uv_spawn(&loop_, &command_, &options);
    if (failed != 0) {
      fmt::print(stderr, "muniment otlp: {}: {}\n", escape_for_terminal(session_.command[0]), uv_strerror(failed));
      session_.exit_code = failed == UV_ENOENT ? 127 : 126;
      return;
    }
    has_command_ = true;
    run();
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  // A terminal sends an interrupt to the command too.
  void stop(int number) {
    if (!has_command_) return uv_stop(&loop_);
    if (number == SIGTERM) uv_process_kill(&command_, SIGTERM);
  }

  void ended(std::int64_t status, int signal) {
    session_.exit_code = signal != 0 ? 128 + signal : static_cast<int>(status);
    uv_stop(&loop_);
  }

  Session& session_;
  uv_loop_t loop_{};
  uv_signal_t interrupt_{}, terminate_{};
  uv_process_t command_{};
  bool has_command_ = false;
  OtlpReceiver receiver_;
};

void print_problem(const std::string& problem) {
  fmt::print(stderr, "muniment otlp: {}\n", escape_for_terminal(problem));
}

// The output of COMMAND is its own, so its runs are named on standard error.
void print_run(Session& session, const ImportedTrace& trace, bool is_command) {
  if (!trace.added) return;
  ImportReport report;
  report.add(trace.tally, "run " + trace.run_id);
  for (const std::string& warning : report.warnings(trace.run_id, {}, !session.options.json)) print_problem(warning);
  if (is_command) {
    fmt::print(stderr, "muniment otlp: recorded {}\n", trace.run_id);
  } else if (session.options.json) {
    json::Writer line;
    line.begin_object().member("run_id", trace.run_id).member("events", static_cast<std::int64_t>(trace.events));
    line.member("artifacts", static_cast<std::int64_t>(trace.artifacts));
    trace.tally.write(line);
    line.end_object();
    session.out().json_line(line.text());
  } else {
    session.out().line(
        fmt::format("{}  {} events  {} artifacts", trace.run_id, grouped(trace.events), grouped(trace.artifacts)));
  }
  std::fflush(stdout);
}

void print_settings(const std::string& url, const std::string& token_file) {
  fmt::print(stderr, "muniment otlp: receiving at {}. Settings for the exporters:\n", url);
  for (const auto& [name, value] : settings_of(url, "$(cat " + token_file + ")"))
    fmt::print(stderr, "  export {}=\"{}\"\n", name, value);
}

Result<ReceiverOptions> receiver_options(const OtlpOptions& options, const Config& config, bool is_command,
                                         std::string& token_file) {
  const std::string wanted = !options.listen.empty() ? options.listen : is_command ? any_port : default_listen;
  const bool any_free_port = wanted.ends_with(":0");
  ASSIGN_OR_RETURN(
      ListenAddress listen,
      parse_listen_address("--listen", any_free_port ? wanted.substr(0, wanted.size() - 1) + "1" : wanted));
  if (any_free_port) listen.port = 0;
  if (!listen.loopback) {
    return Error(
        Errc::invalid_argument,
        fmt::format("--listen {}: other machines reach this address without encryption. Listen at 127.0.0.1, and use a "
                    "collector or a proxy with TLS in front of it",
                    wanted));
  }
  ReceiverOptions out;
  out.server.address = listen.address;
  out.server.port = listen.port;
  out.hosts = config.http_hosts;
  if (is_command) {
    out.token = new_token();
    return out;
  }
  token_file = !options.token_file.empty()       ? options.token_file
               : !config.http_token_file.empty() ? config.http_token_file
                                                 : config.data + "/keys/http.token";
  if (options.token_file.empty() && config.http_token_file.empty()) RETURN_IF_ERROR(http::make_token_file(token_file));
  ASSIGN_OR_RETURN(out.token,
                   http::read_token_file(options.token_file.empty() ? "http_token_file" : "--token-file", token_file));
  return out;
}

Status otlp_command(Session& session, const OtlpOptions& options) {
  const bool is_command = !session.command.empty();
  RETURN_IF_ERROR(session.client());  // starts a daemon if none runs
  ASSIGN_OR_RETURN(const Config config, session.config());
  session.disconnect();
  std::string token_file;
  ASSIGN_OR_RETURN(ReceiverOptions receiving, receiver_options(options, config, is_command, token_file));
  const std::string token = receiving.token;
  TraceRules rules;
  rules.quiet = std::chrono::seconds(options.quiet);
  rules.unended = std::chrono::seconds(options.unended);
  const Clock clock;
  ASSIGN_OR_RETURN(std::string folder, spool_folder(options, config));
  if (is_command) folder += "-" + std::to_string(::getpid());  // another receiver has the other folder
  ASSIGN_OR_RETURN(const auto spool, TraceSpool::open(std::move(folder), rules, clock));
  OtlpLoop loop(session, *spool, std::move(receiving));
  RETURN_IF_ERROR(loop.listen());
  TraceRecorder recorder(*spool, config.socket,
                         {[&](const ImportedTrace& trace) { print_run(session, trace, is_command); }, print_problem});
  const std::string url = fmt::format("http://127.0.0.1:{}", loop.port());
  if (is_command) {
    loop.run_command(settings_of(url, token));
  } else {
    print_settings(url, token_file);
    loop.run();
  }
  recorder.stop();
  (void)recorder.record(is_command ? TraceSpool::Complete::all : TraceSpool::Complete::ended);
  return success();
}

}  // namespace

void add_otlp_command(CLI::App& app, Session& session) {
  add_command<OtlpOptions>(session, app, "otlp", "Receive OpenTelemetry traces and record them as runs", declare_otlp,
                           otlp_command);
}

}  // namespace muniment::cli
