#include "store/run_follower.hpp"

#include <map>
#include <optional>

#include "base/json.hpp"
#include "base/jsonb_size.hpp"
#include "store/run_row.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t labels_stored_bytes_max = 65'000;  // run.labels, as jsonb prints it

bool fit_the_table(const std::string& labels) {
  const auto parsed = json::parse(labels);
  return parsed && json::jsonb_bytes_max(parsed->root()) <= labels_stored_bytes_max;
}

}  // namespace

RunFollower::RunFollower(Options options, const Tail& tail) : Follower("run", {"run.*"}, std::move(options), tail) {}

Result<FollowedRows> RunFollower::apply(const std::vector<EventPtr>& events, Reader& reader) {
  std::map<std::int64_t, std::optional<RunRow>> rows;
  for (const EventPtr& event : events) {
    auto found = rows.find(event->run_no);
    if (found == rows.end()) {
      std::optional<RunRow> before = RunRow();
      if (event->type != "run.started") {
        ASSIGN_OR_RETURN(before, reader.run_by_no(event->run_no));
      }
      found = rows.emplace(event->run_no, std::move(before)).first;
    }
    if (!found->second) continue;  // the run _log has no row
    std::string labels = found->second->labels;
    apply_to_row(*found->second, *event);
    // Labels that the table cannot hold must not stop the follower for good.
    if (!fit_the_table(found->second->labels)) found->second->labels = std::move(labels);
  }
  FollowedRows followed;
  for (auto& [run_no, row] : rows) {
    if (row) followed.runs.push_back(*std::move(row));
  }
  return followed;
}

}  // namespace muniment::store
