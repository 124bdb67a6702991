#include "audit/tree_files.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "events/merkle.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::audit {
namespace {

std::string entry(std::int64_t index) { return "entry " + std::to_string(index); }
Hash leaf(std::int64_t index) { return sha256({std::string_view("\0", 1), entry(index)}); }

void grow(TreeWriter& writer, std::int64_t size) {
  while (writer.size() < size) ASSERT_TRUE(writer.add(entry(writer.size()), leaf(writer.size())).ok());
}

Hash root(std::int64_t size) {
  events::MerkleEdge edge;
  for (std::int64_t i = 0; i < size; ++i) edge.add(leaf(i));
  return edge.root();
}

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    std::ifstream in(file.path(), std::ios::binary);
    files[std::filesystem::relative(file.path(), folder)] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

}  // namespace

TEST(TreeFiles, AreThoseOfTheSpecificationsExample) {
  const test::TemporaryFolder folder;
  TreeWriter writer = TreeWriter::open(folder.path()).value();
  grow(writer, 70'000);
  ASSERT_TRUE(writer.write_partial().ok());
  EXPECT_EQ(writer.root(), root(70'000));
  const auto files = files_of(folder.path());
  std::map<std::string, int> counts;
  for (const auto& [path, bytes] : files) ++counts[path.substr(0, path.rfind("/"))];
  EXPECT_EQ(counts["tile/0"], 273);
  EXPECT_EQ(counts["tile/entries"], 273);
  EXPECT_EQ(counts["tile/1"], 1);
  EXPECT_EQ(files.at("tile/0/273.p/112").size(), 112U * 32);
  EXPECT_EQ(files.at("tile/1/001.p/17").size(), 17U * 32);
  EXPECT_EQ(files.at("tile/2/000.p/1").size(), 32U);
  EXPECT_EQ(files.size(), 273U + 273 + 1 + 4);
  EXPECT_EQ(files.at("tile/entries/000").substr(0, 9), std::string("\0\7entry 0", 9));
}

TEST(TreeFiles, PartialTilesGoWhenTheFullOneIsThere) {
  const test::TemporaryFolder folder;
  TreeWriter writer = TreeWriter::open(folder.path()).value();
  for (const std::int64_t size : {1, 100, 255}) {
    grow(writer, size);
    ASSERT_TRUE(writer.write_partial().ok());
  }
  EXPECT_EQ(files_of(folder.path()).size(), 6U);
  grow(writer, 256);
  ASSERT_TRUE(writer.write_partial().ok());
  const auto files = files_of(folder.path());
  EXPECT_EQ(files.size(), 3U);
  EXPECT_TRUE(files.contains("tile/0/000") && files.contains("tile/entries/000") && files.contains("tile/1/000.p/1"));
}

RC_GTEST_PROP(TreeFiles, EveryEventOfEverySizeIsProvenFromThem, ()) {
  const test::TemporaryFolder folder;
  TreeWriter writer = TreeWriter::open(folder.path()).value();
  const auto size = *rc::gen::inRange<std::int64_t>(1, 3'000);
  const auto earlier = *rc::gen::inRange<std::int64_t>(1, size + 1);
  grow(writer, earlier);
  RC_ASSERT(writer.write_partial().ok());
  grow(writer, size);
  RC_ASSERT(writer.write_partial().ok());
  RC_ASSERT(writer.root() == root(size));
  TreeReader tree(writer.folder(), size);
  const auto index = *rc::gen::inRange<std::int64_t>(0, size);
  const auto inclusion = events::inclusion_proof(index, size, tree.reader());
  RC_ASSERT(inclusion.ok() && events::proves_inclusion(leaf(index), index, size, root(size), *inclusion));
  const auto growth = events::consistency_proof(earlier, size, tree.reader());
  RC_ASSERT(growth.ok() && events::proves_consistency(earlier, root(earlier), size, root(size), *growth));
  // An earlier checkpoint is also proven, from the partial tiles of its size or the later full ones.
  TreeReader before(writer.folder(), earlier);
  RC_ASSERT(events::root_of(earlier, before.reader()).value() == root(earlier));
}

RC_GTEST_PROP(TreeFiles, AWriterThatStartsAnewWritesTheSame, ()) {
  const test::TemporaryFolder one, two;
  const auto stop = *rc::gen::inRange<std::int64_t>(0, 2'000);
  const auto size = *rc::gen::inRange<std::int64_t>(stop, 2'500);
  TreeWriter whole = TreeWriter::open(one.path()).value();
  grow(whole, size);
  RC_ASSERT(whole.write_partial().ok());
  {
    TreeWriter first = TreeWriter::open(two.path()).value();
    grow(first, stop);
  }
  TreeWriter second = TreeWriter::open(two.path()).value();
  RC_ASSERT(second.start_at(stop).ok());
  RC_ASSERT(second.size() == stop / 256 * 256);
  grow(second, size);
  RC_ASSERT(second.write_partial().ok());
  RC_ASSERT(files_of(one.path()) == files_of(two.path()));
}

TEST(TreeFiles, AMissingOrCutTileIsNamed) {
  const test::TemporaryFolder folder;
  TreeWriter writer = TreeWriter::open(folder.path()).value();
  grow(writer, 600);
  ASSERT_TRUE(writer.write_partial().ok());
  std::filesystem::resize_file(folder.path() + "/tile/0/001", 8'191);
  TreeReader tree(writer.folder(), 600);
  const auto cut = events::inclusion_proof(300, 600, tree.reader());
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, Errc::corrupt);
  EXPECT_NE(cut.error().message.find("tile/0/001"), std::string::npos) << cut.error().message;
  std::filesystem::remove(folder.path() + "/tile/0/000");
  EXPECT_EQ(TreeWriter::open(folder.path()).value().start_at(600).error().code, Errc::corrupt);
}

TEST(TreeFiles, ATileThatCannotBeOpenedAtPresentIsNotDamaged) {
  const test::TemporaryFolder folder;
  TreeWriter writer = TreeWriter::open(folder.path()).value();
  grow(writer, 600);
  ASSERT_TRUE(writer.write_partial().ok());
  TreeReader tree(writer.folder(), 600);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto full = tree.node(0, 300), partial = tree.node(0, 599);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Errc::unavailable) << full.error().message;
  ASSERT_FALSE(partial.ok());
  EXPECT_EQ(partial.error().code, Errc::unavailable) << partial.error().message;
  EXPECT_EQ(tree.node(0, 599).value(), leaf(599));
}

TEST(TreeFiles, WhatLiesThereIsTakenWhereItFitsAndMadeAgainWhereItDoesNot) {
  const test::TemporaryFolder folder;
  constexpr std::int64_t size = 1'000;
  {
    TreeWriter writer = TreeWriter::open(folder.path()).value();
    for (const std::int64_t until : {100, 300, 770, 800, 1'000}) {
      grow(writer, until);
      ASSERT_TRUE(writer.write_partial().ok());
    }
  }
  const auto whole = files_of(folder.path());
  EXPECT_EQ(cut_tiles(folder.path()).from, -1);
  for (const std::string path :
       {"tile/0/001", "tile/0/003.p/2", "tile/0/003.p/32", "tile/entries/003.p/232", "tile/1/000.p/3"}) {
    ASSERT_TRUE(whole.contains(path)) << path;
    std::ofstream(folder.path() + "/" + path, std::ios::trunc);
  }
  std::ofstream(folder.path() + "/tile/entries/002", std::ios::binary)
      << whole.at("tile/entries/001");  // of the right length
  const CutTiles cut = cut_tiles(folder.path());
  EXPECT_EQ(cut.from, 0);
  EXPECT_EQ(cut.paths.size(), 5U);
  TreeWriter writer = TreeWriter::open(folder.path()).value();
  ASSERT_TRUE(writer.start_at(0).ok());
  std::vector<bool> taken;
  while (writer.size() + 256 <= size) {
    taken.push_back(writer.take().value());
    if (!taken.back()) grow(writer, writer.size() + 256);
  }
  EXPECT_EQ(taken, (std::vector<bool>{true, false, false}));
  grow(writer, size);
  EXPECT_EQ(writer.root(), root(size));
  EXPECT_EQ(writer.rewrite_partial().value(), 4);
  EXPECT_EQ(writer.rewrite_partial().value(), 0);
  EXPECT_EQ(files_of(folder.path()), whole);
  EXPECT_EQ(cut_tiles(folder.path()).from, -1);
}

}  // namespace muniment::audit
