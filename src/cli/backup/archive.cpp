#include "cli/backup/archive.hpp"

#include <fmt/format.h>

#include "base/crypto/sha256.hpp"
#include "base/files/body_bundle.hpp"
#include "base/tile_path.hpp"
#include "cli/export/connection.hpp"
#include "client/output.hpp"
#include "store/logs/log_place.hpp"

namespace muniment::cli {
namespace {

enum ArchivedColumn : std::size_t { archived_seq, archived_salt, archived_hash };

std::string archive_below(std::int16_t log_no) { return store::log_folder(".", log_no).substr(1) + "/archive"; }

// Returns whether the file itself is at fault, unlike for errors of the disk or of permissions.
bool is_damage(Errc code) { return code == Errc::not_found || code == Errc::corrupt || code == Errc::too_large; }

std::string problem_of(const Error& error, const std::string& path) {
  if (error.code == Errc::not_found) return "the file is missing";
  return error.message.starts_with(path + ": ") ? error.message.substr(path.size() + 2) : error.message;
}

// Checks an event whose row has no body; returns the problem, or empty if the file has the body.
std::string problem_of(const ExportFields& row, std::int64_t seq, const BodyBundle& bundle) {
  const std::optional<ArchivedBody>& body = bundle[static_cast<std::size_t>(seq % tile_width)];
  if (!body) return fmt::format("the body of event {} is missing from the file", seq);
  const bool is_its =
      view(body->salt) == row[archived_salt] && view(sha256({view(body->salt), body->body})) == row[archived_hash];
  return is_its ? "" : fmt::format("the body of event {} does not match its hash", seq);
}

class ArchiveCheck {
 public:
  ArchiveCheck(const std::string& data, const ArchivedPartition& partition, ExportConnection& rows,
               CheckedArchive& found)
      : partition_(partition), folder_(data + archive_below(partition.log_no)), rows_(rows), found_(found) {}

  Status run(Progress& progress, std::uint64_t& done) {
    RETURN_IF_ERROR(rows_.start(fmt::format(
        "SELECT e.seq, e.salt, e.body_hash FROM event e WHERE e.log_no = {} AND e.seq >= {} AND e.seq < {} AND e.salt IS NOT NULL AND e.body IS NULL ORDER BY e.seq",
        partition_.log_no, partition_.first_file * tile_width, (partition_.last_file + 1) * tile_width)));
    RETURN_IF_ERROR(next());
    for (std::int64_t file = partition_.first_file; file <= partition_.last_file; ++file) {
      RETURN_IF_ERROR(check(file));
      progress.at(++done);
    }
    return success();
  }

 private:
  Status next() {
    ASSIGN_OR_RETURN(more_, rows_.next(row_));
    if (more_) seq_ = export_integer(row_[archived_seq].value_or(""));
    return success();
  }

  Status check(std::int64_t file) {
    const auto bundle = read_bodies(folder_, file);
    if (!bundle && !is_damage(bundle.error().code)) return bundle.error();
    std::string problem = bundle ? "" : problem_of(bundle.error(), folder_ + "/" + bodies_path(file));
    for (; more_ && seq_ / tile_width == file;) {
      if (problem.empty()) problem = problem_of(row_, seq_, *bundle);
      RETURN_IF_ERROR(next());
    }
    if (problem.empty()) {
      ++found_.files;
    } else {
      found_.damaged.push_back({archived_path(partition_.log_no, file), std::move(problem), true});
    }
    return success();
  }

  const ArchivedPartition& partition_;
  const std::string folder_;
  ExportConnection& rows_;
  CheckedArchive& found_;
  ExportFields row_;
  bool more_ = false;  // `row_` holds the row of event `seq_`
  std::int64_t seq_ = 0;
};

}  // namespace

std::string archived_path(std::int16_t log_no, std::int64_t file) {
  return (archive_below(log_no) + "/" + bodies_path(file)).substr(1);
}

Result<std::vector<ArchivedPartition>> archived_partitions(const std::string& uri, std::int16_t log_no) {
  ASSIGN_OR_RETURN(ExportConnection connection, ExportConnection::open(uri));
  RETURN_IF_ERROR(connection.start(fmt::format(
      "SELECT log_no, first_seq, last_seq FROM archived_partition WHERE log_no <= {} ORDER BY 1, 2", log_no)));
  std::vector<ArchivedPartition> partitions;
  ExportFields row;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return partitions;
    const auto number = [&](std::size_t column) { return export_integer(row[column].value_or("")); };
    partitions.push_back({static_cast<std::int16_t>(number(0)), number(1) / tile_width, number(2) / tile_width});
  }
}

Result<CheckedArchive> check_archive(const std::string& uri, const std::vector<ArchivedPartition>& partitions,
                                     const std::string& data) {
  CheckedArchive found;
  if (partitions.empty()) return found;
  std::uint64_t files = 0, done = 0;
  for (const ArchivedPartition& partition : partitions)
    files += static_cast<std::uint64_t>(partition.last_file - partition.first_file + 1);
  Progress progress("archive", files);
  ASSIGN_OR_RETURN(ExportConnection rows, ExportConnection::open(uri));
  for (const ArchivedPartition& partition : partitions)
    RETURN_IF_ERROR(ArchiveCheck(data, partition, rows, found).run(progress, done));
  return found;
}

}  // namespace muniment::cli
