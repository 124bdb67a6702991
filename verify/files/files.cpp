#include "verify/files/files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <unordered_set>

#include "verify/log/parallel.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t paths_a_query = 500;
const std::string erased_hash(64, '0');

// Checks the piece tree of a large artifact if it exists. Readers of a slice recreate a missing one.
void check_pieces(const FileWork& work, const Row& row, const PieceTree& wanted, FileCounts& counts) {
  const auto found = [&](std::string expected, std::string actual) {
    work.findings.add({Check::artifact_pieces, row.integer(0), row.text(1), std::move(expected), std::move(actual)});
  };
  if (!row.null(6) && row.text(6) != to_hex(wanted.root))
    found("pieces_root = " + to_hex(wanted.root), "pieces_root = " + row.text(6));
  const std::string path = row.text(2) + std::string(pieces_suffix);
  const auto held = work.root.read(path, std::ssize(wanted.file) + 1);
  if (!held && held.error().code == Errc::not_found) return;
  if (!held && held.error().code == Errc::unavailable) {
    counts.unread.push_back(held.error().message);
  } else if (!held || *held != wanted.file) {
    found(fmt::format("{} bytes with sha256 {}", wanted.file.size(), to_hex(sha256(wanted.file))),
          held ? fmt::format("{}: {} bytes with sha256 {}", path, held->size(), to_hex(sha256(*held)))
               : held.error().message);
  }
}

std::string described(const FileFacts& facts) {
  return facts.was_read ? fmt::format("{} bytes with sha256 {}", facts.size_bytes, to_hex(facts.hash))
                        : fmt::format("{} bytes", facts.size_bytes);
}

void note_left(const FileWork& work, const Row& row, std::vector<LeftFile>& left) {
  const std::string path = row.text(2);
  for (const std::string& name : {path, path + std::string(pieces_suffix)}) {
    if (work.root.exists(name)) left.push_back({name, row.integer(0), row.text(1)});
  }
}

void check_file(const FileWork& work, const Row& row, FileCounts& counts, std::vector<LeftFile>& left) {
  const std::string path = row.text(2);
  if (row.bytes(3) == erased_hash && work.redacted.contains(row.uuid_text(5))) return note_left(work, row, left);
  const auto found = [&](Check check, std::string expected, std::string actual) {
    work.findings.add({check, row.integer(0), row.text(1), std::move(expected), std::move(actual)});
  };
  const std::string wanted = fmt::format("{} bytes with sha256 {}", row.integer(4), row.bytes(3));
  const auto facts = work.root.facts(path, row.integer(4));
  if (facts) {
    ++counts.files;
    if (facts->was_read) counts.bytes += facts->size_bytes;
    const std::string held = described(*facts);
    if (held != wanted) {
      found(Check::artifact_hash, wanted, fmt::format("{}: {}", path, held));
    } else if (work.root.has_other_names(path, "staging/" + row.uuid_text(5))) {
      found(Check::artifact_file, path + ": one name",
            "several names (hard links): its bytes can be changed through another name");
    }
    if (held == wanted && facts->pieces) check_pieces(work, row, *facts->pieces, counts);
  } else if (facts.error().code == Errc::unavailable) {
    counts.unread.push_back(facts.error().message);
  } else if (!work.redacted.contains(row.uuid_text(5))) {
    found(Check::artifact_file, wanted, facts.error().message);
  }
}

// True for a path that artifact_path can produce. Such a path needs no quoting.
bool could_be_ours(const std::string& path) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%-/";
  return path.find_first_not_of(allowed) == std::string::npos;
}

// Covers every log of the database, because logs share the artifact root.
Result<std::unordered_set<std::string>> paths_with_rows(Connection& connection, const std::vector<std::string>& paths) {
  std::unordered_set<std::string> known;
  if (paths.empty()) return known;
  // A piece tree is named after its file. note_left examines those of an erased file.
  std::vector<std::string> names = paths;
  for (const std::string& path : paths) {
    if (path.ends_with(pieces_suffix)) names.push_back(path.substr(0, path.size() - pieces_suffix.size()));
  }
  RETURN_IF_ERROR(connection.start_copy(fmt::format(
      "SELECT path, size_bytes FROM artifact WHERE path IN ('{}') AND log_no IN (SELECT log_no FROM log_head)",
      fmt::join(names, "','"))));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return known;
    known.insert(row.text(0));
    if (row.integer(1) > unpieced_bytes_max) known.insert(row.text(0) + std::string(pieces_suffix));
  }
}

// Returns whether a staging link explains the file: as its second name, or as the second name of the artifact whose
// pieces it holds.
bool is_staged(const ArtifactRoot& root, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  const std::string staged = "staging/" + name.substr(0, name.find('.'));
  return path.ends_with(pieces_suffix) ? root.exists(staged) : root.same_file(path, staged);
}

// The daemon links a file, commits its event and then removes the staging link. A file without a staging link therefore
// has its row by now, or never gets one.
Status check_unnamed(const FileWork& work, const std::vector<std::string>& paths, FileCounts& counts) {
  std::vector<std::string> doubtful;
  for (const std::string& path : paths) {
    if (is_staged(work.root, path)) {
      if (counts.in_flight++ == 0) counts.in_flight_first = path;
    } else {
      doubtful.push_back(path);
    }
  }
  if (doubtful.empty()) return success();
  std::vector<std::string> askable;
  std::copy_if(doubtful.begin(), doubtful.end(), std::back_inserter(askable), could_be_ours);
  ASSIGN_OR_RETURN(Connection now, work.snapshot.outside());
  ASSIGN_OR_RETURN(const auto known, paths_with_rows(now, askable));
  for (const std::string& path : doubtful) {
    if (known.contains(path)) {
      ++counts.in_flight;
    } else if (work.root.exists(path)) {
      ++*counts.unknown;
      work.findings.add({Check::unknown_file, -1, "", "no such file", work.root.path() + "/" + path});
    }
  }
  return success();
}

Status check_batch(const FileWork& work, const std::vector<std::string>& paths, FileCounts& counts) {
  std::vector<std::string> askable, unnamed;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(askable), could_be_ours);
  ASSIGN_OR_RETURN(const auto known, paths_with_rows(work.snapshot.holder(), askable));
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(unnamed),
               [&known](const std::string& path) { return !known.contains(path); });
  return check_unnamed(work, unnamed, counts);
}

}  // namespace

Status check_files(const FileWork& work, unsigned jobs, FileCounts& counts) {
  std::mutex mutex;
  return in_parallel(jobs, [&](unsigned job) -> Status {
    ASSIGN_OR_RETURN(Connection connection, work.snapshot.join());
    RETURN_IF_ERROR(connection.start_copy(fmt::format(
        "SELECT a.seq, a.run_id, a.path, a.hash, a.size_bytes, a.artifact_id, CASE WHEN a.size_bytes > {} THEN "
        "(SELECT e.body->>'pieces_root' FROM event e WHERE e.log_no = a.log_no AND e.seq = a.seq) END FROM artifact a "
        "WHERE a.log_no = {} AND a.seq >= {} AND mod(a.seq, {}::bigint) = {}",
        unpieced_bytes_max, work.log.log_no, work.log.from, jobs, job)));
    FileCounts mine;
    std::vector<LeftFile> left;
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, connection.next(row));
      if (!more) break;
      ++mine.looked_at;
      check_file(work, row, mine, left);
    }
    const std::lock_guard lock(mutex);
    counts.looked_at += mine.looked_at;
    counts.files += mine.files;
    counts.bytes += mine.bytes;
    counts.unread.insert(counts.unread.end(), mine.unread.begin(), mine.unread.end());
    work.left.insert(work.left.end(), left.begin(), left.end());
    return success();
  });
}

Status check_unknown_files(const FileWork& work, FileCounts& counts) {
  namespace fs = std::filesystem;
  counts.unknown = 0;
  std::error_code error;
  std::vector<std::string> batch;
  fs::recursive_directory_iterator entry(work.root.path(), error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const bool at_top = entry.depth() == 0;
    if (entry->is_directory(error) && !entry->is_symlink(error)) {
      // Skips appends in flight and unfinished uploads.
      if (at_top && (entry->path().filename() == "staging" || entry->path().filename() == "uploads")) {
        entry.disable_recursion_pending();
      }
      continue;
    }
    batch.push_back(entry->path().lexically_relative(work.root.path()).string());
    if (batch.size() < paths_a_query) continue;
    RETURN_IF_ERROR(check_batch(work, batch, counts));
    batch.clear();
  }
  if (error) counts.unread.push_back(fmt::format("{}: {}", work.root.path(), error.message()));
  return check_batch(work, batch, counts);
}

}  // namespace muniment::verify
