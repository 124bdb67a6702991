#include "store/tables/runs.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/json/json.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t contents_max = 65'536;  // limit for one run; beyond it Postgres is queried

// Mixes the input, because clients choose it and must not be able to choose slots. 0 marks an empty slot.
std::uint64_t mixed(std::uint64_t high, std::uint64_t low) {
  std::uint64_t value = high ^ (low * 0x9e3779b97f4a7c15ull);
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ull;
  value ^= value >> 32;
  return value == 0 ? 1 : value;
}

}  // namespace

std::uint64_t fingerprint(const Uuid& id) {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::memcpy(&high, id.bytes.data(), 8);
  std::memcpy(&low, id.bytes.data() + 8, 8);
  return mixed(high, low);
}

std::uint64_t fingerprint(std::string_view name) { return mixed(std::hash<std::string_view>{}(name), name.size()); }

std::uint64_t fingerprint(std::string_view step_id, const Hash& bytes) {
  std::uint64_t high = 0;
  std::memcpy(&high, bytes.data(), 8);
  return mixed(high, std::hash<std::string_view>{}(step_id));
}

void apply_to_view(RunView& view, const events::Event& event) {
  if (!event.type.starts_with("run.")) return;
  const std::string_view text = event.body ? std::string_view(*event.body) : std::string_view("{}");
  const auto parsed = json::parse(text);
  const json::Value body = parsed ? parsed->root() : json::Value();
  if (event.type == "run.started") {
    view.status = RunStatus::open;
    view.owner = event.actor;
    view.origin = event.origin;
    view.parent = body["parent"]["run_id"].string_or("");
    view.run_no = event.run_no;
    view.first_seq = event.seq;
  } else if (event.type == "run.ended") {
    view.status = RunStatus::ended;
  } else if (event.type == "run.halted") {
    view.status = RunStatus::halted;
    if (view.halt && view.halt->seq >= 0)
      return;  // the first reason is kept; a fail-stop halt (seq -1) is the same one
    view.halt = Halt{body["code"].string_or("SYSTEM_ERROR"), body["reason"].string_or(""),
                     body["pointer"].string_or(""), event.recorded_at, event.seq};
  } else if (event.type == "run.resumed") {
    view.status = RunStatus::open;
    view.halt.reset();
  }
}

bool Fingerprints::maybe_has(std::uint64_t wanted) const {
  if (slots_.empty()) return false;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = wanted & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) return false;
    if (slots_[i] == wanted) return true;
  }
}

void Fingerprints::add(std::uint64_t wanted) {
  if ((count_ + 1) * 4 > slots_.size() * 3) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = wanted & mask;
  while (slots_[i] != 0) {
    if (slots_[i] == wanted) return;
    i = (i + 1) & mask;
  }
  slots_[i] = wanted;
  ++count_;
}

void Fingerprints::grow() {
  std::vector<std::uint64_t> old = std::move(slots_);
  slots_.assign(old.empty() ? 16 : old.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint64_t value : old) {
    if (value == 0) continue;
    std::size_t i = value & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = value;
  }
}

void LastNumbered::add(std::uint64_t thing, std::int64_t position, std::int64_t decided) {
  if (last_.size() >= things_max_) {
    std::erase_if(last_, [&](const auto& entry) { return entry.second < decided; });
    forgotten_below_ = std::max(forgotten_below_, decided);
  }
  last_[thing] = position;
}

bool LastNumbered::any_since(std::uint64_t thing, std::int64_t asked_at, std::int64_t next) const {
  if (asked_at >= next) return false;
  if (asked_at < forgotten_below_) return true;
  const auto found = last_.find(thing);
  return found != last_.end() && found->second >= asked_at && found->second < next;
}

RunView Run::view() const {
  std::lock_guard lock(mutex_);
  return view_;
}

void Run::publish(RunView view) {
  std::lock_guard lock(mutex_);
  view_ = std::move(view);
  fail_stopped_.store(view_.halt && view_.halt->seq < 0, std::memory_order_release);
}

void Run::fail_stop(Halt halt) {
  std::lock_guard lock(mutex_);
  if (view_.halt) return;
  halt.seq = -1;
  view_.status = RunStatus::halted;
  view_.halt = std::move(halt);
  fail_stopped_.store(true, std::memory_order_release);
}

bool Run::maybe_stored(std::string_view step_id, const Hash& hash) const {
  std::lock_guard lock(mutex_);
  return !contents_known_ || contents_.maybe_has(fingerprint(step_id, hash));
}

void Run::stored(std::string_view step_id, const Hash& hash) {
  std::lock_guard lock(mutex_);
  if (!contents_known_) return;
  contents_.add(fingerprint(step_id, hash));
  if (contents_.size() <= contents_max) return;
  contents_known_ = false;
  contents_ = {};
}

void Run::begins() {
  std::lock_guard lock(mutex_);
  contents_known_ = true;
}

Error halted_error(const Run& run) {
  const RunView view = run.view();
  Error error(Errc::run_halted, "run " + run.run_id + " is halted. See: muniment recover " + run.run_id);
  error.run_id = run.run_id;
  if (view.halt) {
    error.message = view.halt->code + " since " + format_time(view.halt->at).substr(11, 8) + "Z (seq " +
                    std::to_string(view.halt->seq) +
                    "): " + (view.halt->reason.empty() ? "the reason was erased" : view.halt->reason) +
                    ". See: muniment recover " + run.run_id;
    error.pointer = view.halt->pointer;
  }
  return error;
}

Error ended_error(const Run& run) {
  Error error(Errc::conflict, "run " + run.run_id + " has ended. Start it again with run.start and reopen: true");
  error.run_id = run.run_id;
  return error;
}

Error closed_error(const Run& run) {
  Error error(Errc::conflict,
              "run " + run.run_id + " is in log " + std::to_string(run.closed_log) +
                  ", which was restored and is closed: it can be read, but "
                  "not appended to. Start a run of another name with run.start, and name this one in `continues`");
  error.run_id = run.run_id;
  return error;
}

std::shared_ptr<Run> RunDirectory::find(std::string_view run_id) const {
  std::lock_guard lock(mutex_);
  const auto found = runs_.find(run_id);
  return found == runs_.end() ? nullptr : found->second;
}

std::shared_ptr<Run> RunDirectory::insert(std::shared_ptr<Run> run) {
  std::lock_guard lock(mutex_);
  return runs_.try_emplace(run->run_id, run).first->second;
}

Result<std::shared_ptr<Run>> RunDirectory::find_or_load(std::string_view run_id,
                                                        const std::function<Result<std::shared_ptr<Run>>()>& load) {
  if (auto run = find(run_id)) return run;
  std::lock_guard lock(loading_[Hasher()(run_id) % loading_.size()]);
  if (auto run = find(run_id)) return run;
  ASSIGN_OR_RETURN(std::shared_ptr<Run> run, load());
  return run ? insert(std::move(run)) : nullptr;
}

std::size_t RunDirectory::size() const {
  std::lock_guard lock(mutex_);
  return runs_.size();
}

void RunDirectory::trim(std::size_t keep, std::int64_t decided_seq) {
  std::lock_guard lock(mutex_);
  for (auto it = runs_.begin(); it != runs_.end() && runs_.size() > keep;) {
    const bool held = it->second.use_count() > 1 || it->first == log_run_id;
    const bool decided = it->second->view().first_seq < decided_seq;
    it = held || !decided ? std::next(it) : runs_.erase(it);
  }
}

}  // namespace muniment::store
