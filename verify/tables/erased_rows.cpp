#include "verify/tables/erased_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <thread>

namespace muniment::verify {
namespace {

constexpr std::size_t seqs_a_query = 1'000;
constexpr std::chrono::seconds pause{1};

// Total time that the verifier waits for the daemon.
struct Patience {
  int pauses = 10;
};

#define MUNIMENT_ZEROS "repeat('0', 64)"

// Rows that the erasing transaction clears, so none may be visible.
constexpr std::string_view with_their_events =
    "SELECT seq, run_id, 'claim' FROM claim WHERE log_no = {0} AND seq IN ({1}) AND (text <> '' OR pointers <> '[]') "
    "UNION ALL SELECT seq, run_id, 'evidence' FROM evidence WHERE log_no = {0} AND seq IN ({1}) "
    "AND (type <> '' OR content::text IS DISTINCT FROM '{{}}' OR pointer IS NOT NULL OR validator_id IS NOT NULL OR task_id IS NOT NULL OR command_id IS NOT NULL OR hash <> " MUNIMENT_ZEROS
    ") "
    "UNION ALL SELECT seq, run_id, 'manifest' FROM manifest WHERE log_no = {0} AND seq IN ({1}) "
    "AND (salt IS NOT NULL OR manifest IS NOT NULL) "
    "UNION ALL SELECT seq, run_id, 'artifact' FROM artifact WHERE log_no = {0} AND seq IN ({1}) "
    "AND (metadata <> '{{}}' OR hash <> " MUNIMENT_ZEROS
    ") "
    "UNION ALL SELECT seq, run_id, 'evidence_link' FROM evidence_link WHERE log_no = {0} AND seq IN ({1}) "
    "UNION ALL SELECT seq, run_id, 'task_change' FROM task_change WHERE log_no = {0} AND seq IN ({1}) "
    "UNION ALL SELECT seq, run_id, 'task_evidence' FROM task_evidence WHERE log_no = {0} AND seq IN ({1})";

// Rows that a follower clears, possibly with a delay.
constexpr std::string_view of_followers =
    "SELECT seq, run_id, 'pointer' FROM pointer WHERE log_no = {0} AND seq IN ({1})";

// Events are erased a moment after their erasure is announced.
constexpr std::string_view of_events =
    "SELECT seq, '', 'event' FROM event WHERE log_no = {0} AND seq IN ({1}) AND salt IS NOT NULL";

Result<std::vector<Finding>> rows_of(Connection& connection, std::string_view sql, const Log& log,
                                     std::span<const std::int64_t> seqs) {
  std::vector<Finding> found;
  RETURN_IF_ERROR(connection.start_copy(fmt::format(fmt::runtime(sql), log.log_no, fmt::join(seqs, ","))));
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return found;
    // The content is not shown, because it was to be erased.
    found.push_back({Check::erasure, row.integer(0), row.text(1), "no erased content",
                     fmt::format("a row of {} that holds content", row.text(2))});
  }
}

// Returns the rows that remain after the daemon had time to clear them.
Result<std::vector<Finding>> lasting_rows(SharedSnapshot& snapshot, std::string_view sql, const Log& log,
                                          std::span<const std::int64_t> seqs, Patience& patience) {
  ASSIGN_OR_RETURN(std::vector<Finding> found, rows_of(snapshot.holder(), sql, log, seqs));
  while (!found.empty()) {
    ASSIGN_OR_RETURN(Connection now, snapshot.outside());
    ASSIGN_OR_RETURN(found, rows_of(now, sql, log, seqs));
    if (found.empty() || patience.pauses-- <= 0) break;
    std::this_thread::sleep_for(pause);
  }
  return found;
}

// Returns whether the daemon of this folder has an unfinished erasure: its journals exist until it is done.
bool is_under_way(const std::string& data) {
  if (data.empty()) return false;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/redactions", none)) {
    if (entry.path().extension() == ".json") return true;
  }
  return false;
}

Error under_way(const std::string& what, const std::string& data) {
  return Error(Errc::unavailable,
               fmt::format("an erasure is in progress: {} remain, and {}/redactions lists it as unfinished. "
                           "Verify again after it ends",
                           what, data));
}

Result<std::set<std::string>> runs_of(Connection& connection, const Log& log, const std::vector<std::int64_t>& seqs) {
  std::set<std::string> runs;
  for (std::size_t at = 0; at < seqs.size(); at += seqs_a_query) {
    RETURN_IF_ERROR(connection.start_copy(
        fmt::format("SELECT DISTINCT run_no FROM event WHERE log_no = {} AND seq IN ({})", log.log_no,
                    fmt::join(std::span(seqs).subspan(at, std::min(seqs_a_query, seqs.size() - at)), ","))));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, connection.next(row));
      if (!more) break;
      runs.insert(log.run_id(row.integer(0)));
    }
  }
  return runs;
}

template <typename Look>
Status each_part(const std::vector<std::int64_t>& seqs, Findings& findings, Look look) {
  for (std::size_t at = 0; at < seqs.size(); at += seqs_a_query) {
    ASSIGN_OR_RETURN(std::vector<Finding> found,
                     look(std::span(seqs).subspan(at, std::min(seqs_a_query, seqs.size() - at))));
    for (Finding& finding : found) findings.add(std::move(finding));
  }
  return success();
}

}  // namespace

Status check_erased_rows(SharedSnapshot& snapshot, const Log& log, const std::vector<std::int64_t>& erased,
                         const std::set<std::int64_t>& announced, const std::string& data, Findings& findings,
                         std::set<std::string>& erasing) {
  Patience patience;
  RETURN_IF_ERROR(
      each_part(erased, findings, [&](auto seqs) { return rows_of(snapshot.holder(), with_their_events, log, seqs); }));
  RETURN_IF_ERROR(each_part(erased, findings,
                            [&](auto seqs) { return lasting_rows(snapshot, of_followers, log, seqs, patience); }));
  std::vector<std::int64_t> there;
  std::ranges::set_difference(announced, std::set(erased.begin(), erased.end()), std::back_inserter(there));
  ASSIGN_OR_RETURN(erasing, runs_of(snapshot.holder(), log, there));
  Findings lasting;
  RETURN_IF_ERROR(
      each_part(there, lasting, [&](auto seqs) { return lasting_rows(snapshot, of_events, log, seqs, patience); }));
  if (lasting.count() > 0 && is_under_way(data))
    return under_way(fmt::format("{} events that are announced as erased", lasting.count()), data);
  findings.add_all(lasting);
  return success();
}

Status check_left_files(const FileWork& work, const std::string& data) {
  for (Patience patience; !work.left.empty() && patience.pauses > 0; --patience.pauses) {
    std::erase_if(work.left, [&](const LeftFile& file) { return !work.root.exists(file.path); });
    if (!work.left.empty()) std::this_thread::sleep_for(pause);
  }
  if (!work.left.empty() && data.empty()) {
    return Error(
        Errc::unavailable,
        fmt::format(
            "{} files of erased content remain, the first {}. Give --data DIR to check whether an erasure is in progress",
            work.left.size(), work.left.front().path));
  }
  if (!work.left.empty() && is_under_way(data))
    return under_way(fmt::format("{} files of erased content", work.left.size()), data);
  for (const LeftFile& file : work.left)
    work.findings.add(
        {Check::erasure, file.seq, file.run_id, "no file of erased content", work.root.path() + "/" + file.path});
  return success();
}

}  // namespace muniment::verify
