#include "client/connect/session.hpp"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "client/connect/autostart.hpp"
#include "client/connect/pages.hpp"
#include "client/connect/similar_runs.hpp"

namespace muniment::cli {
namespace {

std::string error_json(const Error& error) {
  json::Writer writer;
  writer.begin_object().key("error").begin_object();
  writer.member("code", name_of(error.code)).member("message", error.message);
  if (!error.run_id.empty()) writer.member("run_id", error.run_id);
  if (!error.pointer.empty()) writer.member("pointer", error.pointer);
  if (!error.outcome.empty()) writer.member("outcome", error.outcome);
  if (!error.event_ids.empty()) writer.member("event_ids", error.event_ids);
  if (error.retry_after_ms) writer.member("retry_after_ms", *error.retry_after_ms);
  writer.end_object().end_object();
  return std::move(writer).text();
}

// Adds the next step to a connection error. `unread` is a configuration file that this user may not read.
Error not_connected(Error error, const std::string& unread) {
  if (error.code == Errc::unavailable && unread.empty()) error.message += ". Start it: muniment up";
  if (error.code == Errc::unavailable && !unread.empty()) {
    error.message += fmt::format(". {} is not readable by you; if it names another socket, pass --socket PATH", unread);
  }
  if (error.code == Errc::denied)
    error.message += error.message.ends_with('.') ? " See: muniment doctor" : ". See: muniment doctor";
  return error;
}

}  // namespace

int exit_code_of(Errc code) {
  if (is_transient(code)) return exit_unavailable;
  if (is_halting(code) || code == Errc::run_halted) return exit_halted;
  return exit_refused;
}

ConfigInputs Session::config_inputs() const {
  ConfigInputs inputs;
  inputs.file = options.config;
  inputs.may_go_without = true;
  const std::pair<std::string_view, const std::string&> given[] = {
      {"data", options.data}, {"database", options.database}, {"socket", options.socket}};
  for (const auto& [key, value] : given) {
    if (!value.empty()) inputs.flags.emplace_back(key, value);
  }
  return inputs;
}

Result<Config> Session::config() const { return read_config(config_inputs()); }

// A socket named on the command line does not come from the configuration.
std::string Session::unread() const {
  return options.socket.empty() ? load_config(config_inputs()).unread : std::string();
}

std::string path_beside(std::string_view name) {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (failed ? std::filesystem::path(name) : self.parent_path() / name).string();
}

// The readers and indexes of a capsule are in a program of their own, whose libraries take longer to load than most
// commands take.
Status Session::start_capsule() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error(Errc::unavailable, fmt::format("cannot create a socket: {}", std::strerror(errno)));
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const std::string program = path_beside("muniment-capsule");
  const char* const argv[] = {program.c_str(), "--serve", options.capsule.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  const int failed =
      ::posix_spawn(&capsule_server_, program.c_str(), &actions, nullptr, const_cast<char* const*>(argv), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    capsule_server_ = 0;
    return Error(Errc::unavailable,
                 fmt::format("{} cannot be started: {}. Install it beside muniment", program, std::strerror(failed)));
  }
  client_.emplace(Client::over(std::move(ours)));
  return success();
}

void Session::end_capsule() {
  client_.reset();
  if (capsule_server_ == 0) return;
  int status = 0;
  while (::waitpid(capsule_server_, &status, 0) < 0 && errno == EINTR) {
  }
  capsule_server_ = 0;
  if (status != 0 && exit_code == exit_done)
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : int{exit_unavailable};
}

Result<Client*> Session::client() {
  if (client_) return &*client_;
  if (!options.capsule.empty()) {
    RETURN_IF_ERROR(start_capsule());
    return &*client_;
  }
  ASSIGN_OR_RETURN(const Config configuration, config());
  Result<Client> connected = Client::connect(configuration.socket);
  if (!connected && connected.error().code == Errc::unavailable && !options.no_autostart) {
    const auto pid = start_daemon(configuration, config_inputs(), continue_restored);
    if (!pid && pid.error().code == Errc::unavailable && !unread().empty()) return not_connected(pid.error(), unread());
    if (!pid) return pid.error();
    fmt::print(stderr, "muniment: started munimentd (pid {}) for {}; stop it with: {}\n", *pid, configuration.data,
               advised("muniment down"));
    connected = Client::connect(configuration.socket);
  }
  if (!connected) return not_connected(std::move(connected).error(), unread());
  client_.emplace(std::move(*connected));
  return &*client_;
}

Result<Client*> Session::running_client() {
  if (client_) return &*client_;
  if (!options.capsule.empty()) return Error(Errc::invalid_argument, "this command needs a daemon. Omit --capsule");
  ASSIGN_OR_RETURN(const Config configuration, config());
  Result<Client> connected = Client::connect(configuration.socket);
  if (!connected) return not_connected(std::move(connected).error(), unread());
  client_.emplace(std::move(*connected));
  return &*client_;
}

void Session::observe() {
  if (execution.daemon.open()) client_.emplace(Client::over(std::move(execution.daemon)));
}

bool Session::names_only_socket() const {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return (!options.socket.empty() || is_set("MUNIMENT_SOCKET")) && options.data.empty() && options.config.empty() &&
         !is_set("MUNIMENT_DATA") && !is_set("MUNIMENT_CONFIG");
}

Status Session::find_place() {
  if (!names_only_socket()) return success();
  ASSIGN_OR_RETURN(Client* const connection, running_client());
  ASSIGN_OR_RETURN(const Message status, connection->call("server.status", "{}"));
  options.data = status.result()["data_dir"].string_or("");
  return success();
}

Result<Message> Session::call(std::string_view method, std::string_view params) {
  ASSIGN_OR_RETURN(Client* const connection, client());
  return connection->call(method, params);
}

Result<std::string> Session::run_id(std::string_view name) {
  if (name.empty()) {
    const char* chosen = std::getenv("MUNIMENT_RUN");
    if (chosen == nullptr || *chosen == '\0') {
      return Error(Errc::invalid_argument,
                   "the run is missing. Name one (an id, @last, @17 or a label k=v) "
                   "or set MUNIMENT_RUN");
    }
    name = chosen;
  }
  if (name.starts_with("@last")) return newest_run(name.substr(5));
  if (name.starts_with("@")) return numbered_run(name.substr(1));
  if (name.find('=') != std::string_view::npos) return labelled_run(name);
  return std::string(name);
}

Result<std::string> Session::run_id_if_any(std::string_view name) {
  const char* chosen = std::getenv("MUNIMENT_RUN");
  const bool none = name.empty() && (chosen == nullptr || *chosen == '\0');
  return none ? std::string() : run_id(name);
}

Result<std::string> Session::newest_run(std::string_view back) {
  std::optional<std::int64_t> steps = 0;
  if (!back.empty()) steps = back.starts_with("~") ? parse_decimal(back.substr(1)) : std::nullopt;
  if (!steps || *steps > 999) {
    return Error(Errc::invalid_argument, "expected @last or @last~N with N up to 999");
  }
  ASSIGN_OR_RETURN(const Message answer, call("run.list", fmt::format("{{\"limit\":{}}}", *steps + 1)));
  std::int64_t skipped = 0;
  for (const json::Value run : answer.result()["runs"]) {
    if (skipped++ == *steps) return run["run_id"].string_or("");
  }
  return Error(Errc::not_found, fmt::format("there are only {} runs; @last{} does not exist", skipped, back));
}

Result<std::string> Session::numbered_run(std::string_view number) {
  const auto run_no = parse_decimal(number);
  if (!run_no)
    return Error(Errc::invalid_argument, fmt::format("@{} is neither @last nor the number of a run", number));
  // Each log numbers its runs from 1, and a new log may continue a restored one.
  ASSIGN_OR_RETURN(const Message status, call("server.status", "{}"));
  const std::size_t logs = 1 + status.result()["earlier_logs"].size();
  std::vector<std::pair<std::string, std::string>> found;  // id and log
  RETURN_IF_ERROR(each_item(*this, "run.list", "{\"limit\":1000}", "runs", [&](const json::Value& run) -> Result<bool> {
    if (run["run_no"].as_int() != run_no) return true;
    const json::Value closed = run["log_no"];
    found.emplace_back(run["run_id"].string_or(""),
                       closed ? fmt::format("of the closed log {}", closed.source()) : "of the current log");
    return found.size() < logs;
  }));
  if (found.empty()) return Error(Errc::not_found, fmt::format("there is no run @{}. See: muniment run list", number));
  if (found.size() == 1) return std::move(found.front().first);
  std::string all;
  for (const auto& [id, log] : found) all += fmt::format("{}{} {}", all.empty() ? "" : ", ", id, log);
  return Error(Errc::conflict, fmt::format("@{} matches {} runs: {}. Name one by its id", number, found.size(), all));
}

Result<std::string> Session::labelled_run(std::string_view label) {
  const std::size_t equals = label.find('=');
  json::Writer params;
  params.begin_object().key("labels").begin_object();
  params.member(label.substr(0, equals), label.substr(equals + 1)).end_object();
  params.member("limit", 2).end_object();
  ASSIGN_OR_RETURN(const Message answer, call("run.list", params.text()));
  const json::Value runs = answer.result()["runs"];
  if (runs.size() == 1) return (*runs.begin())["run_id"].string_or("");
  return Error(
      runs.size() == 0 ? Errc::not_found : Errc::conflict,
      fmt::format("{} run has the label {}. See: muniment run list", runs.size() == 0 ? "no" : "more than one", label));
}

const Output& Session::out() {
  if (!out_) out_ = Output::to_stdout(options.raw, advice());
  return *out_;
}

Advice Session::advice() const {
  std::string place;
  for (const auto& [flag, value] : {std::pair<std::string_view, const std::string&>("--data", options.data),
                                    {"--config", options.config},
                                    {"--socket", options.socket}}) {
    if (!value.empty()) place += fmt::format("{}{} {}", place.empty() ? "" : " ", flag, shell_word(value));
  }
  std::string to_start = place;
  const char* const data = std::getenv("MUNIMENT_DATA");
  const bool only_socket =
      !options.socket.empty() && options.data.empty() && options.config.empty() && (data == nullptr || *data == '\0');
  if (only_socket)
    to_start = "--data DIR " + place;  // the socket may belong to a different instance than the default folder
  if (!options.database.empty()) {
    const bool secret = without_password(options.database) != options.database;
    to_start +=
        fmt::format("{}--database {}", to_start.empty() ? "" : " ", secret ? "URI" : shell_word(options.database));
  }
  return {std::move(place), std::move(to_start)};
}

namespace {

// Returns the code and the message. The daemon's messages about a halt or a schema error already begin with the code.
std::string coded(const Error& error) {
  const bool named = error.message.rfind(name_of(error.code), 0) == 0;
  return (named ? "" : std::string(name_of(error.code)) + ": ") + escape_for_terminal(error.message);
}

}  // namespace

void Session::finish(const Status& status) {
  if (status) return;
  Error error = client_ ? with_similar_runs(*client_, status.error()) : status.error();
  error.message = advised(error.message);
  exit_code = exit_code_of(error.code);
  if (options.json) {
    out().json_line(error_json(error));
  } else {
    fmt::print(stderr, "muniment: {}\n", coded(error));
  }
}

void Session::finish_quietly(std::string_view what, const Status& status) const {
  if (status) return;
  Error error = status.error();
  error.message = advised(error.message);
  fmt::print(stderr, "muniment: {} is not recorded: {}\n", what, coded(error));
}

bool Session::printed_json(const Message& message) {
  if (options.json) out().json_line(message.result().source());
  return options.json;
}

}  // namespace muniment::cli
