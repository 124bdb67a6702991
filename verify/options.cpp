#include "verify/options.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/config/command_tree.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/text.hpp"

namespace muniment::verify {
namespace {

constexpr unsigned jobs_default_max = 16;

std::string default_data() {
  if (const char* const set = std::getenv("MUNIMENT_DATA")) return set;
  if (::geteuid() == 0) return "/var/lib/muniment";
  if (const char* const share = std::getenv("XDG_DATA_HOME")) return std::string(share) + "/muniment";
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.local/share/muniment";
}

// Returns the first line of a file in the data folder; nullopt if the file is absent or empty.
Result<std::optional<std::string>> first_line_of(const std::string& path) {
  const auto text = read_named(path, limits::note_bytes_max);
  if (!text && text.error().code == Errc::not_found) return std::optional<std::string>();
  if (!text) return text.error();
  const std::string line = text->substr(0, text->find('\n'));
  return line.empty() ? std::optional<std::string>() : std::optional(line);
}

// Returns the number of the log that the daemon writes; nullopt if the file is missing, which means the first log of
// the database. Errors: corrupt if the file holds no number, because a different log than the intended one could be
// verified.
Result<std::optional<std::int64_t>> written_log_no(const std::string& path) {
  auto text = read_named(path, limits::note_bytes_max);
  if (!text && text.error().code == Errc::not_found) return std::optional<std::int64_t>();
  if (!text) return text.error();
  text->erase(text->find_last_not_of('\n') + 1);
  const auto number = parse_decimal(*text);
  if (number && *number >= 1 && *number <= INT16_MAX) return number;
  return Error(Errc::corrupt, fmt::format("{} does not hold the number of a log", path));
}

// A restored data folder continues in a new log, whose files are in a separate folder (docs/format.md).
Result<std::string> folder_of_log(const std::string& data, std::optional<std::int64_t>& log_no) {
  if (!log_no) {
    ASSIGN_OR_RETURN(log_no, written_log_no(data + "/log_no"));
  }
  return log_no.value_or(1) == 1 ? data : data + "/log-" + std::to_string(*log_no);
}

// Sets unset options to the daemon's locations. If only a database is named, no data folder is assumed, because the
// folder of a different log would contradict it. Errors: not_found if no database is named; corrupt if the log is
// ambiguous.
Status complete(Options& options, std::string data) {
  if (data.empty() && options.uri.empty()) data = default_data();
  std::string own;
  if (!data.empty()) {
    ASSIGN_OR_RETURN(own, folder_of_log(data, options.log_no));
  }
  options.notes.data = own;
  if (options.artifacts.empty()) options.artifacts = data.empty() ? default_data() + "/artifacts" : data + "/artifacts";
  if (options.notes.tiles.empty() && !data.empty()) options.notes.tiles = own + "/tiles";
  if (options.archive.empty() && !data.empty()) options.archive = own + "/archive";
  const auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
  };
  options.place = {absolute(data), options.uri.empty() ? absolute(data + "/database.uri") : ""};
  if (!options.uri.empty()) return success();
  // The daemon writes the URI of its database into its data folder.
  ASSIGN_OR_RETURN(const auto uri, first_line_of(data + "/database.uri"));
  if (!uri) return Error(Errc::not_found, fmt::format("no database named: there is no {}/database.uri", data));
  options.uri = *uri;
  return success();
}

// Checks an output path before the verification starts, because it may take hours.
Status check_place(const std::string& option, const std::string& path) {
  if (path.empty()) return success();
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed))
    return Error(Errc::invalid_argument, fmt::format("{} {}: is a folder; a file is required", option, path));
  if (const auto kind = no_regular_file(path); kind && option == "--save") {  // the new file replaces the name
    return Error(Errc::invalid_argument, fmt::format("{} {}: is {}; a regular file is required", option, path, *kind));
  }
  const auto folder = open_folder(path.substr(0, path.find_last_of('/') + 1) + ".");
  return folder ? success() : Status(Error(folder.error()).within(fmt::format("{} {}", option, path)));
}

void declare_options(CLI::App& app, CommandLine& line, std::string& data) {
  Options& options = line.options;
  app.set_version_flag("--version", "muniment-verify " MUNIMENT_VERSION);
  app.add_option("--data", data, "Data folder of the daemon (MUNIMENT_DATA)");
  app.add_option("--database", options.uri, "URI of the database (default: DATA/database.uri)");
  app.add_option("--artifacts", options.artifacts, "Artifact root (default: DATA/artifacts)");
  app.add_option("--archive", options.archive, "Folder of archived bodies (default: DATA/archive)");
  app.add_option("--tiles", options.notes.tiles, "Tiles folder (default: DATA/tiles)");
  app.add_option("--key", options.notes.keys, "File of trusted verifier keys (default: DATA/keys/log.pub)");
  app.add_option("--checkpoint", options.notes.checkpoints, "Checkpoint that you stored earlier");
  app.add_option("--witness", options.notes.witnesses, "Checkpoint of a witness, or a folder of them");
  app.add_option("--proof", line.proof.proof, "Verify a proof file instead of a log");
  app.add_option("--bundle", line.bundle.bundle, "Verify the bundle of one run instead of a log");
  app.add_option("--capsule", line.capsule.capsule, "Verify a capsule instead of a log");
  app.add_option("--receipt", line.proof.receipt, "Receipt, or event with salt and body, to check with the proof");
  app.add_option("--resume", options.resume, "Resume from a state that --save wrote");
  app.add_option("--save", options.save, "Save the state to this file if there are no findings");
  app.add_option("--log", options.log_no, "Number of the log (default: DATA/log_no, or the first log)");
  app.add_option("--jobs", options.jobs, "Threads")->check(CLI::Range(1U, 64U))->capture_default_str();
  app.add_flag("--unsigned-ok", line.unsigned_ok, "Exit 0 if consistent but unsigned or with an unsigned tail");
  app.add_flag("--json", line.json, "Report as JSON");
  app.add_option("--report", line.report, "Also write the report as JSON to this file");
}

}  // namespace

std::variant<CommandLine, int> parse_command_line(int argc, char** argv) {
  CommandLine line;
  Options& options = line.options;
  options.jobs = std::clamp(std::thread::hardware_concurrency(), 1U, jobs_default_max);
  std::string data;
  CLI::App app(
      "Verifies a log: every event, file, snapshot, row, signature and tile. Exit: 0 verified, 1 tampered or corrupt, "
      "2 consistent but unsigned, with an unsigned tail or signed by none of the keys, 3 usage, 4 unreadable, 5 incomplete.",
      "muniment-verify");
  declare_options(app, line, data);
  offer_command_tree(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_exit_code;
  }
  for (const auto& [option, path] : {std::pair{"--save", options.save}, std::pair{"--report", line.report}}) {
    if (const Status place = check_place(option, path); !place) {
      std::fprintf(stderr, "muniment-verify: %s.\n", place.error().message.c_str());
      return usage_exit_code;
    }
  }
  line.proof.keys = line.bundle.keys = line.capsule.keys = options.notes.keys;
  const bool has_proof = !line.proof.proof.empty(),
             has_file = !line.bundle.bundle.empty() || !line.capsule.capsule.empty();
  if (has_proof + !line.bundle.bundle.empty() + !line.capsule.capsule.empty() > 1) {
    std::fprintf(stderr, "muniment-verify: --proof, --bundle and --capsule exclude each other. Give one.\n");
    return usage_exit_code;
  }
  if (has_proof || (has_file && line.proof.receipt.empty())) return line;
  if (!line.proof.receipt.empty()) {
    std::fprintf(stderr, "muniment-verify: --receipt requires --proof FILE.\n");
    return usage_exit_code;
  }
  if (const Status whole = complete(options, data); !whole) {
    const bool absent = whole.error().code == Errc::not_found;
    const char* const next = whole.error().code == Errc::corrupt ? "Give --log NUMBER."
                             : absent ? "Start the daemon once (muniment up), or give --database URI --artifacts DIR."
                                      : "Give --database URI --artifacts DIR.";
    std::fprintf(stderr, "muniment-verify: %s. %s\n", whole.error().message.c_str(), next);
    return absent ? usage_exit_code : exit_code_of(Verdict::unreadable, false);
  }
  ignore_libpq_variables(options.uri);
  return line;
}

}  // namespace muniment::verify
