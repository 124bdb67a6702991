// audit.archive: moves the bodies of a sealed partition from the database into files. Each call works for a limited
// time.
#include <algorithm>

#include "audit/archiver.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/services.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::chrono::seconds at_a_time{2};

}  // namespace

Result<Answer> audit_archive(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(check_admin(call, "archive"));
  RETURN_IF_ERROR(call.begin_writing());
  const Deadline until = std::min(call.deadline, Deadline(std::chrono::steady_clock::now() + at_a_time));
  ASSIGN_OR_RETURN(
      const audit::ArchiveProgress progress,
      call.services.archiver.advance(*call.reader, call.params["partition"].as_int(), call.caller.actor, until));
  json::Writer out;
  out.begin_object()
      .member("partition", progress.partition.number)
      .member("from_seq", progress.partition.first_seq)
      .member("to_seq", progress.partition.last_seq)
      .member("exported", progress.exported)
      .member("checked", progress.checked)
      .member("archived", progress.partition.archived)
      .end_object();
  return Answer(Reply{std::move(out).text(), {}});
}

}  // namespace muniment::gateway::methods
