// muniment-verify: a verdict on a log that needs no trust in the daemon, its operator or its DBA.
#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "verify/progress.hpp"
#include "verify/report.hpp"

namespace {

constexpr int usage_exit_code = 3;

struct CommandLine {
  std::string data, uri, artifacts;
  std::optional<std::int64_t> log_no;
  unsigned jobs = 2;
  bool unsigned_ok = false;
  bool json = false;
};

std::string default_data() {
  if (const char* const set = std::getenv("MUNIMENT_DATA")) return set;
  if (::geteuid() == 0) return "/var/lib/muniment";
  if (const char* const share = std::getenv("XDG_DATA_HOME")) return std::string(share) + "/muniment";
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.local/share/muniment";
}

// The daemon writes the URI of the database that it uses into its data folder.
bool complete(CommandLine& line) {
  if (line.data.empty()) line.data = default_data();
  if (line.artifacts.empty()) line.artifacts = line.data + "/artifacts";
  if (!line.uri.empty()) return true;
  std::ifstream file(line.data + "/database.uri");
  return static_cast<bool>(std::getline(file, line.uri)) && !line.uri.empty();
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Verifies a log: every event, file, snapshot and row. Exit: 0 verified, 1 tampered or corrupt, "
               "2 consistent but unsigned, 3 usage, 4 unreadable, 5 incomplete.", "muniment-verify");
  app.set_version_flag("--version", "muniment-verify " MUNIMENT_VERSION);
  app.add_option("--data", line.data, "Data folder of the daemon (MUNIMENT_DATA)");
  app.add_option("--database", line.uri, "URI of the database; otherwise the one in DATA/database.uri");
  app.add_option("--artifacts", line.artifacts, "Artifact root; otherwise DATA/artifacts");
  app.add_option("--log", line.log_no, "Number of the log, where the database has several");
  app.add_option("--jobs", line.jobs, "Threads")->check(CLI::Range(1U, 64U))->capture_default_str();
  app.add_flag("--unsigned-ok", line.unsigned_ok, "Exit 0 when the log is consistent but unsigned");
  app.add_flag("--json", line.json, "Report as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_exit_code;
  }
  if (!complete(line)) {
    std::fprintf(stderr, "muniment-verify: no database named: there is no %s/database.uri. Start the daemon once "
                 "(muniment up), or give --database URI --artifacts DIR.\n", line.data.c_str());
    return usage_exit_code;
  }
  muniment::verify::ProgressLine progress(::isatty(STDERR_FILENO) != 0);
  const muniment::verify::Report report = muniment::verify::verify({line.uri, line.artifacts, line.log_no, line.jobs, progress.sink()});
  progress.clear();
  const std::string text = line.json ? json_of(report) : text_of(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return exit_code_of(report.verdict, line.unsigned_ok);
}
