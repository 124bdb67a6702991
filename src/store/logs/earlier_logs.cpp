#include "store/logs/earlier_logs.hpp"

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/limits.hpp"

namespace muniment::store {
namespace {

// Returns the predecessor of the reader's log, or nullptr.
Result<std::unique_ptr<EarlierLog>> log_before(Reader& reader, const std::string& data) {
  ASSIGN_OR_RETURN(const auto first, reader.event_at(0));
  if (!first || first->type != "log.restored" || !first->body) return std::unique_ptr<EarlierLog>();
  ASSIGN_OR_RETURN(const json::Document parsed, json::parse(*first->body));
  const json::Value body = parsed.root();
  const std::int64_t log_no = body["log_no"].as_int().value_or(0);
  const auto log_id = parse_uuid(body["log_id"].string_or(""));
  // Numbers decrease with each step, so the recursion ends.
  if (!log_id || log_no < 1 || log_no >= reader.log_no()) {
    return Error(Errc::corrupt,
                 fmt::format("log {} begins with a log.restored that names no log before it. Run muniment-verify",
                             reader.log_no()));
  }
  auto log = std::make_unique<EarlierLog>();
  log->place = reader.place();
  log->place.recorded = nullptr;  // the tree of the current log
  log->place.log_no = static_cast<std::int16_t>(log_no);
  log->folder = log_folder(data, log->place.log_no);
  log->place.archive = log->folder + "/archive";
  log->log_id = *log_id;
  log->size = body["size"].as_int().value_or(0);
  log->place.size = log->size;
  log->root = hash_from_hex(body["root"].string_or(""));
  log->checkpoint = body["checkpoint"].string_or("");
  return log;
}

}  // namespace

Result<EarlierLogs> read_earlier_logs(Reader& reader, const std::string& data) {
  EarlierLogs logs;
  Reader* of = &reader;
  while (true) {
    ASSIGN_OR_RETURN(std::unique_ptr<EarlierLog> before, log_before(*of, data));
    if (!before) return logs;
    of = &reader.of(before->place);
    logs.push_back(std::move(before));
  }
}

Result<std::shared_ptr<Run>> find_run(EarlierLog& log, Reader& reader, std::string_view run_id) {
  if (log.runs.size() > limits::runs_in_memory_max) log.runs.trim(limits::runs_in_memory_max / 2, log.size);
  return log.runs.find_or_load(run_id, [&]() -> Result<std::shared_ptr<Run>> {
    ASSIGN_OR_RETURN(std::shared_ptr<Run> run, reader.of(log.place).load_run(run_id));
    if (run) run->closed_log = log.place.log_no;
    return run;
  });
}

}  // namespace muniment::store
