#include "cli/verifier.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

extern char** environ;

namespace muniment::cli {
namespace {

Error cannot_verify(std::string_view why) {
  return Error(Errc::unavailable,
               fmt::format("muniment-verify cannot be run: {}. Install it in the folder of muniment", why));
}

// Reads the standard output of the verifier to its end.
Result<std::string> read_report(const Fd& from) {
  std::string report;
  char piece[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(from.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_verify(std::strerror(errno));
    if (got == 0) return report;
    if (report.size() < verifier_report_bytes_max) report.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<int> run_verifier(std::vector<std::string> arguments, std::string* output) {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return cannot_verify(failed.message());
  const std::string verifier = self.parent_path() / "muniment-verify";
  std::vector<char*> words{const_cast<char*>(verifier.c_str())};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);

  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_verify(std::strerror(errno));
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (output != nullptr) ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  pid_t child = -1;
  // Signals that are blocked in this process still end the child.
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int refused = ::posix_spawn(&child, verifier.c_str(), &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) return cannot_verify(std::strerror(refused));
  writing.reset();

  Result<std::string> report = read_report(reading);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!report) return std::move(report).error();
  if (output != nullptr) *output = *std::move(report);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return cannot_verify(fmt::format("it was killed by signal {}", WTERMSIG(status)));
}

Result<std::vector<VerifierKey>> trusted_keys(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_named(path, limits::key_file_bytes_max));
  auto keys = parse_verifier_keys(text);
  if (!keys) return std::move(keys).error().within(path);
  if (keys->empty()) return Error(Errc::invalid_argument, path + ": the file contains no verifier key");
  return keys;
}

Result<BundleVerdict> verify_bundle(const std::string& bundle, const std::string& key) {
  std::vector<std::string> arguments{"--bundle", bundle, "--json"};
  if (!key.empty()) arguments.insert(arguments.end(), {"--key", key});
  BundleVerdict verdict;
  ASSIGN_OR_RETURN(verdict.exit_code, run_verifier(std::move(arguments), &verdict.report));
  return verdict;
}

std::string verdict_words(const BundleVerdict& verdict) {
  const auto document = json::parse(verdict.report);
  if (!document) return fmt::format("muniment-verify exited with {}", verdict.exit_code);
  const json::Value report = document->root();
  std::string words = report["verdict"].string_or("refused");
  const json::Value bad = report["first_bad"];
  if (const std::string problem = report["problem"].string_or(""); !problem.empty()) words += ": " + problem;
  if (const std::string keys = report["wrong_key"].string_or(""); !keys.empty()) words += ": " + keys;
  if (!bad.is(json::Kind::object)) return preview(words, 1000);
  words += ":";
  if (bad["seq"].is(json::Kind::number)) words += fmt::format(" seq {}", bad["seq"].source());
  words += fmt::format(" ({})", bad["check"].string_or(""));
  if (const std::string meaning = bad["meaning"].string_or(""); !meaning.empty()) words += ": " + meaning;
  return preview(words, 1000);
}

}  // namespace muniment::cli
