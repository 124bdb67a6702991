#include "store/run_follower.hpp"

#include <map>

#include "base/json.hpp"
#include "base/jsonb_size.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t labels_stored_bytes_max = 65'000;  // run.labels, as jsonb prints it

// RFC 7386 for labels, whose values are scalars: null removes. Labels that would not fit the table
// any more stay as they were.
std::string merge_labels(const std::string& labels, const json::Value& changes) {
  if (!changes.is(json::Kind::object)) return labels;
  const auto before = json::parse(labels);
  json::Writer out;
  out.begin_object();
  if (before) {
    for (const json::Value member : before->root()) {
      if (!changes[member.key()]) out.raw_member(member.key(), member.source());
    }
  }
  for (const json::Value change : changes) {
    if (!change.is(json::Kind::null)) out.raw_member(change.key(), change.source());
  }
  out.end_object();
  const auto after = json::parse(out.text());
  return after && json::jsonb_bytes_max(after->root()) <= labels_stored_bytes_max ? out.text() : labels;
}

RunRow started_row(const events::Event& event, const json::Value& body) {
  RunRow row;
  row.run_no = event.run_no;
  row.run_id = event.run_id;
  row.first_seq = event.seq;
  row.status = "open";
  row.origin = event.origin;
  row.owner = event.actor;
  row.agent = body["agent"]["name"].string_or("");
  row.goal = body["goal"].as_string();
  row.labels = merge_labels("{}", body["labels"]);
  row.parent = body["parent"]["run_id"].as_string();
  row.external_id = body["external_id"].as_string();
  row.started_at = event.recorded_at;
  return row;
}

std::string halt_json(const events::Event& event, const json::Value& body) {
  json::Writer out;
  out.begin_object();
  for (const json::Value member : body) out.raw_member(member.key(), member.source());
  out.member("seq", event.seq).member("recorded_at", format_time(event.recorded_at)).end_object();
  return std::move(out).text();
}

}  // namespace

void fold_run_row(std::optional<RunRow>& row, const events::Event& event) {
  const std::string_view text = event.body ? std::string_view(*event.body) : std::string_view("{}");
  const auto parsed = json::parse(text);
  const json::Value body = parsed ? parsed->root() : json::Value();
  if (event.type == "run.started") {
    row = started_row(event, body);
  } else if (!row) {
    return;
  } else if (event.type == "run.ended") {
    row->status = "ended";
    row->outcome = body["outcome"].as_string();
    row->ended_at = event.recorded_at;
  } else if (event.type == "run.halted") {
    row->status = "halted";
    row->halt = halt_json(event, body);
  } else if (event.type == "run.resumed") {
    row->status = "open";
    row->outcome.reset();
    row->ended_at.reset();
    row->halt.reset();
  } else if (event.type == "run.annotated") {
    row->labels = merge_labels(row->labels, body["labels"]);
  }
}

RunFollower::RunFollower(Options options, const Tail& tail) : Follower("run", {"run.*"}, std::move(options), tail) {}

Result<FollowedRows> RunFollower::apply(const std::vector<EventPtr>& events, Reader& reader) {
  std::map<std::int64_t, std::optional<RunRow>> rows;
  for (const EventPtr& event : events) {
    auto found = rows.find(event->run_no);
    if (found == rows.end()) {
      std::optional<RunRow> before;
      if (event->type != "run.started") {
        ASSIGN_OR_RETURN(before, reader.run_by_no(event->run_no));
      }
      found = rows.emplace(event->run_no, std::move(before)).first;
    }
    fold_run_row(found->second, *event);
  }
  FollowedRows followed;
  for (auto& [run_no, row] : rows) {
    if (row) followed.runs.push_back(*std::move(row));
  }
  return followed;
}

}  // namespace muniment::store
