// audit.archive: a sealed partition's bodies leave the database, some seconds of it a call.
#include "audit/archiver.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::chrono::seconds at_a_time{2};

json::Writer progress_of(const audit::ArchiveProgress& progress) {
  json::Writer out;
  out.begin_object()
      .member("partition", progress.partition.number)
      .member("from_seq", progress.partition.first_seq)
      .member("to_seq", progress.partition.last_seq)
      .member("exported", progress.exported)
      .member("checked", progress.checked)
      .member("archived", progress.partition.archived);
  return out;
}

}  // namespace

Result<Answer> audit_archive(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(check_admin(call, "archive"));
  const Deadline until = std::min(call.deadline, Deadline(std::chrono::steady_clock::now() + at_a_time));
  ASSIGN_OR_RETURN(const audit::ArchiveProgress progress,
                   call.services.archiver.advance(*call.reader, call.params["partition"].as_int(), until));
  if (!progress.partition.archived) return Answer(Reply{std::move(progress_of(progress).end_object()).text(), {}});
  ASSIGN_OR_RETURN(const auto log_run, load_run(call, log_run_id));
  if (!log_run) return Error(Errc::system_error, "the daemon's own run _log is not known");
  json::Writer body;
  body.begin_object()
      .member("partition", progress.partition.number)
      .member("from_seq", progress.partition.first_seq)
      .member("to_seq", progress.partition.last_seq)
      .member("by", call.caller.actor)
      .end_object();
  PendingAppend append;
  append.request.actor = call.caller.actor;
  append.request.events.push_back({log_run, make_event(call, *log_run, "log.archived", std::move(body).text()), false});
  append.finish = [progress](Services&, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    return Reply{std::move(progress_of(progress).member("seq", receipts.front().seq).end_object()).text(), {}};
  };
  return Answer(std::move(append));
}

}  // namespace muniment::gateway::methods
