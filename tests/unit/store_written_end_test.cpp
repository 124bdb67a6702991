#include "store/append/written_end.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/crypto/hmac.hpp"
#include "base/process/failpoint.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::store {
namespace {

events::MerkleEdge edge_of(int size) {
  events::MerkleEdge edge;
  for (int i = 0; i < size; ++i) edge.add(sha256(std::to_string(i)));
  return edge;
}
LogEnd end_of(int size) { return {size, edge_of(size).root()}; }

const Uuid log_id = *parse_uuid("0190f3a1-7c00-7abc-8def-0123456789ab");

TEST(WrittenEnd, SaysWhereTheLogEndedAndWhatWasBeingCommitted) {
  const test::TemporaryFolder folder;
  {
    const auto first = WrittenEnd::open(folder.path()).value();
    EXPECT_FALSE(first->found());
    first->note(edge_of(1), edge_of(2));  // ignored before `begin`
    ASSERT_TRUE(first->begin(log_id, end_of(3)).ok());
    for (int size = 3; size < 10; ++size) first->note(edge_of(size), edge_of(size + 2));
  }
  const auto killed = WrittenEnd::open(folder.path()).value();
  ASSERT_TRUE(killed->found());
  EXPECT_EQ(killed->found()->log_id, log_id);
  EXPECT_EQ(killed->found()->committed, end_of(9));
  EXPECT_EQ(killed->found()->intended, end_of(11));
  EXPECT_FALSE(killed->found()->stopped);
  ASSERT_TRUE(killed->begin(log_id, end_of(11)).ok());
  ASSERT_TRUE(killed->stop(end_of(12)).ok());
  const auto stopped = WrittenEnd::open(folder.path()).value();
  EXPECT_EQ(stopped->found()->committed, end_of(12));
  EXPECT_EQ(stopped->found()->intended, end_of(12));
  EXPECT_TRUE(stopped->found()->stopped);
}

TEST(WrittenEnd, ALogThatWasRefusedKeepsItsRecord) {
  const test::TemporaryFolder folder;
  const auto stopped = WrittenEnd::open(folder.path()).value();
  ASSERT_TRUE(stopped->begin(log_id, end_of(5)).ok());
  ASSERT_TRUE(stopped->stop(end_of(5)).ok());
  ASSERT_TRUE(WrittenEnd::open(folder.path()).value()->stop(end_of(9)).ok());
  EXPECT_EQ(WrittenEnd::open(folder.path()).value()->found()->committed, end_of(5));
}

TEST(WrittenEnd, WhatTheKeyDidNotMakeIsNoRecord) {
  const test::TemporaryFolder folder, other;
  for (const auto* place : {&folder, &other}) {
    const auto end = WrittenEnd::open(place->path()).value();
    ASSERT_TRUE(end->begin(log_id, end_of(4)).ok());
    end->note(edge_of(4), edge_of(5));
  }
  const std::string path = folder.path() + "/last_written";
  // Flips one bit of the newer copy: the older copy is used.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(60);
  file.put('\x55');
  file.close();
  EXPECT_EQ(WrittenEnd::open(folder.path()).value()->found()->intended, end_of(4));
  // The record of another machine, or a truncated one.
  std::filesystem::copy_file(other.path() + "/last_written", path, std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(WrittenEnd::open(folder.path()).value()->found());
  std::filesystem::resize_file(path, 100);
  EXPECT_FALSE(WrittenEnd::open(folder.path()).value()->found());
}

TEST(WrittenEnd, ARecordIsExactUntilTheMachineRestarts) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WrittenEnd::open(folder.path()).value()->begin(log_id, end_of(3)).ok());
  EXPECT_TRUE(WrittenEnd::open(folder.path()).value()->found()->exact);
  if (!failpoint::present) return;
  failpoint::arm("written_end.other_boot=error@1+");
  const auto restarted = WrittenEnd::open(folder.path()).value();
  failpoint::arm("");
  ASSERT_TRUE(restarted->found());
  EXPECT_FALSE(restarted->found()->exact);
  EXPECT_EQ(restarted->found()->committed, end_of(3));
}

TEST(WrittenEnd, ARecordOfAnEarlierVersionIsReadAndIsNotExact) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WrittenEnd::open(folder.path()).value()->begin(log_id, end_of(3)).ok());
  const auto content = [&](const std::string& name) {
    std::ifstream file(folder.path() + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string key = content("/writer.key"), record = content("/last_written");
  const std::size_t place = record.starts_with("muniment-end-2") ? 0 : 512;
  std::string earlier = "muniment-end-1\n\n" + record.substr(place + 16, 105);  // without the boot id
  earlier += view(hmac_sha256(key, {earlier}));
  earlier.resize(512);
  std::ofstream(folder.path() + "/last_written", std::ios::binary) << earlier << std::string(512, '\0');
  const auto found = WrittenEnd::open(folder.path()).value()->found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->committed, end_of(3));
  EXPECT_FALSE(found->exact);
}

TEST(WrittenEnd, AKeyThatOthersCanReadIsNotUsed) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(
      WrittenEnd::open(folder.path()).value()->begin(log_id, end_of(1)).ok());  // stores the key with its first record
  const std::string key = folder.path() + "/writer.key";
  struct stat about {};
  ASSERT_EQ(::stat(key.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  EXPECT_EQ(WrittenEnd::open(folder.path()).error().code, Errc::denied);
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  std::filesystem::resize_file(key, 5);
  EXPECT_EQ(WrittenEnd::open(folder.path()).error().code, Errc::corrupt);
}

}  // namespace
}  // namespace muniment::store
