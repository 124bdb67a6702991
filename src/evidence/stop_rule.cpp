// Applies the stop rule: resolves, retries, and collects the events and halts of failures.
#include "evidence/stop_rule.hpp"

#include <algorithm>
#include <thread>

#include "base/json/json.hpp"
#include "base/process/failpoint.hpp"
#include "events/catalogue.hpp"
#include "evidence/pointer_follower.hpp"

namespace muniment::evidence {
namespace {

constexpr int attempts_max = 2;
constexpr std::size_t detail_bytes_max = 1'000;  // length of the detail of a failure

void write_hashes(json::Writer& out, const Resolution& found) {
  if (found.expected) out.member("expected", *found.expected);
  if (found.actual) out.member("actual", *found.actual);
}

std::string words_of(const Resolution& found) {
  return found.pointer + ": " + std::string(name_of(found.reason)) + ", " + found.detail.substr(0, detail_bytes_max);
}

std::string retried_body(const Wanted& wanted, const Resolution& found) {
  json::Writer out;
  out.begin_object().member("pointer", found.pointer).member("attempt", 1);
  if (!wanted.whose.empty()) out.member("run_id", wanted.whose);
  write_hashes(out, found);
  out.member("why", words_of(found)).end_object();
  return std::move(out).text();
}

std::string unresolved_body(const Wanted& wanted, const Resolution& found, bool critical, int attempts) {
  json::Writer out;
  out.begin_object();
  if (!wanted.whose.empty()) out.member("run_id", wanted.whose);
  out.member("pointer", found.pointer)
      .member("type", found.type())
      .member("id", found.parsed->name())
      .member("reason", std::string(name_of(found.reason)) + ": " + found.detail.substr(0, detail_bytes_max));
  if (!found.path.empty()) out.member("path", found.path);
  write_hashes(out, found);
  out.member("critical", critical).member("attempts", attempts).end_object();
  return std::move(out).text();
}

std::string halted_body(const Resolution& found) {
  json::Writer out;
  out.begin_object().member("code", "SYSTEM_ERROR").member("reason", words_of(found)).member("pointer", found.pointer);
  write_hashes(out, found);
  out.member("attempts", attempts_max).end_object();
  return std::move(out).text();
}

}  // namespace

const Outcome::Item* Outcome::damage() const {
  const auto found = std::ranges::find_if(
      items, [](const Item& item) { return item.critical && item.resolution.damaged() && item.resolution.parsed; });
  return found == items.end() ? nullptr : &*found;
}

// A span is critical if the whole is.
bool StopRule::is_critical(const Wanted& wanted, const Pointer& given) const {
  const Pointer pointer = given.canonical();
  return wanted.critical || needed_.contains(pointer.text) || needed_.contains(std::string(pointer.whole()));
}

// Collects the wanted pointers on which evidence, manifests and claims depend: from the catalogue, and
// from the events that it does not include yet.
Status StopRule::look_up_needed(const std::vector<Wanted>& wanted) {
  std::vector<std::string> asked;
  for (const Wanted& item : wanted) {
    const auto parsed =
        item.critical ? Result<Pointer>(Error(Errc::invalid_argument, "")) : parse_pointer(item.pointer);
    if (!parsed) continue;
    const Pointer pointer = parsed->canonical();
    asked.push_back(pointer.text);
    if (pointer.whole() != pointer.text) asked.emplace_back(pointer.whole());
  }
  if (asked.empty()) return success();
  // The tail is read before the catalogue; in the other order, a row that the follower adds between the two reads would
  // be missed.
  ASSIGN_OR_RETURN(const auto newer, pointers_not_yet_followed(tail_, reader_));
  ASSIGN_OR_RETURN(needed_, reader_.needed(asked));
  for (const store::PointerRow& row : newer) {
    if (row.run_id != log_run_id) needed_.insert(row.pointer);
  }
  ASSIGN_OR_RETURN(auto before, resolver_.needed_before(asked));
  needed_.merge(before);
  return success();
}

Result<Outcome> StopRule::resolve(const std::vector<Wanted>& wanted, bool with_text) {
  Outcome outcome;
  std::vector<bool> retried(wanted.size(), false);
  std::vector<std::string> pointers;
  for (const Wanted& item : wanted) pointers.push_back(item.pointer);
  RETURN_IF_ERROR(look_up_needed(wanted));
  RETURN_IF_ERROR(resolver_.read_ahead(pointers));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Outcome::Item item;
    const auto parsed = parse_pointer(wanted[i].pointer);
    item.critical = parsed && is_critical(wanted[i], *parsed);
    ASSIGN_OR_RETURN(item.resolution,
                     resolver_.resolve(wanted[i].pointer, item.critical ? Depth::whole : wanted[i].depth, with_text));
    // A target of a different owner is treated as if nothing depended on it.
    if (item.resolution.hidden) item.critical = wanted[i].critical;
    RETURN_IF_ERROR(check_run_named(wanted[i], item));
    outcome.items.push_back(std::move(item));
  }
  RETURN_IF_ERROR(excuse_mistakes(wanted, outcome));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // A halted run is not halted again, and gets no further events.
    const bool stands = wanted[i].run && wanted[i].run->view().status == store::RunStatus::halted;
    retried[i] = outcome.items[i].critical && outcome.items[i].resolution.damaged() && !stands;
  }
  if (std::ranges::find(retried, true) != retried.end()) {
    FAILPOINT("pointer.before_retry");
    std::this_thread::sleep_for(retry_pause);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!retried[i]) continue;
    Outcome::Item& item = outcome.items[i];
    outcome.events.push_back(event_in(wanted[i].run, "pointer.retried", retried_body(wanted[i], item.resolution)));
    ASSIGN_OR_RETURN(item.resolution, resolver_.resolve(wanted[i].pointer, Depth::whole, with_text));
  }
  RETURN_IF_ERROR(log_failures(wanted, retried, outcome));
  return outcome;
}

// Takes back the flag of pointers to targets that the log never had, unless something depends on them.
Status StopRule::excuse_mistakes(const std::vector<Wanted>& wanted, Outcome& outcome) {
  const auto is_unknown = [&](std::size_t i) {
    const Outcome::Item& item = outcome.items[i];
    return wanted[i].given && item.critical && item.resolution.parsed && item.resolution.never_recorded();
  };
  std::vector<Wanted> unknown;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (is_unknown(i)) unknown.push_back({.pointer = wanted[i].pointer, .run = nullptr});
  }
  if (unknown.empty()) return success();
  RETURN_IF_ERROR(look_up_needed(unknown));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!is_unknown(i)) continue;
    Outcome::Item& item = outcome.items[i];
    const Pointer pointer = item.resolution.parsed->canonical();
    // The whole may be needed, and a part that it never had is still a mistake.
    const bool named =
        needed_.contains(pointer.text) || (!item.resolution.beyond && needed_.contains(std::string(pointer.whole())));
    item.critical = named && !item.resolution.hidden;
  }
  return success();
}

// A caller without a run can resolve intact targets. A damaged critical target requires a run to halt, and a pointer
// that the caller flags as critical always requires one.
Status StopRule::check_run_named(const Wanted& wanted, const Outcome::Item& item) {
  if (!item.critical || wanted.run) return success();
  if (!wanted.critical && !item.resolution.damaged()) return success();
  return Error(Errc::invalid_argument,
               wanted.pointer + " is critical: set run_id to the run that halts if it does not resolve.");
}

// Each failure becomes an event of its run; the halt follows the run's last failure, if one was critical.
Status StopRule::log_failures(const std::vector<Wanted>& wanted, const std::vector<bool>& retried, Outcome& outcome) {
  std::vector<std::pair<std::shared_ptr<store::Run>, const Resolution*>> to_halt;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Outcome::Item& item = outcome.items[i];
    const std::shared_ptr<store::Run>& run = wanted[i].run;
    if (!item.resolution.damaged() || !item.resolution.parsed || !run) continue;
    if (run->view().status == store::RunStatus::halted) continue;
    outcome.events.push_back(
        event_in(run, "pointer.unresolved",
                 unresolved_body(wanted[i], item.resolution, item.critical, retried[i] ? attempts_max : 1)));
    const bool halts = retried[i] && wanted[i].may_halt && run->run_id != log_run_id;
    const bool first = std::ranges::none_of(to_halt, [&](const auto& entry) { return entry.first == run; });
    if (halts && first) to_halt.emplace_back(run, &item.resolution);
  }
  for (const auto& [run, damage] : to_halt) RETURN_IF_ERROR(halt(run, *damage, outcome));
  return success();
}

Status StopRule::halt(const std::shared_ptr<store::Run>& run, const Resolution& damage, Outcome& outcome) {
  PendingHalt pending;
  pending.halt = store::Halt{"SYSTEM_ERROR", words_of(damage), damage.pointer, clock_.now(), -1};
  pending.run_id = run->run_id;
  outcome.events.push_back(event_in(run, "run.halted", halted_body(damage)));
  const std::string parent_id = run->view().parent;
  if (!parent_id.empty()) {
    ASSIGN_OR_RETURN(const auto parent, runs_.find_or_load(parent_id, [&] { return reader_.load_run(parent_id); }));
    if (parent) {
      json::Writer body;
      body.begin_object().member("run_id", run->run_id).member("reason", words_of(damage)).end_object();
      outcome.events.push_back(event_in(parent, "child.halted", body.text()));
      outcome.events.back().if_open = true;
      outcome.events.back().with_previous = true;
    }
  }
  // The journal stores the events of this run as they would have been appended.
  for (const store::Addressed& item : outcome.events) {
    const bool concerns = item.run == run || item.run->run_id == parent_id;
    if (concerns)
      pending.events.push_back({item.run->run_id, item.event.type, item.event.body, item.event.event_id, item.if_open});
  }
  outcome.halts.push_back(std::move(pending));
  return success();
}

store::Addressed StopRule::event_in(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body) {
  store::Addressed item = daemon_event(run, type, std::move(body), make_uuid_v7(clock_.now()), true);
  item.by_daemon = true;
  item.unless_halted = true;  // if a request halts several runs, one that is halted already does not prevent the others
  return item;
}

}  // namespace muniment::evidence
