// Tests of holding events against the log's tree when they are read.
#include "events/entry.hpp"
#include "store/read/document_lives.hpp"
#include "store/read/recorded.hpp"
#include "support/reader_fixture.hpp"

namespace muniment::store::reader_test {
namespace {

// A tree that gives the same answer for every event.
class Answering final : public RecordedTree {
 public:
  Status holds(const Event&, const Hash&, Deadline until) override {
    ++asked;
    deadlines.push_back(until);
    return answer;
  }

  Status answer = success();
  int asked = 0;
  std::vector<Deadline> deadlines;
};

// A log of the run _log and one run, whose events match their hashes.
class RecordedEvents : public ReaderTest {
 protected:
  RecordedEvents() : recorded_({uri_, 1, "", INT64_MAX, nullptr, std::make_shared<Recorded>()}), held_(recorded_) {
    recorded_.recorded->set({log_id_, tree_});
    add(0, 0, "log.started");
    start_run(1);
    for (std::int64_t n = 1; n <= 3; ++n) add(1, n, "tool.called");
    run("ALTER TABLE event_1_0 DISABLE TRIGGER append_only; "
        "UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8'))");
    Hash previous{};
    for (Event event : read(reader_)) {
      const Hash hash = events::hash_entry(log_id_, event, event.run_seq > 0 ? previous : Hash{}).run_hash;
      run("UPDATE event SET run_hash = decode('" + to_hex(hash) + "', 'hex') WHERE seq = " + std::to_string(event.seq));
      previous = hash;
    }
  }

  static std::vector<Event> read(Reader& reader) { return reader.events({}, 100).value(); }

  const Uuid log_id_ = *parse_uuid("0193fa7b-0000-7abc-8def-0123456789ab");
  const std::shared_ptr<Answering> tree_ = std::make_shared<Answering>();
  LogPlace recorded_;
  Reader held_;
};

TEST_F(RecordedEvents, AreAllComparedUnderOneDeadline) {
  const Status confirmed = held_.confirm(read(held_));
  EXPECT_TRUE(confirmed.ok()) << confirmed.error().message;
  EXPECT_EQ(tree_->asked, 5);
  for (const Deadline until : tree_->deadlines) EXPECT_EQ(until, tree_->deadlines.front());
}

TEST_F(RecordedEvents, AreNotAskedForAfterATransientError) {
  for (const Errc code : {Errc::unavailable, Errc::deadline_exceeded}) {
    tree_->asked = 0;
    tree_->answer = Error(code, "no checkpoint covers the event yet");
    const auto differing = held_.differing(read(held_));
    ASSERT_FALSE(differing.ok());
    EXPECT_EQ(differing.error().code, code);
    EXPECT_EQ(tree_->asked, 1);
  }
}

TEST_F(RecordedEvents, TheOwnerOfACorpusIsUnknownAfterATransientErrorAndNotTamperedWith) {
  const auto lives = std::make_shared<DocumentLives>("key");
  DocumentRow row;
  row.corpus = "notes";
  row.document = "a";
  row.seq = 0;
  lives->add(row);
  lives->begin(5);
  recorded_.recorded->set({log_id_, tree_, nullptr, lives});
  run("INSERT INTO corpus (log_no, corpus, owner, first_seq, last_seq) VALUES (1, 'notes', 'uid:1000', 0, 0)");
  const auto corpus = held_.corpus("notes");
  ASSERT_TRUE(corpus && *corpus) << corpus.error().message;
  EXPECT_EQ((*corpus)->owner, "uid:1000");
  tree_->answer = Error(Errc::unavailable, "no checkpoint covers the event yet");
  EXPECT_EQ(held_.corpus("notes").error().code, Errc::unavailable);
  EXPECT_EQ(held_.corpora(std::nullopt, false).error().code, Errc::unavailable);
  tree_->answer = Error(Errc::corrupt, "another leaf");
  EXPECT_EQ(held_.corpus("notes").error().code, Errc::corrupt);
}

TEST_F(RecordedEvents, AreAllNamedThatDiffer) {
  tree_->answer = Error(Errc::corrupt, "another leaf");
  const auto differing = held_.differing(read(held_));
  ASSERT_TRUE(differing.ok()) << differing.error().message;
  EXPECT_EQ(differing->size(), 5U);
  EXPECT_EQ(tree_->asked, 5);
}

}  // namespace
}  // namespace muniment::store::reader_test
