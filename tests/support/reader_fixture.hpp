// The fixture of the Reader's tests: a log whose events are inserted by plain SQL.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/postgres/partitions.hpp"
#include "store/read/reader.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::store::reader_test {

using events::Event;

inline constexpr std::int64_t start_micros = 1'700'000'000'000'000;
inline constexpr std::int64_t second = 1'000'000;

// A database with log 1, its first partitions, and a reader of the log.
class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() : uri_(test::fresh_database()), reader_({uri_, 1}) {
    Connection connection(uri_, DatabaseRole::writer);
    const auto made = ensure_partitions(connection, 1, 0);
    EXPECT_TRUE(made) << made.error().message;
  }

  void run(const std::string& sql) { test::run_sql(uri_, sql); }

  // Adds the event with seq next_seq_, recorded next_seq_ seconds after the start.
  void add(std::int64_t run_no, std::int64_t run_seq, const std::string& type, const std::string& body = "{}",
           std::int64_t at_second = -1) {
    const std::int64_t seq = next_seq_++;
    const std::int64_t micros = start_micros + (at_second < 0 ? seq : at_second) * second;
    run("INSERT INTO event (log_no, seq, run_no, run_seq, recorded_at, origin, type, schema_version, "
        "step_id, actor, event_id, body_hash, salt, body, run_hash) VALUES (1, " +
        std::to_string(seq) + ", " + std::to_string(run_no) + ", " + std::to_string(run_seq) + ", '" +
        format_time(Time{micros}) + "', 2, '" + type + "', 1, " + (type.starts_with("step.") ? "'s1'" : "NULL") +
        ", 'uid:" + std::to_string(1000 + run_no) + "', '00000000-0000-7000-8000-" + to_hex(std::string(5, '\0')) +
        std::string(1, "0123456789abcdef"[(seq >> 4) & 15]) + std::string(1, "0123456789abcdef"[seq & 15]) +
        "', sha256('h'), sha256('s'), '" + body + "', sha256('" + std::to_string(seq) + "'))");
  }
  void start_run(std::int64_t run_no) {
    add(run_no, 0, "run.started",
        R"({"run_id": "r)" + std::to_string(run_no) +
            R"(", "agent": {"name": "tester"}, "goal": "to test", "labels": {"team": "a"}, "parent": {"run_id": "r0", "run_seq": 3}})");
  }

  std::vector<std::int64_t> seqs(const EventFilter& filter, std::size_t limit = 100) {
    auto events = reader_.events(filter, limit);
    EXPECT_TRUE(events) << events.error().message;
    std::vector<std::int64_t> out;
    if (events) {
      for (const Event& event : *events) out.push_back(event.seq);
    }
    return out;
  }
  static Time at(std::int64_t seconds) { return Time{start_micros + seconds * second}; }

  const std::string uri_;
  Reader reader_;
  std::int64_t next_seq_ = 0;
};

using Seqs = std::vector<std::int64_t>;

// Two interleaved runs and the run _log: seq 0 belongs to _log, odd seqs to r1, even ones to r2.
class TwoRuns : public ReaderTest {
 protected:
  TwoRuns() {
    add(0, 0, "log.started");
    start_run(1);
    start_run(2);
    for (std::int64_t n = 1; n <= 4; ++n) {
      add(1, n, n % 2 == 0 ? "tool.called" : "tool.returned", R"({"n": )" + std::to_string(n) + "}");
      add(2, n, n == 4 ? "toolXcalled" : "step.started");
    }
  }
};

}  // namespace muniment::store::reader_test
