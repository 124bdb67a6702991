// Tests of the snapshotter behind a real appender: when it takes snapshots, their content, and that a state can be
// restored after any damage.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "snapshot/rehydrate.hpp"
#include "snapshot/snapshotter.hpp"
#include "store/append/appender.hpp"
#include "store/postgres/partitions.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::snapshot {
namespace {

using namespace std::chrono_literals;

Deadline soon() { return std::chrono::steady_clock::now() + 10s; }

// The core of a daemon: appender, tail, files and a snapshotter on a database of its own.
class SnapshotterTest : public testing::Test {
 protected:
  void SetUp() override {
    uri_ = test::fresh_database();
    reader_ = std::make_unique<store::Reader>(store::LogPlace{uri_, log_no});
    store::Connection connection(uri_, store::DatabaseRole::writer);
    ASSERT_TRUE(connection.ensure_open().ok());
    ASSERT_TRUE(store::ensure_partitions(connection, log_no, 0).ok());
    store::ArtifactFilesOptions files;
    files.root = folder_.path() + "/artifacts";
    files.bytes_max = 1 << 30;
    files_ = *store::ArtifactFiles::open(files);
    store::AppenderOptions options;
    options.uri = uri_;
    options.log_no = log_no;
    appender_ = std::move(*store::Appender::open(options, clock_, tail_, runs_));
    run_ = start_run("r1");
  }

  void TearDown() override {
    snapshotter_.reset();
    appender_->stop();
  }

  void start(std::int64_t events_between, std::int64_t seconds_between) {
    SnapshotterOptions options;
    options.place = {uri_, log_no};
    options.events_between = events_between;
    options.seconds_between = seconds_between;
    snapshotter_ = std::make_unique<Snapshotter>(options, clock_, *appender_, runs_, tail_, *files_);
    snapshotter_->start();
  }

  std::vector<events::Receipt> append_request(store::AppendRequest request) {
    auto result = store::append_and_wait(*appender_, std::move(request), 60s);
    EXPECT_TRUE(result.ok()) << (result ? "" : result.error().message);
    return result ? *result : std::vector<events::Receipt>();
  }

  store::Addressed event(const std::shared_ptr<store::Run>& run, std::string_view type, std::string body) {
    events::NewEvent event;
    event.type = type;
    event.body = std::move(body);
    event.event_id = make_uuid_v7(clock_.now());
    event.event_id_is_ours = true;
    events::seal(event);
    return {run, std::move(event), false};
  }

  std::int64_t append(std::string_view type, std::string body) {
    store::AppendRequest request;
    request.actor = "uid:1000";
    request.events.push_back(event(run_, type, std::move(body)));
    return append_request(std::move(request)).back().seq;
  }

  std::shared_ptr<store::Run> start_run(const std::string& run_id) {
    auto run = runs_.insert(std::make_shared<store::Run>(run_id));
    store::AppendRequest request;
    request.actor = "uid:1000";
    request.events.push_back(event(run, "run.started", R"({"run_id":")" + run_id + R"(","agent":{"name":"a"}})"));
    append_request(std::move(request));
    return run;
  }

  std::vector<store::SnapshotRow> rows() {
    auto rows = reader_->snapshots(run_->view().run_no, std::nullopt, 1'000);
    EXPECT_TRUE(rows.ok());
    return rows ? *rows : std::vector<store::SnapshotRow>();
  }

  // Waits until the run has `count` snapshots.
  bool has_snapshots(std::size_t count) {
    for (int i = 0; i < 500; ++i) {
      if (rows().size() >= count) return rows().size() == count;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  // Returns the expected state: the fold of all events from the first one.
  events::State folded(std::optional<std::int64_t> asof = std::nullopt) {
    store::EventFilter filter;
    filter.run_no = run_->view().run_no;
    filter.to_seq = asof;
    const auto events = reader_->events(filter, 100'000);
    EXPECT_TRUE(events.ok());
    events::State state;
    for (const events::Event& event : *events) {
      EXPECT_TRUE(apply_event(state, event, *reader_, *files_).ok());
    }
    return state;
  }

  Rehydrated rehydrated(std::optional<std::int64_t> asof = std::nullopt) {
    auto had = rehydrate(*reader_, *files_, run_->view().run_no, asof);
    EXPECT_TRUE(had.ok()) << (had ? "" : had.error().message);
    return had ? *std::move(had) : Rehydrated();
  }

  Result<Taking> take() { return snapshotter_->take(*reader_, run_, "requested", "uid:1000", soon()); }

  // Takes a snapshot and appends it, as a method does.
  TakenSnapshot taken() {
    auto taking = take();
    EXPECT_TRUE(taking.ok()) << (taking ? "" : taking.error().message);
    if (!taking) return {};
    if (taking->request) {
      append_request(*std::move(taking->request));
      taking->ticket->committed();
    }
    return taking->snapshot;
  }

  static std::string patch(const std::string& name, const std::string& value) {
    return R"({"format":"merge","patch":{")" + name + R"(":)" + value + "}}";
  }

  static constexpr std::int16_t log_no = 1;
  Clock clock_;
  test::TemporaryFolder folder_;
  std::string uri_;
  store::Tail tail_;
  store::RunDirectory runs_;
  std::unique_ptr<store::Reader> reader_;
  std::unique_ptr<store::ArtifactFiles> files_;
  std::unique_ptr<store::Appender> appender_;
  std::unique_ptr<Snapshotter> snapshotter_;
  std::shared_ptr<store::Run> run_;
};

TEST_F(SnapshotterTest, OneIsTakenEverySoManyEventsAndEqualsTheFold) {
  start(10, 3'600);
  for (int i = 0; i < 9; ++i) append("state.patched", patch("n", std::to_string(i)));
  ASSERT_TRUE(has_snapshots(1));
  const store::SnapshotRow row = rows().front();
  EXPECT_EQ(row.reason, "events");
  EXPECT_EQ(*row.state, folded(row.seq).document());
  EXPECT_EQ(to_hex(row.state_hash), to_hex(folded(row.seq).state_hash()));
  const auto event = reader_->event_at(row.event_seq);
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_EQ((*event)->type, "snapshot.taken");
  EXPECT_EQ((*event)->origin, events::Origin::observed);
  // The snapshot's own event does not count towards the next snapshot.
  for (int i = 0; i < 10; ++i) append("x.a.b", "{}");
  ASSERT_TRUE(has_snapshots(2));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(rows().size(), 2u);
}

TEST_F(SnapshotterTest, OneIsTakenSomeTimeAfterAChangeAndNoneAtRest) {
  start(1'000, 1);
  append("state.patched", patch("n", "1"));
  ASSERT_TRUE(has_snapshots(1));
  EXPECT_EQ(rows().front().reason, "time");
  std::this_thread::sleep_for(1'500ms);
  EXPECT_EQ(rows().size(), 1u);
}

TEST_F(SnapshotterTest, OneIsTakenAtTheRunsEndAndOfAHaltedRunToo) {
  start(1'000, 1);
  append("run.ended", R"({"outcome":"success"})");
  ASSERT_TRUE(has_snapshots(1));
  EXPECT_EQ(rows().front().reason, "ended");
  append("run.halted", R"({"code":"SYSTEM_ERROR","reason":"r","pointer":"p","attempts":2})");
  ASSERT_TRUE(has_snapshots(2));
  EXPECT_NE(rows().front().state->find("SYSTEM_ERROR"), std::string::npos);
}

TEST_F(SnapshotterTest, ARequestedOneHoldsEverythingAcknowledgedAndIsNotTakenTwice) {
  start(1'000, 3'600);
  for (int i = 0; i < 50; ++i) {
    const std::int64_t seq = append("state.patched", patch("n", std::to_string(i)));
    const TakenSnapshot snapshot = taken();
    EXPECT_EQ(snapshot.seq, seq);
    EXPECT_EQ(to_hex(snapshot.state_hash), to_hex(folded().state_hash()));
  }
  EXPECT_EQ(rows().size(), 50u);
  EXPECT_EQ(taken().seq, taken().seq);
  EXPECT_EQ(rows().size(), 50u);
}

TEST_F(SnapshotterTest, ALargeStateGoesIntoAnArtifactAlsoAfterTheRunsEnd) {
  start(1'000, 3'600);
  for (int i = 0; i < 3; ++i)
    append("state.patched", patch("k" + std::to_string(i), "\"" + std::string(30'000, 'v') + "\""));
  append("run.ended", R"({"outcome":"success"})");
  ASSERT_TRUE(has_snapshots(1));
  const store::SnapshotRow row = rows().front();
  ASSERT_TRUE(row.artifact_id.has_value());
  EXPECT_FALSE(row.state.has_value());
  const auto bytes = read_snapshot(*reader_, *files_, row);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(*bytes, folded().document());
  const auto artifact = reader_->artifact(*row.artifact_id);
  ASSERT_TRUE(artifact.ok() && artifact->has_value());
  EXPECT_EQ((*artifact)->mime_type, "application/vnd.muniment.state+json");
  const Rehydrated had = rehydrated();
  EXPECT_EQ(had.snapshot_seq, row.seq);
  EXPECT_EQ(had.events_applied, 0);
}

TEST_F(SnapshotterTest, ABadOneIsSkippedAndTheOneBeforeItUsed) {
  start(1'000, 3'600);
  append("state.patched", patch("n", "1"));
  const TakenSnapshot first = taken();
  append("state.patched", patch("n", "2"));
  const TakenSnapshot second = taken();
  append("state.patched", patch("n", "3"));
  EXPECT_EQ(rehydrated().snapshot_seq, second.seq);
  const std::string good = rehydrated().state.document();

  test::run_sql(
      uri_,
      "ALTER TABLE snapshot DISABLE TRIGGER ALL; UPDATE snapshot SET state = replace(state::text, '\"n\":2', '\"n\":9')::json "
      "WHERE seq = " +
          std::to_string(second.seq));
  Rehydrated had = rehydrated();
  EXPECT_EQ(had.snapshot_seq, first.seq);
  ASSERT_EQ(had.skipped.size(), 1u);
  EXPECT_EQ(had.skipped[0].seq, second.seq);
  EXPECT_EQ(had.state.document(), good);

  // A forger also recomputes the row's hashes; the log's event still contradicts them.
  test::run_sql(
      uri_,
      "UPDATE snapshot SET state_hash = sha256(state::text::bytea), hash = sha256(salt || state::text::bytea) WHERE seq = " +
          std::to_string(second.seq));
  had = rehydrated();
  EXPECT_EQ(had.snapshot_seq, first.seq);
  EXPECT_EQ(had.state.document(), good);
}

TEST_F(SnapshotterTest, AStateIsHadAsOfAnyPosition) {
  start(7, 3'600);
  std::vector<std::int64_t> seqs;
  for (int i = 0; i < 60; ++i) {
    seqs.push_back(append("state.patched", patch("n" + std::to_string(i % 5), std::to_string(i))));
    // If appends are fast, the pacing may take one snapshot for all of them.
    if (i % 20 == 19) snapshotter_->flush(10s);
  }
  EXPECT_GT(rows().size(), 1u);
  for (const std::int64_t seq : seqs) {
    const Rehydrated had = rehydrated(seq);
    EXPECT_EQ(had.state.document(), folded(seq).document()) << seq;
    EXPECT_LE(had.snapshot_seq, seq);
  }
  EXPECT_EQ(rehydrated(-1).state.seq(), -1);
}

TEST_F(SnapshotterTest, FlushTakesWhatIsDueAndKeepsThePosition) {
  start(1'000, 3'600);
  const std::int64_t seq = append("state.patched", patch("n", "1"));
  snapshotter_->flush(10s);
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_EQ(rows().front().seq, seq);
  EXPECT_EQ(rows().front().reason, "stopping");
  EXPECT_GE(*reader_->follower_position("snapshot"), seq + 1);
}

TEST_F(SnapshotterTest, ARestartGoesOnWhereTheLastSnapshotWas) {
  start(10, 3'600);
  for (int i = 0; i < 6; ++i) append("state.patched", patch("n", std::to_string(i)));
  while (snapshotter_->position() < tail_.next_seq()) std::this_thread::sleep_for(5ms);
  snapshotter_.reset();  // simulates a crash: nothing was flushed
  ASSERT_TRUE(rows().empty());
  start(10, 3'600);
  for (int i = 0; i < 5; ++i) append("state.patched", patch("m", std::to_string(i)));
  ASSERT_TRUE(has_snapshots(1)) << "the six from before count";
  EXPECT_EQ(*rows().front().state, folded(rows().front().seq).document());
}

TEST_F(SnapshotterTest, APatchIsHeldAgainstThePresentState) {
  start(1'000, 3'600);
  append("state.patched", patch("n", "1"));
  const auto check = [&](std::vector<std::string> bodies) {
    const std::vector<std::string_view> views(bodies.begin(), bodies.end());
    return snapshotter_->check_patches(*reader_, *run_, views);
  };
  const std::string test_op = R"({"format":"json_patch","patch":[{"op":"test","path":"/n","value":1}]})";
  EXPECT_TRUE(check({test_op}).ok());
  append("state.patched", patch("n", "2"));
  ASSERT_FALSE(check({test_op}).ok());
  EXPECT_EQ(check({test_op}).error().code, Errc::invalid_argument);
  EXPECT_TRUE(check({patch("n", "1"), test_op}).ok()) << "each is held against what the one before it leaves";
  const std::string conditional = R"({"format":"merge","patch":{},"expected_state_hash":")";
  EXPECT_TRUE(check({conditional + to_hex(taken().state_hash) + "\"}"}).ok())
      << "taking a snapshot does not change the state";
  EXPECT_EQ(check({conditional + std::string(64, '0') + "\"}"}).error().code, Errc::conflict);
  const std::string spilled = R"({"format":"merge","ref":{"artifact_id":"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"}})";
  EXPECT_EQ(check({spilled}).error().code, Errc::not_found);
}

TEST_F(SnapshotterTest, ASpilledPatchThatIsGoneIsNotGuessed) {
  start(1'000, 3'600);
  const Uuid id = make_uuid_v7(clock_.now());
  const auto file = files_->store(R"({"big":true})", "r1", "main", id, "application/json");
  ASSERT_TRUE(file.ok());
  store::ArtifactRow row;
  row.artifact_id = id;
  row.run_id = "r1";
  row.step_id = "main";
  row.path = file->path;
  row.hash = file->hash;
  row.mime_type = "application/json";
  row.size_bytes = file->size_bytes;
  store::AppendRequest request;
  request.actor = "uid:1000";
  request.events.push_back(event(run_, "artifact.stored", R"({"size_bytes":12})"));
  request.events.push_back(
      event(run_, "state.patched", R"({"format":"merge","ref":{"artifact_id":")" + id.text() + R"("}})"));
  request.rows.push_back({0, row});
  append_request(std::move(request));
  files_->committed(id);
  EXPECT_NE(rehydrated().state.document().find(R"("working":{"big":true})"), std::string::npos);

  ASSERT_EQ(::unlink((folder_.path() + "/artifacts/" + file->path).c_str()), 0);
  const auto had = rehydrate(*reader_, *files_, run_->view().run_no);
  ASSERT_FALSE(had.ok());
  EXPECT_EQ(had.error().code, Errc::corrupt);
  EXPECT_EQ(had.error().pointer, "artifact://r1/" + id.text());
}

TEST_F(SnapshotterTest, ManyRunsAtOnceEachGetTheirOwn) {
  start(20, 3'600);
  std::vector<std::shared_ptr<store::Run>> runs;
  for (int i = 0; i < 30; ++i) runs.push_back(start_run("many-" + std::to_string(i)));
  for (int round = 0; round < 25; ++round) {
    store::AppendRequest request;
    request.actor = "uid:1000";
    for (const auto& run : runs)
      request.events.push_back(event(run, "state.patched", patch("r", std::to_string(round))));
    append_request(std::move(request));
  }
  snapshotter_->flush(20s);
  for (const auto& run : runs) {
    run_ = run;
    ASSERT_FALSE(rows().empty()) << run->run_id;
    for (const store::SnapshotRow& row : rows()) EXPECT_EQ(*row.state, folded(row.seq).document());
  }
}

}  // namespace
}  // namespace muniment::snapshot
