// Tests of cached passage rows: they are read once, and again after the follower has written them.
#include "store/read/chunk_rows.hpp"
#include "support/reader_fixture.hpp"

namespace muniment::store::reader_test {
namespace {

class KeptRows : public TwoRuns {
 protected:
  void SetUp() override {
    TwoRuns::SetUp();
    run("INSERT INTO corpus VALUES (1, 'notes', 'uid:1', 1, 9)");
    add_document(3, "a", "r1", 1);
    add_document(4, "b", "r1", 2);
  }
  void add_document(int seq, const std::string& id, const std::string& revision, int chunk) {
    const std::string hash = "decode(repeat('00', 32), 'hex')";
    run("INSERT INTO document VALUES (1, " + std::to_string(seq) + ", 'notes', '" + id + "', '" + revision + "', " +
        hash +
        ", gen_random_uuid(), 0, 10, NULL, 'text/plain', 'text', 'en', 'first title', '{}', 'src', '{src}', NULL, 'untrusted', now(), now(), 'chunk/1', " +
        std::to_string(chunk) + ", 1)");
    run("INSERT INTO chunk VALUES (1, " + std::to_string(chunk) + ", " + std::to_string(seq) + ", 0, 0, 10, " + hash +
        ")");
  }
  void retitle() { run("UPDATE document SET title = 'second title'"); }
  std::string title_of(std::int64_t id) {
    auto found = rows_.read(reader_, {id});
    return found && found->contains(id) ? found->at(id)->document.title : "none";
  }
  std::string cited_title(const std::string& id, const std::string& revision = "r1") {
    auto found = rows_.cited(reader_, {{"notes", id, revision, 0}});
    return found && found->front().document ? found->front().document->title : "none";
  }
  static Revised revised(const std::string& id) {
    Revised out;
    out.row.corpus = "notes";
    out.row.document = id;
    return out;
  }

  ChunkRows rows_{1 << 20};
};

TEST_F(KeptRows, AreReadOnceUntilTheirDocumentChanges) {
  EXPECT_EQ(title_of(1), "first title");
  EXPECT_EQ(cited_title("b"), "first title");
  retitle();
  EXPECT_EQ(title_of(1), "first title");
  EXPECT_EQ(cited_title("b"), "first title");
  rows_.changed({revised("a")});
  EXPECT_EQ(title_of(1), "second title");
  EXPECT_EQ(cited_title("b"), "first title");
  rows_.changed({Retracted{5, "notes", "b"}});
  EXPECT_EQ(cited_title("b"), "second title");
}

TEST_F(KeptRows, AreAllReadAgainAfterARevocationOrAnErasure) {
  for (const CorpusChange& change : {CorpusChange(Revoked{5, "src", std::nullopt}), CorpusChange(Erased{6, 3})}) {
    run("UPDATE document SET title = 'first title'");
    rows_.changed({change});
    EXPECT_EQ(title_of(1), "first title");
    retitle();
    EXPECT_EQ(title_of(1), "first title");
    rows_.changed({change});
    EXPECT_EQ(title_of(1), "second title");
    EXPECT_EQ(cited_title("b"), "second title");
  }
}

TEST_F(KeptRows, WhatIsNotThereIsLookedForEachTime) {
  EXPECT_EQ(title_of(7), "none");
  EXPECT_EQ(cited_title("c"), "none");
  add_document(5, "c", "r1", 7);
  EXPECT_EQ(title_of(7), "first title");
  EXPECT_EQ(cited_title("c"), "first title");
  EXPECT_EQ(cited_title("c", "r2"), "none");
}

TEST_F(KeptRows, StayWithinTheirBytes) {
  ChunkRows few(3'000);  // one row fits, not two
  ASSERT_TRUE(few.read(reader_, {1}));
  ASSERT_TRUE(few.read(reader_, {2}));
  retitle();
  EXPECT_EQ(few.read(reader_, {2})->at(2)->document.title, "first title");
  EXPECT_EQ(few.read(reader_, {1})->at(1)->document.title, "second title");
  ChunkRows none(10);
  EXPECT_EQ(none.read(reader_, {1, 2})->size(), 2u);
}

}  // namespace
}  // namespace muniment::store::reader_test
