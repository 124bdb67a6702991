#include "verify/tables/passages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/ids.hpp"
#include "verify/log/parallel.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t passages_at_once = 1'024;  // passages of a document that are read at once, to bound memory

struct PassageSpan {
  std::int64_t number = 0, start = 0, end = 0;
  std::string hash;
};

// Adjacent passages of one revision.
struct RevisionPart {
  std::int64_t seq = -1;
  std::string name, path;
  std::int64_t text_start = 0;  // offset in the file
  std::vector<PassageSpan> spans;
};

// check_files reports a file that is missing or cannot be read.
void check_part(const FileWork& work, const RevisionPart& part) {
  if (part.spans.empty() || part.path.empty()) return;
  const std::int64_t from = part.spans.front().start;
  std::int64_t to = from;
  for (const PassageSpan& span : part.spans) to = std::max(to, span.end);
  const auto bytes = work.root.read_span(part.path, part.text_start + from, to - from);
  if (!bytes) return;
  for (const PassageSpan& span : part.spans) {
    const bool inside =
        span.start >= from && span.end >= span.start && span.start - from <= static_cast<std::int64_t>(bytes->size());
    const std::string_view text = inside
                                      ? std::string_view(*bytes).substr(static_cast<std::size_t>(span.start - from),
                                                                        static_cast<std::size_t>(span.end - span.start))
                                      : std::string_view();
    const std::string hash = to_hex(sha256(text));
    if (hash == span.hash) continue;
    work.findings.add(
        {Check::passage, part.seq, std::string(log_run_id),
         fmt::format("{}#p{}, bytes {} to {} with sha256 {}", part.name, span.number, span.start, span.end, span.hash),
         fmt::format("{}: {} bytes with sha256 {}", part.path, text.size(), hash)});
  }
}

}  // namespace

Status check_passages(const FileWork& work, unsigned jobs) {
  ASSIGN_OR_RETURN(const auto tables, work.snapshot.holder().integer(
                                          "SELECT count(*) FROM pg_class WHERE oid = to_regclass('public.chunk')"));
  if (tables.value_or(0) == 0) return success();
  return in_parallel(jobs, [&](unsigned job) -> Status {
    ASSIGN_OR_RETURN(Connection connection, work.snapshot.join());
    RETURN_IF_ERROR(connection.start_copy(fmt::format(
        "SELECT c.seq, c.number, c.start_byte, c.end_byte, c.hash, d.corpus || '/' || d.document, coalesce(a.path, ''), "
        "CASE WHEN d.text_artifact_id IS NULL THEN d.start_byte ELSE 0 END "
        "FROM chunk c JOIN document d ON d.log_no = c.log_no AND d.seq = c.seq "
        "LEFT JOIN artifact a ON a.artifact_id = coalesce(d.text_artifact_id, d.artifact_id) "
        "WHERE c.log_no = {} AND d.corpus <> 'run' AND mod(c.seq, {}::bigint) = {} ORDER BY c.seq, c.number",
        work.log.log_no, jobs, job)));
    RevisionPart part;
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, connection.next(row));
      if (!more) break;
      if (row.integer(0) != part.seq || part.spans.size() == passages_at_once) {
        check_part(work, part);
        part = {row.integer(0), row.text(5), row.text(6), row.integer(7), {}};
      }
      part.spans.push_back({row.integer(1), row.integer(2), row.integer(3), row.hex(4)});
    }
    check_part(work, part);
    return success();
  });
}

}  // namespace muniment::verify
