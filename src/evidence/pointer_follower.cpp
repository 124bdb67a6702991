// Extracts from claim, evidence and manifest events the pointers that these depend on.
#include "evidence/pointer_follower.hpp"

#include <algorithm>
#include <set>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "evidence/pointer.hpp"

namespace muniment::evidence {
namespace {

constexpr std::string_view follower_name = "pointer";
const std::vector<std::string> followed_types = {"claim.recorded", "evidence.recorded", "manifest.recorded"};
constexpr std::string_view left_out_key = "left_out";
constexpr std::size_t tail_events_max = 1 << 20;  // above the capacity of the tail
constexpr std::size_t newer_events_max = 10'000;

// A pointer to a part depends on the whole. The catalogue contains both, so that a damaged file is
// critical through either pointer.
void collect_pointer(std::string_view text, std::set<std::string>& out) {
  const auto parsed = parse_pointer(text);
  if (!parsed) return;
  out.insert(parsed->text);
  out.insert(std::string(parsed->whole()));
}

// A manifest names its parts by pointers, and its run's artifacts by artifact_id. Nothing depends on the parts that it
// lists as left out.
void collect_from_manifest(const json::Value& value, const std::string& run_id, std::set<std::string>& out) {
  if (value.is(json::Kind::string)) return collect_pointer(value.string_or(""), out);
  if (!value.is(json::Kind::object) && !value.is(json::Kind::array)) return;
  const auto artifact_id = value["artifact_id"].as_string();
  if (artifact_id) collect_pointer("artifact://" + run_id + "/" + *artifact_id, out);
  for (const json::Value member : value) {
    if (member.key() != left_out_key) collect_from_manifest(member, run_id, out);
  }
}

}  // namespace

std::vector<std::string> pointers_of_manifest(const json::Value& manifest, const std::string& run_id) {
  std::set<std::string> pointers;
  collect_from_manifest(manifest, run_id, pointers);
  if (const auto base = parse_uuid(manifest["base"].string_or(""))) pointers.insert("manifest://" + base->text());
  // A pointer to the whole is redundant beside a pointer to a part: the check of the part includes it.
  std::erase_if(pointers, [&](const std::string& pointer) {
    const auto part = pointers.lower_bound(pointer + "#");
    return part != pointers.end() && part->starts_with(pointer + "#") && !pointer.starts_with("ev://");
  });
  return {pointers.begin(), pointers.end()};
}

std::vector<store::PointerRow> pointers_of(const events::Event& event, std::string_view manifest) {
  // Events outside a run, including packs that the daemon builds without a run, have no run to halt.
  if (!event.body || event.run_id == log_run_id) return {};
  const auto parsed = json::parse(*event.body);
  if (!parsed) return {};
  const json::Value body = parsed->root();
  std::set<std::string> pointers;
  std::string needed_by;
  std::optional<Uuid> id;
  if (event.type == "claim.recorded") {
    needed_by = "claim";
    id = parse_uuid(body["claim_id"].string_or(""));
    for (const json::Value pointer : body["pointers"]) collect_pointer(pointer.string_or(""), pointers);
  } else if (event.type == "evidence.recorded") {
    needed_by = "evidence";
    id = parse_uuid(body["evidence_id"].string_or(""));
    if (body["pointer"]) collect_pointer(body["pointer"].string_or(""), pointers);
  } else if (event.type == "manifest.recorded") {
    needed_by = "manifest";
    id = parse_uuid(body["manifest_id"].string_or(""));
    const auto document = json::parse(manifest);
    if (document) collect_from_manifest(document->root(), event.run_id, pointers);
    if (const auto base = body["base"].as_string()) collect_pointer("manifest://" + *base, pointers);
  }
  if (!id) return {};
  std::vector<store::PointerRow> rows;
  for (const std::string& pointer : pointers) rows.push_back({pointer, needed_by, *id, event.run_id, event.seq});
  return rows;
}

Result<std::vector<store::PointerRow>> pointers_of(const std::vector<store::EventPtr>& events, store::Reader& reader) {
  std::vector<store::PointerRow> rows;
  for (const store::EventPtr& event : events) {
    std::string manifest;
    if (event->type == "manifest.recorded" && event->body) {
      const auto parsed = json::parse(*event->body);
      const auto id = parsed ? parse_uuid(parsed->root()["manifest_id"].string_or("")) : std::nullopt;
      if (id) {
        ASSIGN_OR_RETURN(const auto row, reader.manifest(*id));
        if (row && row->manifest) manifest = *row->manifest;
      }
    }
    for (store::PointerRow& row : pointers_of(*event, manifest)) rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<store::PointerRow>> pointers_not_yet_followed(const store::Tail& tail, store::Reader& reader) {
  ASSIGN_OR_RETURN(const std::int64_t followed, reader.follower_position(follower_name));
  std::vector<store::EventPtr> newer;
  if (const auto held = tail.read(followed, tail_events_max)) {
    for (const store::EventPtr& event : *held) {
      if (std::ranges::find(followed_types, event->type) != followed_types.end()) newer.push_back(event);
    }
  } else {
    // The follower is far behind, as after a long outage of Postgres: read the events from the table.
    store::EventFilter filter;
    filter.from_seq = followed;
    filter.types = followed_types;
    ASSIGN_OR_RETURN(auto events, reader.events(filter, newer_events_max));
    for (events::Event& event : events) newer.push_back(std::make_shared<const events::Event>(std::move(event)));
  }
  return pointers_of(newer, reader);
}

Result<std::map<std::string, std::vector<store::PointerRow>>> pointers_needed_by(const std::string& run_id,
                                                                                 const store::Tail& tail,
                                                                                 store::Reader& reader) {
  std::map<std::string, std::vector<store::PointerRow>> needed;
  // The tail is read before the catalogue; in the other order, a row that the follower adds between the two reads would
  // be missed.
  ASSIGN_OR_RETURN(const auto newer, pointers_not_yet_followed(tail, reader));
  std::optional<std::string> after;
  while (true) {
    ASSIGN_OR_RETURN(const auto rows, reader.pointers_of_run(run_id, after, limits::page_items_max));
    for (const store::PointerRow& row : rows) needed[row.pointer].push_back(row);
    if (rows.size() < limits::page_items_max) break;
    after = rows.back().pointer;
  }
  for (const store::PointerRow& row : newer) {
    const auto same = [&](const store::PointerRow& known) { return known.needed_id == row.needed_id; };
    auto& known = needed[row.pointer];
    if (row.run_id == run_id && std::ranges::none_of(known, same)) known.push_back(row);
    if (known.empty()) needed.erase(row.pointer);
  }
  return needed;
}

PointerFollower::PointerFollower(Options options, const store::Tail& tail)
    : Follower(std::string(follower_name), followed_types, std::move(options), tail) {}

Result<store::FollowedRows> PointerFollower::apply(const std::vector<store::EventPtr>& events, store::Reader& reader) {
  ASSIGN_OR_RETURN(auto pointers, pointers_of(events, reader));
  return store::FollowedRows{{}, std::move(pointers)};
}

}  // namespace muniment::evidence
