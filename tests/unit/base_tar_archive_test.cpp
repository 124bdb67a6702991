// Tests of reading hostile tar archives. The archives are built byte by byte: no tar program would write the invalid
// ones.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/files/file.hpp"
#include "base/files/tar_archive.hpp"

namespace muniment {
namespace {

// Returns a ustar header and the bytes, padded to whole blocks.
std::string member(const std::string& name, const std::string& bytes, char type = '0', std::string size = "") {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char octal[12];
  std::snprintf(octal, sizeof octal, "%011zo", bytes.size());
  put(0, name);
  put(100, "0000644");
  put(124, size.empty() ? octal : size);
  put(148, "        ");
  header[156] = type;
  if (type != '0') put(157, "elsewhere");
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, checksum);
  header[154] = '\0';
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

class TarArchive : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "muniment-tar-" + testing::UnitTest::GetInstance()->current_test_info()->name() +
            std::to_string(::getpid());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<TarReader> reader_of(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return TarReader::open(path_);
  }

  std::string path_;
};

const std::string end(1024, '\0');

TEST_F(TarArchive, EntriesComeInTheirOrderAndMayBeLeftUnread) {
  auto reader = reader_of(member("a", "first") + member("b/c", std::string(700'000, 'x')) + member("empty", "") + end);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader->next())->path, "a");
  const auto second = reader->next();
  EXPECT_EQ((*second)->path, "b/c");
  EXPECT_EQ((*second)->size_bytes, 700'000);
  std::size_t got = 0;
  while (true) {
    const auto block = reader->read();
    ASSERT_TRUE(block);
    if (block->empty()) break;
    got += block->size();
  }
  EXPECT_EQ(got, 700'000U);
  EXPECT_EQ((*reader->next())->path, "empty");
  EXPECT_EQ(*reader->read(), "");
  EXPECT_EQ(*reader->next(), std::nullopt);
}

TEST_F(TarArchive, WhatIsNoRegularFileIsRefused) {
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    auto reader = reader_of(member("a", "", type) + end);
    ASSERT_TRUE(reader) << reader.error().message;
    const auto entry = reader->next();
    ASSERT_FALSE(entry) << type;
    EXPECT_EQ(entry.error().code, Errc::corrupt);
  }
}

TEST_F(TarArchive, AnArchiveThatEndsTooEarlyIsCorrupt) {
  auto reader = reader_of(member("a", std::string(5'000, 'x')).substr(0, 3'000));
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_TRUE(reader->next());
  auto block = reader->read();
  while (block && !block->empty()) block = reader->read();
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().code, Errc::corrupt);
}

TEST_F(TarArchive, OtherBytesAreCorruptAndAMissingFileIsNotFound) {
  auto reader = reader_of(std::string(2'000, 'z'));
  const bool refused = !reader || !reader->next();
  EXPECT_TRUE(refused);
  const auto missing = TarReader::open(path_ + ".none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::not_found);
}

std::string written(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  auto writer = TarWriter::create(file.get(), path);
  EXPECT_TRUE(writer);
  for (const auto& [name, bytes] : entries) {
    EXPECT_TRUE(writer->begin({name, static_cast<std::int64_t>(bytes.size())}));
    EXPECT_TRUE(writer->write(bytes));
  }
  EXPECT_TRUE(writer->finish());
  return *read_file(path, 1 << 20);
}

TEST_F(TarArchive, WhatWasWrittenIsRead) {
  const std::string large(300'000, 'y');
  written(path_, {{"a", "first"}, {"empty", ""}, {"b/c", large}});
  auto reader = TarReader::open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader->next())->path, "a");
  EXPECT_EQ(*reader->read(), "first");
  EXPECT_EQ((*reader->next())->size_bytes, 0);
  EXPECT_EQ((*reader->next())->path, "b/c");
  std::string got;
  for (auto block = reader->read(); block && !block->empty(); block = reader->read()) got += *block;
  EXPECT_EQ(got, large);
  EXPECT_EQ(*reader->next(), std::nullopt);
}

TEST_F(TarArchive, TheSameEntriesAreTheSameBytes) {
  const std::string first = written(path_, {{"a", "one"}, {"b", "two"}});
  const std::time_t second = std::time(nullptr);
  while (std::time(nullptr) == second) ::usleep(10'000);  // a timestamp in the archive would differ now
  EXPECT_EQ(written(path_, {{"a", "one"}, {"b", "two"}}), first);
}

TEST_F(TarArchive, AnEntryThatIsNotAsLongAsWasSaidIsNotWritten) {
  const Fd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  auto writer = TarWriter::create(file.get(), path_);
  ASSERT_TRUE(writer->begin({"a", 4}));
  EXPECT_FALSE(writer->write("12345"));
  ASSERT_TRUE(writer->write("123"));
  EXPECT_FALSE(writer->begin({"b", 0}));
  EXPECT_FALSE(writer->finish());
}

}  // namespace
}  // namespace muniment
