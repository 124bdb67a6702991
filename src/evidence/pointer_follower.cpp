// Extracts from claim, evidence and manifest events the pointers that these depend on.
#include "evidence/pointer_follower.hpp"

#include <algorithm>
#include <set>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "events/catalogue.hpp"
#include "evidence/pointer.hpp"

namespace muniment::evidence {
namespace {

constexpr std::string_view follower_name = "pointer";
// Something that rests on evidence is stored as this scheme and the evidence's id, which is no pointer for clients: its
// pointers are looked up when they are needed, also those of evidence in other runs.
constexpr std::string_view evidence_scheme = "evidence://";
constexpr std::size_t evidence_chain_max = 10'000;  // pieces of evidence that one run rests on
constexpr std::string_view left_out_key = "left_out";
constexpr std::size_t tail_events_max = 1 << 20;  // above the capacity of the tail
constexpr std::size_t newer_events_max = 10'000;

// A pointer to a part depends on the whole. The catalogue contains both, so that a damaged file is
// critical through either pointer.
void collect_pointer(std::string_view text, std::set<std::string>& out) {
  const auto parsed = parse_pointer(text);
  if (!parsed) return;
  const Pointer pointer = parsed->canonical();
  out.insert(pointer.text);
  out.insert(std::string(pointer.whole()));
}

std::string artifact_pointer(const std::string& run_id, const std::string& id) {
  return "artifact://" + run_id + "/" + id;
}

// A manifest names its parts by pointers, and its run's artifacts by artifact_id. Nothing depends on the parts that it
// lists as left out.
void collect_from_manifest(const json::Value& value, const std::string& run_id, std::set<std::string>& out) {
  if (value.is(json::Kind::string)) return collect_pointer(value.string_or(""), out);
  if (!value.is(json::Kind::object) && !value.is(json::Kind::array)) return;
  const auto artifact_id = value["artifact_id"].as_string();
  if (artifact_id) collect_pointer(artifact_pointer(run_id, *artifact_id), out);
  for (const json::Value member : value) {
    if (member.key() != left_out_key) collect_from_manifest(member, run_id, out);
  }
}

// Adds the pointers that a member of an event's body stands for.
void collect_named(events::Names names, const std::string& text, const std::string& run_id, std::string_view manifest,
                   std::set<std::string>& out) {
  switch (names) {
    case events::Names::pointer: return collect_pointer(text, out);
    case events::Names::artifact: return collect_pointer(artifact_pointer(run_id, text), out);
    case events::Names::manifest: return collect_pointer("manifest://" + text, out);
    case events::Names::evidence: {
      if (const auto id = parse_uuid(text)) out.insert(std::string(evidence_scheme) + id->text());
      return;
    }
    case events::Names::entries: {
      const auto document = json::parse(manifest);
      if (document) collect_from_manifest(document->root(), run_id, out);
      return;
    }
  }
}

// The types whose events make pointers critical.
const std::vector<std::string>& followed_types() {
  static const auto types = events::types_where([](const auto& type) { return !type.critical_for.empty(); });
  return types;
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
  const events::TypeInfo* const type = events::find_type(event.type);
  if (!event.body || type == nullptr || type->critical_for.empty()) return {};
  // Manifests outside a run are counted as recalls; no run can halt for anything else there.
  if (event.run_id == log_run_id && type->critical_for != "manifest") return {};
  const auto parsed = json::parse(*event.body);
  if (!parsed) return {};
  const json::Value body = parsed->root();
  const auto id = parse_uuid(body[std::string(type->critical_for) + "_id"].string_or(""));
  std::set<std::pair<std::string, Uuid>> needed;
  events::each_named(*type, body, [&](events::Names names, const std::string& text) {
    // A completed task rests on its evidence, which has no dependent of its own in the run.
    const auto dependent = id ? id : parse_uuid(text);
    if (!dependent) return;
    std::set<std::string> pointers;
    collect_named(names, text, event.run_id, manifest, pointers);
    for (const std::string& pointer : pointers) needed.emplace(pointer, *dependent);
  });
  std::vector<store::PointerRow> rows;
  for (const auto& [pointer, dependent] : needed)
    rows.push_back({pointer, std::string(type->critical_for), dependent, event.run_id, event.seq});
  return rows;
}

std::vector<std::string> pointers_of_evidence(const events::Event& event) {
  std::vector<std::string> own;
  std::vector<std::string> files;
  const auto parsed = event.body ? json::parse(*event.body) : Result<json::Document>(Error(Errc::not_found, ""));
  const events::TypeInfo* const type = events::find_type(event.type);
  if (!parsed || type == nullptr) return own;
  events::each_named(*type, parsed->root(), [&](events::Names names, const std::string& text) {
    if (names == events::Names::pointer) own.push_back(text);
    if (names == events::Names::artifact) files.push_back(artifact_pointer(event.run_id, text));
  });
  own.insert(own.end(), files.begin(), files.end());
  return own;
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
      if (std::ranges::find(followed_types(), event->type) != followed_types().end()) newer.push_back(event);
    }
  } else {
    // The follower is far behind, as after a long outage of Postgres: read the events from the table.
    store::EventFilter filter;
    filter.from_seq = followed;
    filter.types = followed_types();
    ASSIGN_OR_RETURN(auto events, reader.events(filter, newer_events_max));
    for (events::Event& event : events) newer.push_back(std::make_shared<const events::Event>(std::move(event)));
  }
  return pointers_of(newer, reader);
}

namespace {

using Needed = std::map<std::string, std::vector<store::PointerRow>>;

void add_needed(Needed& needed, store::PointerRow row) {
  auto& known = needed[row.pointer];
  const auto same = [&](const store::PointerRow& other) { return other.needed_id == row.needed_id; };
  if (std::ranges::none_of(known, same)) known.push_back(std::move(row));
}

// Returns the use of the evidence by which the run rests on it; nullopt: none is recorded.
Result<std::optional<store::EvidenceRow>> use_of_evidence(const store::Run& run, const Uuid& id,
                                                          store::Reader& reader) {
  const std::optional<std::string> nobody;
  ASSIGN_OR_RETURN(auto uses, reader.evidence_uses(id, run.run_id, nobody, 1));
  if (uses.empty()) {
    ASSIGN_OR_RETURN(uses, reader.evidence_uses(id, nobody, run.view().owner, 1));
  }
  if (uses.empty()) {
    ASSIGN_OR_RETURN(uses, reader.evidence_uses(id, nobody, nobody, 1));
  }
  return uses.empty() ? std::nullopt : std::optional(std::move(uses.front()));
}

// Replaces each piece of evidence by the pointers on which it rests, directly or through other evidence.
Status follow_evidence(const store::Run& run, const std::vector<store::PointerRow>& newer, store::Reader& reader,
                       Needed& needed) {
  std::vector<Uuid> pending;
  std::set<Uuid> seen;
  const auto take = [&](const std::string& pointer) {
    const auto id = parse_uuid(pointer.substr(evidence_scheme.size()));
    if (id && seen.insert(*id).second) pending.push_back(*id);
  };
  for (auto entry = needed.lower_bound(std::string(evidence_scheme));
       entry != needed.end() && entry->first.starts_with(evidence_scheme); entry = needed.erase(entry))
    take(entry->first);
  while (!pending.empty() && seen.size() <= evidence_chain_max) {
    const Uuid id = pending.back();
    pending.pop_back();
    ASSIGN_OR_RETURN(const auto use, use_of_evidence(run, id, reader));
    if (!use) continue;
    ASSIGN_OR_RETURN(std::vector<store::PointerRow> rows, reader.pointers_needed_by(id));
    std::ranges::copy_if(newer, std::back_inserter(rows), [&](const auto& row) { return row.needed_id == id; });
    std::erase_if(rows, [&](const store::PointerRow& row) { return row.run_id != use->run_id; });
    if (use->run_id == log_run_id && use->pointer) {
      std::set<std::string> pointers;
      collect_pointer(*use->pointer, pointers);
      for (const std::string& pointer : pointers) rows.push_back({pointer, "evidence", id, run.run_id, use->seq});
    }
    for (store::PointerRow& row : rows) {
      if (row.pointer.starts_with(evidence_scheme)) {
        take(row.pointer);
        continue;
      }
      row.run_id = run.run_id;
      add_needed(needed, std::move(row));
    }
  }
  if (pending.empty()) return success();
  return Error(Errc::too_large,
               "the run rests on more than " + std::to_string(evidence_chain_max) +
                   " pieces of evidence of other runs, which are not all checked. End it with another outcome.");
}

}  // namespace

Result<std::map<std::string, std::vector<store::PointerRow>>> pointers_needed_by(const store::Run& run,
                                                                                 const store::Tail& tail,
                                                                                 store::Reader& reader) {
  const std::string& run_id = run.run_id;
  Needed needed;
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
    if (row.run_id == run_id) add_needed(needed, row);
  }
  RETURN_IF_ERROR(follow_evidence(run, newer, reader, needed));
  return needed;
}

PointerFollower::PointerFollower(Options options, const store::Tail& tail)
    : Follower(std::string(follower_name), followed_types(), std::move(options), tail) {}

Result<store::FollowedRows> PointerFollower::apply(const std::vector<store::EventPtr>& events, store::Reader& reader) {
  ASSIGN_OR_RETURN(auto pointers, pointers_of(events, reader));
  return store::FollowedRows{{}, std::move(pointers)};
}

}  // namespace muniment::evidence
