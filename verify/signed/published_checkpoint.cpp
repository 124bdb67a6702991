#include "verify/signed/published_checkpoint.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "verify/signed/checkpoint_file.hpp"
#include "verify/signed/note_files.hpp"

namespace muniment::verify {
namespace {

constexpr std::chrono::milliseconds given_to_publish{2'000}, look_again_every{50};
// The daemon syncs published files to disk every minute.
constexpr std::int64_t not_durable_micros_max = 120'000'000;

// Returns the size of the published note if a trusted key signed it; 0: none.
std::int64_t size_now(const std::string& tiles, const Log& log, const std::vector<VerifierKey>& keys) {
  const auto kept = read_kept_files({"", tiles, {}, {}, {}});
  if (!kept) return 0;
  for (const KeptNote& note : kept->notes) {
    const auto file = parse_checkpoint_file(note.text);
    if (!file || !file->note || !file->checkpoint.origin.ends_with("/" + log.log_id.text())) continue;
    const auto signers = signers_of(*file->note, keys);
    if (signers && !signers->empty()) return file->checkpoint.size;
  }
  return 0;
}

bool comes_up_to(std::int64_t size, const std::string& tiles, const Log& log, const std::vector<VerifierKey>& keys) {
  const auto give_up = std::chrono::steady_clock::now() + given_to_publish;
  while (size_now(tiles, log, keys) < size) {
    if (std::chrono::steady_clock::now() >= give_up) return false;
    std::this_thread::sleep_for(look_again_every);
  }
  return true;
}

// Returns whether a crash or a power failure may have left the note of `size` older than the one of `newest`.
Result<bool> may_be_left_behind(Connection& connection, const Log& log, std::int64_t size, std::int64_t newest) {
  ASSIGN_OR_RETURN(
      const auto stopped,
      connection.integer(fmt::format("SELECT 1 FROM event WHERE log_no = {} AND seq = {} AND type = 'log.stopped'",
                                     log.log_no, log.upto)));
  if (stopped) return false;
  ASSIGN_OR_RETURN(
      const auto apart,
      connection.integer(fmt::format(
          "SELECT (extract(epoch FROM max(recorded_at) - min(recorded_at)) * 1000000)::bigint FROM event WHERE log_no = {} AND seq IN ({}, {})",
          log.log_no, size, newest - 1)));
  return apart && *apart <= not_durable_micros_max;
}

// Returns whether tiles exist without their checkpoint.
bool is_missing(const std::string& tiles) {
  struct stat about {};
  return !tiles.empty() && ::lstat((tiles + "/tile").c_str(), &about) == 0 &&
         ::lstat((tiles + "/checkpoint").c_str(), &about) != 0 && errno == ENOENT;
}

}  // namespace

Status check_published(Connection& connection, const Log& log, const SignedLog& signatures, const PublishedNote& note,
                       Findings& findings, std::vector<std::string>& warnings) {
  const std::int64_t size = signatures.published(), newest = signatures.outcome().upto + 1;
  if (size >= newest || (size == 0 && !is_missing(note.tiles))) return success();
  if (note.live && comes_up_to(newest, note.tiles, log, signatures.trusted())) return success();
  ASSIGN_OR_RETURN(const bool innocent,
                   note.live ? Result<bool>(false) : may_be_left_behind(connection, log, size, newest));
  const std::string there = size == 0 ? "missing" : fmt::format("a checkpoint of {} events", size);
  if (innocent) {
    warnings.push_back(fmt::format(
        "{}/checkpoint: {}, but {} are signed: a crash or a power failure can cause this. Readers of the tiles see no more until a "
        "daemon starts and publishes the newest one",
        note.tiles, there, newest));
  } else {
    findings.add({Check::published_checkpoint, size - 1, "",
                  fmt::format("{}/checkpoint of at least {} events, which are signed", note.tiles, newest), there});
  }
  return success();
}

}  // namespace muniment::verify
