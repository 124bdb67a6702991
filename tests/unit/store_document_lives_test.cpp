#include "store/read/document_lives.hpp"

#include <gtest/gtest.h>

#include <future>

namespace muniment::store {
namespace {

DocumentRow row(std::int64_t seq, std::string document) {
  DocumentRow made;
  made.seq = seq;
  made.corpus = "notes";
  made.document = std::move(document);
  made.first_chunk = seq;
  made.chunks = 1;
  return made;
}

TEST(DocumentLives, ReadersSeeTheFormerLivesUntilTheyAreLoadedAgain) {
  DocumentLives lives("key");
  const auto first = lives.fresh();
  first->add(row(5, "a"));
  lives.replace(*first);
  lives.begin(6);
  ASSERT_TRUE(lives.wait_for(6).ok());

  lives.unload();
  const auto loaded = lives.fresh();
  EXPECT_TRUE(lives.of(5)) << "a reader that has waited before";
  loaded->add(row(5, "a"));
  EXPECT_TRUE(lives.of(5));
  EXPECT_EQ(lives.current("notes", "a", std::nullopt), 5);
  loaded->add(row(7, "b"));
  EXPECT_FALSE(lives.of(7));
  auto waiting = std::async(std::launch::async, [&] { return lives.wait_for(8).ok(); });
  lives.replace(*loaded);
  EXPECT_TRUE(lives.of(5));
  EXPECT_TRUE(lives.of(7));
  EXPECT_EQ(lives.next_seq(), -1) << "readers wait until the loading has ended";
  EXPECT_EQ(lives.passages(), 2);
  lives.begin(8);
  EXPECT_TRUE(waiting.get());
}

TEST(DocumentLives, TheDigestDependsOnTheRowsAndTheKeyAlone) {
  DocumentLives lives("key"), others("other key");
  const auto forward = lives.fresh(), backward = lives.fresh(), forged = others.fresh();
  forward->add(row(5, "a"));
  forward->add(row(7, "b"));
  backward->add(row(7, "b"));
  backward->add(row(5, "a"));
  forged->add(row(5, "a"));
  forged->add(row(7, "b"));
  EXPECT_EQ(forward->digest(), backward->digest());
  EXPECT_NE(forward->digest(), forged->digest());
}

}  // namespace
}  // namespace muniment::store
