#include "adapters/mcp/record_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "adapters/mcp/proxy_limits.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {
namespace {

constexpr std::chrono::milliseconds companion_wait{1};

// Returns the parameters with references in place of their placeholders.
std::string filled_in(std::string_view params, const std::vector<std::string>& references) {
  std::string out;
  std::size_t next = 0;
  for (const char c : params) {
    if (c == reference_mark && next < references.size()) {
      out += references[next++];
    } else {
      out += c;
    }
  }
  return out;
}

Errc code_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Errc::system_error); ++i) {
    if (name_of(static_cast<Errc>(i)) == name) return static_cast<Errc>(i);
  }
  return Errc::invalid_argument;
}

}  // namespace

void RecordQueue::add(RecordRequest request) {
  const Time now = std::chrono::steady_clock::now();
  const Time due = now + (request.may_wait ? companion_wait : std::chrono::milliseconds(0));
  Entry entry{std::move(request), ++serial_, due, now + proxy::record_patience};
  entry.references.resize(entry.request.artifacts.size());
  entries_.push_back(std::move(entry));
}

void RecordQueue::step() {
  link_.step();
  if (link_.connection() != connection_ || !link_.connected()) abandon_given_up();
  if (link_.connected() && link_.connection() != connection_) {
    connection_ = link_.connection();
    for (Entry& entry : entries_) entry.sent = entry.artifacts_sent = false;
  }
  send_all();
  link_.flush();
  while (const auto line = link_.next_line()) take_reply(*line);
  send_all();  // sends requests that waited for an artifact
  link_.flush();
  expire();
}

std::optional<CompletedRequest> RecordQueue::next_completed() {
  if (completed_.empty()) return std::nullopt;
  CompletedRequest first = std::move(completed_.front());
  completed_.pop_front();
  return first;
}

int RecordQueue::wait_ms() const {
  if (!completed_.empty()) return 0;
  if (entries_.empty()) return -1;
  if (!entries_.back().sent && std::chrono::steady_clock::now() < entries_.back().due) return 1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(entries_.front().expires - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

void RecordQueue::send_all() {
  if (!link_.connected() || link_.connection() != connection_) return;
  bool turn = true;
  for (Entry& entry : entries_) {
    if (entry.sent) continue;
    if (&entry == &entries_.back() && std::chrono::steady_clock::now() < entry.due) return;
    if (!entry.artifacts_sent) send_artifacts(entry);
    turn = turn && entry.stored == entry.references.size();
    if (!turn) continue;
    entry.sent = true;
    link_.send(fmt::format("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"{}\",\"params\":{}}}\n", entry.serial,
                           entry.request.method, filled_in(entry.request.params, entry.references)));
  }
}

void RecordQueue::send_artifacts(Entry& entry) {
  entry.artifacts_sent = true;
  for (std::size_t i = 0; i < entry.references.size(); ++i) {
    if (!entry.references[i].empty()) continue;
    const DraftArtifact& artifact = entry.request.artifacts[i];
    json::Writer params;
    params.begin_object().member("run_id", entry.request.run_id).member("mime_type", artifact.mime_type);
    params.member("body_bytes", artifact.bytes.size()).end_object();
    link_.send(fmt::format("{{\"jsonrpc\":\"2.0\",\"id\":\"{}/{}\",\"method\":\"artifact.put\",\"params\":{}}}\n",
                           entry.serial, i, params.text()));
    link_.send(artifact.bytes);
  }
}

void RecordQueue::take_reply(const std::string& line) {
  const auto document = json::parse(std::string_view(line));
  if (!document) return;
  const json::Value reply = document->root();
  const std::string id = reply["id"].string_or("");
  const std::size_t slash = id.find('/');
  const std::uint64_t serial = std::strtoull(id.c_str(), nullptr, 10);
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [serial](const Entry& one) { return one.serial == serial; });
  if (entry == entries_.end()) return take_late_reply(serial, slash == std::string::npos && !reply["error"]);
  if (const json::Value error = reply["error"]) {
    complete(entry, Error(code_of(error["data"]["code"].string_or("")), error["message"].string_or("refused")));
  } else if (slash == std::string::npos) {
    complete(entry, success());
  } else {
    take_stored(*entry, std::strtoull(id.c_str() + slash + 1, nullptr, 10), reply["result"]);
  }
}

void RecordQueue::take_late_reply(std::uint64_t serial, bool done) {
  auto given_up = given_up_.extract(serial);
  if (!given_up) return;
  Status outcome = done ? success() : Error(Errc::invalid_argument, "it was refused");
  completed_.push_back({std::move(given_up.mapped()), std::move(outcome), false, true});
}

void RecordQueue::abandon_given_up() {
  for (auto& [serial, request] : std::exchange(given_up_, {}))
    completed_.push_back({std::move(request), Error(Errc::unavailable, link_.problem()), true, true});
}

void RecordQueue::take_stored(Entry& entry, std::size_t index, const json::Value& result) {
  if (index >= entry.references.size() || !entry.references[index].empty()) return;
  DraftArtifact& artifact = entry.request.artifacts[index];
  entry.references[index] = reference_json(artifact, result["artifact_id"].string_or(""), result["hash"].string_or(""),
                                           result["size_bytes"].as_int().value_or(0));
  std::string().swap(artifact.bytes);
  ++entry.stored;
}

void RecordQueue::complete(std::deque<Entry>::iterator entry, Status outcome) {
  RecordRequest request = std::move(entry->request);
  request.params = filled_in(request.params, entry->references);
  entries_.erase(entry);
  completed_.push_back({std::move(request), std::move(outcome)});
}

// All entries have the same time limit, so the first expires first.
void RecordQueue::expire() {
  const auto now = std::chrono::steady_clock::now();
  const bool unreachable = link_.state() == DaemonLink::State::unreachable;
  while (!entries_.empty() && (unreachable || now >= entries_.front().expires)) {
    const bool silent = link_.connected();
    const Entry& first = entries_.front();
    const bool in_doubt = first.sent;
    if (in_doubt) given_up_[first.serial] = {first.request.method, {}, {}, {}, first.request.token, false};
    complete(entries_.begin(),
             Error(silent ? Errc::deadline_exceeded : Errc::unavailable,
                   silent ? fmt::format("the daemon has not answered within {} s", proxy::record_patience.count())
                          : link_.problem()));
    completed_.back().in_doubt = in_doubt;
  }
}

}  // namespace muniment::cli
