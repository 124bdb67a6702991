// Tests of the statements of the followers: they read the rows that they concern, whatever the tables hold and whatever
// the planner believes of them.
#include "store/tables/followed_rows.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/postgres_fixture.hpp"

namespace muniment::store {
namespace {

using test::run_sql;

constexpr std::int64_t rows_per_change_max = 40;  // a document, its corpus, its chunks, and index entries of dead rows

// Returns a database whose tables have `rows` rows each, of which their statistics know nothing.
std::string filled_database(int rows) {
  static std::map<int, std::string> filled;
  std::string& uri = filled[rows];
  if (!uri.empty()) return uri;
  uri = test::fresh_database();
  const auto table = [&](const std::string& name, const std::string& columns, const std::string& values) {
    run_sql(uri, "ALTER TABLE " + name + " SET (autovacuum_enabled = false); INSERT INTO " + name + " (" + columns +
                     ") SELECT " + values + " FROM generate_series(1, " + std::to_string(rows) + ") n");
  };
  const std::string hash = "sha256(n::text::bytea)";
  run_sql(uri, "INSERT INTO log_head (log_no, log_id) VALUES (1, gen_random_uuid())");
  run_sql(uri, "INSERT INTO corpus VALUES (1, 'notes', 'uid:1', 1, 1)");
  table(
      "document",
      "log_no, seq, corpus, document, revision, hash, artifact_id, start_byte, size_bytes, mime_type, format, language, title, "
      "tags, source, sources, trust, document_time, recorded_at, chunker, first_chunk, chunks",
      "1, n, 'notes', 'd' || n, 'r1', " + hash +
          ", gen_random_uuid(), 0, 9, 't', 'text', 'en', 't', '{}', 's' || n, ARRAY['s' || n], 'trusted', now(), now(), 'c', n, 1");
  table("chunk", "log_no, chunk_id, seq, number, start_byte, end_byte, hash", "1, n, n, 0, 0, 9, " + hash);
  table("feedback", "log_no, seq, pointer, value, actor, chunk_id", "1, 1000000 + n, 'p', 1, 'uid:1', n");
  table("pointer", "log_no, pointer, needed_by, needed_id, run_id, seq",
        "1, 'p' || n, 'claim', gen_random_uuid(), 'r' || n, n");
  table("report_run",
        "log_no, run_no, events, last_seq, last_event_at, messages, errors, model_calls, model_errors, tool_calls, "
        "tool_errors, steps, commands, command_errors",
        "1, n, 1, n, now(), 0, 0, 0, 0, 0, 0, 0, 0, 0");
  table("report_span_tool", "log_no, kind, seq, run_no, key, origin, began_seq, began_at, ended_seq",
        "1, 'tool', n, n % 100, 'c' || n, 2, n, now(), nullif(n % 10, 0) + n");
  table("report_place", "log_no, type, seq, run_no", "1, 'file.read', n, n % 100");
  return uri;
}

Revised revised(std::int64_t seq, const std::string& document) {
  Revised out;
  out.row.seq = seq;
  out.row.corpus = "notes";
  out.row.document = document;
  out.row.revision = "r" + std::to_string(seq);
  out.row.trust = "trusted";
  out.row.source = "s";
  out.row.sources = {"s"};
  out.row.chunks = 1;
  out.chunks.resize(1);
  out.chunks[0].seq = seq;
  out.chunks[0].end_byte = 9;
  out.actor = "uid:1";
  return out;
}

class FollowedRowsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    connection_ = std::make_unique<Connection>(filled_database(GetParam()), DatabaseRole::follower);
    ASSERT_TRUE(guarded(*connection_, "opening", [] { return true; }).ok());
  }

  // Returns the number of rows that `write` reads. Its changes are rolled back.
  template <typename Write>
  std::int64_t rows_read(Write write) {
    pqxx::work work(*connection_->impl().link);
    const std::int64_t before = rows_read_by(work);  // those of earlier transactions may not be reported yet
    write(*connection_, work);
    return rows_read_by(work) - before;
  }
  static std::int64_t rows_read_by(pqxx::work& work) {
    return integer_of(
        work.exec("SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM "
                  "pg_stat_xact_user_tables")[0][0]);
  }
  std::int64_t rows_read(const std::vector<CorpusChange>& changes) {
    return rows_read([&](Connection& connection, pqxx::work& work) {
      write_followed_corpus(connection, work, 1, changes, nullptr);
    });
  }
  std::int64_t rows_read(const ReportRows& rows) {
    return rows_read(
        [&](Connection& connection, pqxx::work& work) { write_followed_report(connection, work, 1, rows); });
  }

  std::unique_ptr<Connection> connection_;
};

TEST_P(FollowedRowsTest, AChangeOfADocumentReadsThatDocument) {
  FeedbackRow feedback{2'000'005, "p", Citation{"notes", "d7", "r1", 0}, 1.0, "uid:1"};
  EXPECT_LE(rows_read({revised(2'000'001, "d3"), revised(2'000'002, "new")}), 2 * rows_per_change_max);
  EXPECT_LE(rows_read({Retracted{2'000'001, "notes", "d4"}}), rows_per_change_max);
  EXPECT_LE(rows_read({Revoked{2'000'002, "s5", std::nullopt}}), rows_per_change_max);
  EXPECT_LE(rows_read({Revoked{2'000'002, "s5", "uid:1"}}), rows_per_change_max);
  EXPECT_LE(rows_read({Erased{2'000'003, 6}}), rows_per_change_max);
  EXPECT_LE(rows_read({feedback}), rows_per_change_max);
}

TEST_P(FollowedRowsTest, ABatchOfRevisionsReadsTheseDocuments) {
  std::vector<CorpusChange> batch;
  for (int i = 1; i <= 300; ++i) batch.push_back(revised(2'000'000 + i, "d" + std::to_string(i)));
  EXPECT_LE(rows_read(batch), 300 * rows_per_change_max);
}

TEST_P(FollowedRowsTest, TheReportReadsTheRunsAndSpansOfItsEvents) {
  ReportRows rows;
  std::map<SpanKey, std::int64_t> wanted;
  for (std::int64_t i = 1; i <= 100; ++i) {
    rows.runs.push_back({.run_no = i, .events = 1, .last_seq = 2'000'000 + i});
    rows.ended.push_back({"tool", (10 * i) % 100, 10 * i, SpanEnd{.seq = 2'000'000 + i}});
    rows.places.push_back({"file.read", 2'000'000 + i, i});
    wanted.emplace(SpanKey{"tool", (10 * i) % 100, "c" + std::to_string(10 * i)}, 1);
  }
  EXPECT_LE(rows_read(rows), 100 * rows_per_change_max);
  EXPECT_LE(rows_read([&](Connection& connection, pqxx::work& work) { open_spans(connection, work, 1, wanted); }),
            100 * rows_per_change_max);
  const std::int64_t spans_of_run = GetParam() / 100;
  EXPECT_LE(rows_read(ReportRows{.erased = {{7, 107}}}), 4 * spans_of_run + rows_per_change_max);
}

TEST_P(FollowedRowsTest, ARunAndItsPointersReadTheirOwnRows) {
  FollowedRows rows;
  rows.pointers.push_back({.pointer = "p9", .needed_by = "claim", .needed_id = {}, .run_id = "r9", .seq = 2'000'001});
  EXPECT_LE(rows_read([&](Connection& connection, pqxx::work& work) { write_followed(connection, work, 1, rows); }),
            rows_per_change_max);
}

INSTANTIATE_TEST_SUITE_P(Rows, FollowedRowsTest, ::testing::Values(0, 10'000, 100'000),
                         [](const auto& rows) { return std::to_string(rows.param); });

}  // namespace
}  // namespace muniment::store
