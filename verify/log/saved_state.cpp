#include "verify/log/saved_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json/json.hpp"
#include "verify/log/hashing.hpp"
#include "verify/log/run_facts.hpp"

namespace muniment::verify {
namespace {

constexpr std::string_view format_name = "muniment-verify-state";
constexpr std::array<std::string_view, 4> stand_names{"not_started", "open", "ended", "halted"};

Error bad(std::string_view why) { return {Errc::corrupt, fmt::format("not a saved state: {}", why)}; }

Status parse_head(const json::Value& run, SavedState& state) {
  const auto run_no = run["run_no"].as_int(), next = run["next_run_seq"].as_int();
  const Text run_id = text_of(run, "run_id"), stand = text_of(run, "stand");
  const auto run_hash = from_hex(text_of(run, "run_hash").value_or(""));
  const auto which = std::find(stand_names.begin(), stand_names.end(), stand.value_or(""));
  if (!run_no || !next || !run_id || !run_hash || (!run_hash->empty() && run_hash->size() != sizeof(Hash)) ||
      which == stand_names.end()) {
    return bad("a run lacks a member");
  }
  Head& head = state.heads[*run_no];
  head.next_run_seq = *next;
  head.run_hash = *run_hash;
  head.stand = static_cast<Stand>(which - stand_names.begin());
  head.promise_seq = run["promise_seq"].as_int().value_or(-1);
  head.promise_artifact = text_of(run, "promise_artifact").value_or("");
  if (*run_no != 0) state.run_ids.emplace(*run_no, *run_id);
  state.run_no_max = std::max(state.run_no_max, *run_no);
  return success();
}

}  // namespace

std::string json_of(const SavedState& state) {
  json::Writer out;
  out.begin_object()
      .member("format", format_name)
      .member("version", 1)
      .member("tool", "muniment-verify " MUNIMENT_VERSION);
  out.member("saved_at", format_time(state.saved_at)).member("log_id", state.log_id.text()).member("size", state.size);
  out.member("root", to_hex(state.root)).member("edge", to_hex(state.edge)).member("note", state.note);
  out.key("keys").begin_array();
  for (const VerifierKey& key : state.keys) out.string(key.text());
  out.end_array().key("rotations").begin_array();
  for (const Rotation& rotation : state.rotations) {
    out.begin_object()
        .member("seq", rotation.seq)
        .member("recorded_at", format_time(rotation.recorded_at))
        .member("body", rotation.body)
        .end_object();
  }
  out.end_array().key("adopted").begin_array();
  for (const Adoption& adoption : state.adopted) {
    out.begin_object()
        .member("said_at", adoption.said_at)
        .member("from", adoption.from)
        .member("to", adoption.to)
        .end_object();
  }
  out.end_array().key("runs").begin_array();
  for (const auto& [run_no, head] : state.heads) {
    const auto run_id = state.run_ids.find(run_no);
    out.begin_object()
        .member("run_no", run_no)
        .member("run_id", run_id == state.run_ids.end() ? std::string(log_run_id) : run_id->second);
    out.member("next_run_seq", head.next_run_seq).member("run_hash", to_hex(head.run_hash));
    out.member("stand", stand_names[static_cast<std::size_t>(head.stand)]);
    if (head.promise_seq >= 0)
      out.member("promise_seq", head.promise_seq).member("promise_artifact", head.promise_artifact);
    out.end_object();
  }
  out.end_array().end_object();
  return std::move(out).text() + '\n';
}

Result<SavedState> parse_saved_state(std::string_view text) {
  const auto document = json::parse(text);
  if (!document) return bad(document.error().message);
  const json::Value root = document->root();
  if (text_of(root, "format") != format_name || root["version"].as_int() != 1) return bad("another format or version");
  const auto log_id = parse_uuid(text_of(root, "log_id").value_or(""));
  const auto size = root["size"].as_int();
  const auto hash = hash_from_hex(text_of(root, "root").value_or(""));
  const auto edge = from_hex(text_of(root, "edge").value_or(""));
  const auto saved_at = parse_time(text_of(root, "saved_at").value_or(""));
  if (!log_id || !size || *size < 0 || !hash || !edge || !saved_at)
    return bad("log_id, size, root, edge or saved_at is missing");
  const auto tree = Tree::from_edge(*size, *edge);
  if (!tree || tree->root() != *hash) return bad("its edge does not lead to its root");
  SavedState state;
  state.log_id = *log_id;
  state.size = *size;
  state.root = *hash;
  state.edge = *edge;
  state.note = text_of(root, "note").value_or("");
  state.saved_at = *saved_at;
  for (const json::Value key : root["keys"]) {
    ASSIGN_OR_RETURN(VerifierKey parsed, VerifierKey::parse(key.string_or("")));
    state.keys.push_back(std::move(parsed));
  }
  for (const json::Value rotation : root["rotations"]) {
    state.rotations.push_back({rotation["seq"].as_int().value_or(-1),
                               parse_time(text_of(rotation, "recorded_at").value_or("")).value_or(Time{}),
                               text_of(rotation, "body").value_or("")});
  }
  for (const json::Value adoption : root["adopted"]) {
    state.adopted.push_back({adoption["said_at"].as_int().value_or(-1), adoption["from"].as_int().value_or(-1),
                             adoption["to"].as_int().value_or(-1)});
  }
  for (const json::Value run : root["runs"]) RETURN_IF_ERROR(parse_head(run, state));
  return state;
}

}  // namespace muniment::verify
