#include "base/files/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace muniment {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "muniment-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    auto root = open_folder(folder_);
    ASSERT_TRUE(root) << root.error().message;
    root_ = *std::move(root);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void put(const std::string& name, std::string_view bytes) {
    const Status written = write_file_durably(path(name), bytes);
    ASSERT_TRUE(written) << written.error().message;
  }

  std::string content(const std::string& name) const {
    const auto bytes = read_file(path(name), 1 << 20);
    return bytes ? *bytes : bytes.error().message;
  }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
  Fd root_;
};

template <typename T>
Errc code_of_refusal(const Result<T>& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? Errc::conflict : result.error().code;
}

TEST_F(FileTest, WhatIsWrittenDurablyReplacesWhatWasThere) {
  put("a", "first");
  put("a", std::string(200'000, 'x'));
  EXPECT_EQ(content("a"), std::string(200'000, 'x'));
  EXPECT_EQ(entries(), 1U);  // no temporary file remains
  struct stat about {};
  ASSERT_EQ(::stat(path("a").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  put("a", "old");
  // The file exceeds the process's limit: the kernel truncates the write with EFBIG.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write_file_durably(path("a"), std::string(2'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code_of_refusal(written), Errc::system_error);
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, ReadingStopsAtTheLimit) {
  put("a", "12345");
  EXPECT_EQ(*read_file(path("a"), 5), "12345");
  const auto refused = read_file(path("a"), 4);
  EXPECT_EQ(code_of_refusal(refused), Errc::too_large);
  EXPECT_EQ(refused.error().limit, 4);
  EXPECT_EQ(*read_file("/proc/self/comm", 100), "unit_base\n");  // a file whose reported size is 0
}

TEST_F(FileTest, ASliceIsReadWhereItIs) {
  put("a", "0123456789");
  const auto file = open_regular_beneath(root_, "a");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size, 10);
  EXPECT_EQ(*read_at(file->fd, 3, 4), "3456");
  EXPECT_EQ(*read_at(file->fd, 8, 4), "89");
  EXPECT_EQ(*read_at(file->fd, 10, 4), "");
}

TEST_F(FileTest, APathBeneathCannotLeaveItsRoot) {
  std::filesystem::create_directory(path("in"));
  put("in/a", "inside");
  EXPECT_TRUE(open_regular_beneath(root_, "in/a"));
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "in/../in/a")), Errc::invalid_argument);
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "../etc/passwd")), Errc::invalid_argument);
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "/etc/passwd")), Errc::invalid_argument);
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "absent")), Errc::not_found);
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, std::string_view("in/a\0b", 6))), Errc::invalid_argument);
}

TEST_F(FileTest, LinksAreNotFollowedBeneathARoot) {
  std::filesystem::create_directory(path("in"));
  put("in/a", "inside");
  std::filesystem::create_symlink("in/a", path("file_link"));
  std::filesystem::create_directory_symlink("in", path("folder_link"));
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "file_link")), Errc::corrupt);
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "folder_link/a")), Errc::corrupt);
  EXPECT_EQ(content("file_link"), "inside");  // the owner chose this path
}

TEST_F(FileTest, WhatIsNotAFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(path("in"));
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "fifo")), Errc::corrupt);
  EXPECT_EQ(code_of_refusal(read_file(path("fifo"), 100)), Errc::corrupt);
  EXPECT_EQ(code_of_refusal(open_regular_beneath(root_, "in")), Errc::corrupt);
  EXPECT_EQ(code_of_refusal(read_file("/dev/zero", 100)), Errc::corrupt);
  const auto refused = read_file(path("in"), 100);
  EXPECT_EQ(refused.error().message, "reading " + path("in") + ": not a regular file");
}

TEST_F(FileTest, WhatACallerNamedAndIsNoFileIsTheCallersMistake) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(path("in"));
  std::filesystem::create_symlink("loop", path("loop"));
  for (const std::string& name :
       {path("fifo"), path("in"), path("loop"), std::string("/dev/zero"), path(std::string(300, 'n'))}) {
    EXPECT_EQ(code_of_refusal(read_named(name, 100)), Errc::invalid_argument) << name;
  }
  for (const std::string& name : {path("in"), path("loop"), path(std::string(300, 'n'))}) {
    EXPECT_EQ(code_of_refusal(read_input(name, 100)), Errc::invalid_argument) << name;
  }
  EXPECT_EQ(read_named(path("in"), 100).error().message, "reading " + path("in") + ": is a folder; a file is required");
  EXPECT_EQ(read_input(path("in"), 100).error().message, "reading " + path("in") + ": is a folder; a file is required");
  EXPECT_EQ(code_of_refusal(read_named(path("absent"), 100)), Errc::not_found);
  EXPECT_EQ(code_of_refusal(read_input(path("absent"), 100)), Errc::not_found);
  put("a", "12345");
  EXPECT_EQ(*read_named(path("a"), 5), "12345");
  EXPECT_EQ(*read_input(path("a"), 5), "12345");
  EXPECT_EQ(code_of_refusal(read_input(path("a"), 4)), Errc::too_large);
  EXPECT_EQ(*read_input("/dev/null", 4), "");
  EXPECT_EQ(code_of_refusal(read_input("/dev/zero", 100'000)), Errc::too_large);
}

TEST_F(FileTest, ADescriptorClosesWithItsOwnerAndMoves) {
  Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = fd.get();
  Fd moved = std::move(fd);
  EXPECT_EQ(moved.get(), number);
  EXPECT_NE(::fcntl(number, F_GETFD), -1);
  moved.reset();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
  EXPECT_FALSE(moved.open());
}

TEST(File, AFolderHoldsItselfAndWhatLiesInIt) {
  EXPECT_TRUE(is_beneath("/a/b", "/a/b"));
  EXPECT_TRUE(is_beneath("/a/b/c", "/a/b"));
  EXPECT_TRUE(is_beneath("/a", "/"));
  EXPECT_FALSE(is_beneath("/a/bc", "/a/b"));
  EXPECT_FALSE(is_beneath("/a", "/a/b"));
}

}  // namespace
}  // namespace muniment
