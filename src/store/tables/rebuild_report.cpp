#include "store/tables/rebuild_report.hpp"

#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "store/read/pq.hpp"
#include "store/read/reader.hpp"
#include "store/tables/followed_rows.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t page_events_max = 4'096;
constexpr std::size_t page_bytes_max = 8u << 20;
constexpr int report_rest_per_work = 2;  // rests twice as long as it works: uses a third of one core
constexpr std::int64_t held_events_max =
    20'000;  // events read while the follower waits, unless the log grows faster than it can be read
constexpr int rounds_max = 4;

class ReportRebuild {
 public:
  explicit ReportRebuild(const LogPlace& place)
      : place_(place), reader_(place), writer_(place.uri, DatabaseRole::writer) {}

  Result<std::vector<RebuiltTable>> run(const std::vector<std::string>& tables) {
    RETURN_IF_ERROR(guarded(writer_, "preparing a rebuild", [&] {
      pqxx::work work(link());
      for (const std::string_view table : report_tables)
        work.exec(fmt::format("CREATE TEMP TABLE {0} (LIKE public.{0} INCLUDING ALL)", table));
      work.commit();
      return Done{};
    }));
    for (int round = 0; round < rounds_max; ++round) {
      ASSIGN_OR_RETURN(const std::int64_t position, reader_.follower_position("report"));
      if (round > 0 && position - next_seq_ <= held_events_max) break;
      while (next_seq_ < position) RETURN_IF_ERROR(read_and_rest(position));
    }
    return compare_and_replace(tables);
  }

 private:
  pqxx::connection& link() { return *writer_.impl().link; }

  Status read_and_rest(std::int64_t end) {
    const auto started = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const std::vector<EventPtr> page, page_before(end));
    RETURN_IF_ERROR(once(writer_, "rebuilding the report tables", [&] {
      pqxx::work work(link());
      replay(work, page);
      work.commit();
      return Done{};
    }));
    std::this_thread::sleep_for((std::chrono::steady_clock::now() - started) * report_rest_per_work);
    return success();
  }

  Result<std::vector<EventPtr>> page_before(std::int64_t end) {
    EventFilter filter;
    filter.from_seq = next_seq_;
    filter.to_seq = end - 1;
    ASSIGN_OR_RETURN(auto events, reader_.events(filter, page_events_max, page_bytes_max));
    if (events.empty())
      return Error(Errc::corrupt, fmt::format("events from {} on are missing. Run muniment-verify", next_seq_));
    std::vector<EventPtr> page;
    for (events::Event& event : events) page.push_back(std::make_shared<const events::Event>(std::move(event)));
    return page;
  }

  void replay(pqxx::transaction_base& work, const std::vector<EventPtr>& page) {
    OpenSpans open = open_spans(writer_, work, place_.log_no, ended_keys(page));
    write_followed_report(writer_, work, place_.log_no, fold_report(page, std::move(open)));
    next_seq_ = page.back()->seq + 1;
    for (const EventPtr& event : page) {
      if (!event->salt) blank_.insert(event->seq);
      if (event->type == "event.redacted") announced_.push_back(event->seq);
    }
  }

  // Prevents erasures until the transaction ends. Returns true if an event that was read with its body was erased.
  bool erased_meanwhile(pqxx::transaction_base& work) {
    hold_erasures(writer_, work, place_.log_no);
    for (
        const pqxx::row& row : query(
            writer_, work, "rebuild_report_erased",
            "SELECT e.seq FROM event a JOIN event e ON e.log_no = $1 AND e.seq = (a.body->>'seq')::bigint "
            "WHERE a.log_no = $1 AND (a.seq = ANY ($2::bigint[]) OR a.seq >= $3) AND a.type = 'event.redacted' AND e.salt IS NULL",
            Params().integer(place_.log_no).integers(announced_).integer(next_seq_))) {
      const std::int64_t seq = integer_of(row[0]);
      if (seq < next_seq_ && !blank_.contains(seq)) return true;
    }
    return false;
  }

  // Reads up to the follower's position and blocks the follower until the end.
  Result<std::vector<RebuiltTable>> compare_and_replace(const std::vector<std::string>& tables) {
    Status read = success();
    auto reports = once(writer_, "rebuilding the report tables", [&] {
      std::vector<RebuiltTable> compared;
      pqxx::work work(link());
      const pqxx::result row = query(writer_, work, "rebuild_report_hold",
                                     "SELECT next_seq FROM follower WHERE log_no = $1 AND name = 'report' FOR UPDATE",
                                     Params().integer(place_.log_no));
      const std::int64_t end = row.empty() ? 0 : integer_of(row[0][0]);
      while (next_seq_ < end) {
        auto page = page_before(end);
        if (!page) {
          read = std::move(page).error();
          return compared;
        }
        replay(work, *page);
      }
      if (erased_meanwhile(work)) {
        read =
            Error(Errc::conflict, "content was erased while the report tables were rebuilt. Start the rebuild again");
        return compared;
      }
      for (const std::string& table : tables) compared.push_back(compare(work, table));
      work.commit();
      return compared;
    });
    RETURN_IF_ERROR(read);
    return reports;
  }

  RebuiltTable compare(pqxx::transaction_base& work, const std::string& table) {
    const std::string made = fmt::format("SELECT * FROM pg_temp.{}", table);
    const std::string there = fmt::format("SELECT * FROM public.{} WHERE log_no = {}", table, place_.log_no);
    const auto count = [&](const std::string& rows) {
      return integer_of(work.exec("SELECT count(*) FROM (" + rows + ") counted")[0][0]);
    };
    RebuiltTable report;
    report.name = table;
    report.rows = count(made);
    report.missing = count(made + " EXCEPT " + there);
    report.unexpected = count(there + " EXCEPT " + made);
    if (report.equal()) return report;
    const std::string_view key = table == "report_run"    ? "log_no, run_no"
                                 : table == "report_span" ? "log_no, kind, seq"
                                                          : "log_no, type, seq";
    work.exec(fmt::format("DELETE FROM public.{0} WHERE ({1}) IN (SELECT {1} FROM ({2} EXCEPT {3}) differing)", table,
                          key, there, made));
    work.exec(fmt::format("INSERT INTO public.{} ({} EXCEPT {})", table, made, there));
    report.replaced = true;
    return report;
  }

  const LogPlace place_;
  Reader reader_;
  Connection writer_;
  std::int64_t next_seq_ = 0;
  std::set<std::int64_t> blank_;         // events without a body when they were read
  std::vector<std::int64_t> announced_;  // the event.redacted events that were read
};

}  // namespace

Result<std::vector<RebuiltTable>> rebuild_report(const LogPlace& place, const std::vector<std::string>& tables) {
  return ReportRebuild(place).run(tables);
}

}  // namespace muniment::store
