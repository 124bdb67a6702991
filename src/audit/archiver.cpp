// Archives sealed partitions: exports, checks, announces, and removes bodies.
#include "audit/archiver.hpp"

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/process/failpoint.hpp"
#include "base/tile_path.hpp"
#include "evidence/halt_journal.hpp"

namespace muniment::audit {
namespace {

constexpr std::chrono::seconds others_wait{30};
constexpr std::chrono::seconds tiles_wait{20};
constexpr std::chrono::seconds announcement_wait{60};
constexpr std::size_t partitions_max = 1 << 20;  // exceeds the number of partitions that a log's seq can have

std::int64_t bundles_of(const store::SealedPartition& partition) {
  return (partition.last_seq + 1 - partition.first_seq) / tile_width;
}

std::int64_t first_bundle(const store::SealedPartition& partition) { return partition.first_seq / tile_width; }

// Reads the bodies of 256 events from their rows.
Result<BodyBundle> bodies_of_rows(store::Reader& reader, std::int64_t index) {
  store::EventFilter span;
  span.from_seq = index * tile_width;
  span.to_seq = span.from_seq + tile_width - 1;
  ASSIGN_OR_RETURN(std::vector<events::Event> events, reader.events(span, static_cast<std::size_t>(tile_width)));
  BodyBundle bundle;
  for (events::Event& event : events) {
    auto& body = bundle.emplace_back();
    if (!event.salt) continue;
    body = ArchivedBody{*event.salt, std::move(event.body).value_or("")};
    if (sha256({view(body->salt), body->body}) == event.body_hash) continue;
    return Error(Errc::corrupt,
                 fmt::format("event {}: its body does not match its hash. Run muniment-verify", event.seq));
  }
  if (bundle.size() == static_cast<std::size_t>(tile_width)) return bundle;
  return Error(Errc::corrupt,
               fmt::format("the log is missing some of the events {} to {}: found {}. Run muniment-verify",
                           span.from_seq, *span.to_seq, bundle.size()));
}

bool over(Deadline until) { return std::chrono::steady_clock::now() >= until; }

}  // namespace

Archiver::Archiver(store::LogPlace place, Clock& clock, store::Appender& appender, store::RunDirectory& runs,
                   store::Tail& tail, Publisher& publisher, store::BodyArchive& archive)
    : place_(std::move(place)),
      clock_(clock),
      appender_(appender),
      runs_(runs),
      tail_(tail),
      publisher_(publisher),
      archive_(archive),
      redactor_(place_.uri, store::DatabaseRole::redactor, place_.connections) {}

Result<ArchiveProgress> Archiver::advance(store::Reader& reader, std::optional<std::int64_t> number,
                                          const std::string& by, Deadline until) {
  const std::lock_guard one_at_a_time(mutex_);
  ASSIGN_OR_RETURN(store::SealedPartition partition, sealed(reader, number));
  // The bundles of entries are part of the archive.
  RETURN_IF_ERROR(publisher_.make_durable(partition.last_seq, until + tiles_wait));
  if (number_ != partition.number) exported_ = checked_ = 0;
  number_ = partition.number;
  RETURN_IF_ERROR(export_until(reader, partition, until));
  RETURN_IF_ERROR(check_until(reader, partition, until));
  if (checked_ == bundles_of(partition)) {
    RETURN_IF_ERROR(begin(reader, partition, by));
    FAILPOINT("archive.before_swap");
    RETURN_IF_ERROR(store::take_bodies_out(redactor_, place_.log_no, partition.number, others_wait));
    FAILPOINT("archive.after_swap");
    partition.archived = true;
    log_info("archived a partition", {{"partition", std::to_string(partition.number)}});
  }
  return ArchiveProgress{partition, exported_ * tile_width, checked_ * tile_width};
}

Result<store::SealedPartition> Archiver::sealed(store::Reader& reader, std::optional<std::int64_t> number) const {
  ASSIGN_OR_RETURN(const auto partition, store::sealed_partition(reader, number));
  if (!partition && !number) return Error(Errc::not_found, "every full partition is archived already");
  if (!partition) {
    ASSIGN_OR_RETURN(const std::int64_t full, store::full_partitions(reader));
    if (*number <= full)
      return Error(Errc::not_found,
                   fmt::format("partition {} is not full yet: only a full one can be archived", *number));
    return Error(Errc::not_found,
                 full == 0 ? fmt::format("there is no partition {}, only partition 0, which is not full yet", *number)
                           : fmt::format("there is no partition {}: 0 to {} are full, and {} is being filled", *number,
                                         full - 1, full));
  }
  if (partition->archived)
    return Error(Errc::conflict, fmt::format("partition {} is archived already", partition->number));
  RETURN_IF_ERROR(check_holds(reader, *partition));
  return *partition;
}

Status Archiver::check_holds(store::Reader& reader, const store::SealedPartition& partition) const {
  ASSIGN_OR_RETURN(const auto held, store::held_run(reader, partition));
  if (!held) return success();
  Error error(Errc::conflict,
              fmt::format("run {} has events in partition {} and is under a legal hold: nothing was archived. "
                          "Lift it with run.annotate {{legal_hold: false}}",
                          *held, partition.number));
  error.run_id = *held;
  return error;
}

// A hold that was acknowledged before the announcement prevents it; a later hold follows it in the log, too.
Status Archiver::begin(store::Reader& reader, const store::SealedPartition& partition, const std::string& by) {
  ASSIGN_OR_RETURN(const auto closed, appender_.erasure_gate().close(
                                          tail_, std::chrono::steady_clock::now() + announcement_wait, "archived"));
  RETURN_IF_ERROR(check_holds(reader, partition));
  FAILPOINT("archive.before_announce");
  return announce(reader, partition, by);
}

Status Archiver::export_until(store::Reader& reader, const store::SealedPartition& partition, Deadline until) {
  for (; exported_ < bundles_of(partition) && !over(until); ++exported_) {
    const std::int64_t index = first_bundle(partition) + exported_;
    if (archive_.has(index)) continue;
    RETURN_IF_ERROR(archive_.write(index, [&] { return bodies_of_rows(reader, index); }));
    FAILPOINT("archive.after_file");
  }
  return success();
}

// Writes a file again that differs from the rows, as after a power cut.
Status Archiver::check_until(store::Reader& reader, const store::SealedPartition& partition, Deadline until) {
  if (exported_ < bundles_of(partition)) return success();
  for (; checked_ < bundles_of(partition) && !over(until); ++checked_) {
    const std::int64_t index = first_bundle(partition) + checked_;
    ASSIGN_OR_RETURN(const BodyBundle rows, bodies_of_rows(reader, index));
    auto file = archive_.read(index);
    if (file && *file == rows) continue;
    RETURN_IF_ERROR(archive_.write(index, [&] { return bodies_of_rows(reader, index); }));
  }
  return success();
}

// log.archived is appended before the bodies are removed, as for an erasure. After a crash in between, the next daemon
// finds the event and does not append it again.
Status Archiver::announce(store::Reader& reader, const store::SealedPartition& partition, const std::string& by) {
  store::EventFilter said;
  said.run_no = 0;
  said.types = {"log.archived"};
  ASSIGN_OR_RETURN(const std::vector<events::Event> before, reader.events(said, partitions_max));
  for (const events::Event& event : before) {
    if (!event.body) continue;
    const auto body = json::parse(*event.body);
    if (body && body->root()["partition"].as_int() == partition.number) return success();
  }
  json::Writer body;
  body.begin_object()
      .member("partition", partition.number)
      .member("from_seq", partition.first_seq)
      .member("to_seq", partition.last_seq)
      .member("by", by)
      .end_object();
  store::AppendRequest request;
  request.actor = by;
  request.events.push_back(evidence::daemon_event(runs_.find(log_run_id), "log.archived", std::move(body).text(),
                                                  make_uuid_v7(clock_.now()), true));
  auto receipts = store::append_and_wait(appender_, std::move(request), announcement_wait);
  return receipts ? success() : Status(std::move(receipts).error());
}

}  // namespace muniment::audit
