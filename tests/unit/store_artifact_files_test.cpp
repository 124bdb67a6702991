// Tests of artifact files on a real file system: the files after each step, after each failure, and after a crash at
// each step (a crash is a child process that a failpoint kills).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "unit/store_artifact_files_fixture.hpp"

namespace muniment::store {
namespace {

TEST_F(ArtifactFilesTest, WhatIsStoredIsReadBackWithItsHash) {
  const StoredFile file = stored("hello");
  EXPECT_EQ(file.size_bytes, 5);
  EXPECT_EQ(file.hash, sha256("hello"));
  EXPECT_EQ(*files_->read(file, 0, 5), "hello");
  EXPECT_EQ(*files_->read(file, 1, 3), "ell");
  EXPECT_EQ(*files_->read(file, 5, 0), "");
  EXPECT_TRUE(files_->check(file));
}

TEST_F(ArtifactFilesTest, TheStagingNameGoesWithTheCommit) {
  const StoredFile file = stored("hello");
  EXPECT_TRUE(fs::exists(staged(file.artifact_id)));
  EXPECT_EQ(fs::hard_link_count(at(file.path)), 2u);
  files_->committed(file.artifact_id);
  reopen();
  EXPECT_EQ(names(), std::set<std::string>{file.path});
}

TEST_F(ArtifactFilesTest, ARefusedEventTakesBothNamesAway) {
  files_->abandon(stored("hello"));
  reopen();
  EXPECT_TRUE(names().empty());
}

TEST_F(ArtifactFilesTest, NothingIsEverReplaced) {
  const StoredFile file = stored("first");
  files_->committed(file.artifact_id);
  reopen();
  const auto again = files_->store("second", "r1", "main", file.artifact_id, text_type);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(*files_->read(file, 0, 5), "first");
  EXPECT_EQ(names(), std::set<std::string>{file.path});
}

TEST_F(ArtifactFilesTest, StreamedAndStoredBytesAreTheSame) {
  for (const std::size_t size : {0u, 1u, 262'144u, 262'145u, 20'000'000u}) {
    std::string bytes(size, 'x');
    for (std::size_t i = 0; i < size; i += 97) bytes[i] = static_cast<char>(i);
    auto write = files_->begin(static_cast<std::int64_t>(size));
    ASSERT_TRUE(write);
    for (std::size_t i = 0; i < size; i += 65'536) {
      ASSERT_TRUE((*write)->append(std::string_view(bytes).substr(i, 65'536)));
    }
    EXPECT_EQ((*write)->size(), static_cast<std::int64_t>(size));
    const auto file = (*write)->publish("r1", "a:b", make_uuid_v7(Clock().now()), text_type);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->hash, sha256(bytes));
    EXPECT_TRUE(files_->check(*file));
    EXPECT_EQ(file->pieces_root.has_value(), size > (1 << 20));
  }
}

TEST_F(ArtifactFilesTest, AWriteThatIsDroppedLeavesNothing) {
  {
    auto write = files_->begin(0);
    ASSERT_TRUE((*write)->append(std::string(1 << 20, 'x')));
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(ArtifactFilesTest, AnArtifactOverTheLimitIsTooLarge) {
  const auto refused = files_->begin((64 << 20) + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::too_large);
  auto write = files_->begin(0);
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 64; ++i) ASSERT_TRUE((*write)->append(piece));
  const Status over = (*write)->append("x");
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::too_large);
  EXPECT_EQ(over.error().limit, 64 << 20);
}

TEST_F(ArtifactFilesTest, BelowTheReserveOfTheDiskAPutIsRefusedWithTheNumbers) {
  ArtifactFilesOptions options = options_at(folder_ / "reserved");
  options.reserve_bytes = files_->disk().free_bytes * 2;
  auto reserved = ArtifactFiles::open(options);
  ASSERT_TRUE(reserved);
  EXPECT_TRUE((*reserved)->below_reserve());
  const std::string small(limits::artifact_in_reserve_bytes_max, 'x');
  EXPECT_TRUE((*reserved)->store(small, "r1", "main", make_uuid_v7({}), text_type));
  const auto refused = (*reserved)->store(small + "x", "r1", "main", make_uuid_v7({}), text_type);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::over_budget);
  EXPECT_NE(refused.error().message.find(std::to_string(options.reserve_bytes)), std::string::npos);
  EXPECT_FALSE(files_->below_reserve());

  options = options_at(folder_ / "exhausted");
  options.reserve_bytes = files_->disk().free_bytes * 2 * limits::artifact_reserve_divisor;
  auto exhausted = ArtifactFiles::open(options);
  ASSERT_TRUE(exhausted);
  EXPECT_FALSE((*exhausted)->store(small, "r1", "main", make_uuid_v7({}), text_type));
}

TEST_F(ArtifactFilesTest, PathsThatLeaveTheRootAreRefused) {
  std::ofstream(folder_ / "secret") << "secret";
  for (const char* path : {"../secret", "runs/../../secret", "/etc/passwd", "", "runs//x", "./x", "runs/.."}) {
    const auto read = files_->read({{}, path, {}, 1}, 0, 1);
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().code, Errc::invalid_argument) << path;
  }
  EXPECT_EQ(files_->read({{}, std::string("runs/a\0b", 8), {}, 1}, 0, 1).error().code, Errc::invalid_argument);
}

TEST_F(ArtifactFilesTest, AMissingFileIsNotFound) {
  const StoredFile file = stored("hello");
  fs::remove(at(file.path));
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::not_found);
  EXPECT_EQ(files_->check(file).error().code, Errc::not_found);
}

TEST_F(ArtifactFilesTest, AShortFileIsCorrupt) {
  const StoredFile file = stored("hello");
  fs::resize_file(at(file.path), 3);
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
  EXPECT_EQ(files_->read(file, INT64_MAX, 1).error().code, Errc::invalid_argument);
  EXPECT_EQ(files_->read(file, 2, INT64_MAX).error().code, Errc::invalid_argument);
  EXPECT_EQ(files_->read(file, -1, 1).error().code, Errc::invalid_argument);
}

TEST_F(ArtifactFilesTest, ASymbolicLinkInThePlaceIsCorruptAndNotFollowed) {
  const StoredFile file = stored("hello");
  fs::rename(at(file.path), folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", at(file.path));
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
}

TEST_F(ArtifactFilesTest, AFolderThatBecameALinkIsCorruptForReadsAndWrites) {
  const StoredFile file = stored("hello");
  fs::rename(at("runs/r1"), folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", at("runs/r1"));
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
  const auto written = store("more");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::corrupt);
}

TEST_F(ArtifactFilesTest, AFifoInThePlaceIsCorruptAndNeverHangs) {
  const StoredFile file = stored("hello");
  fs::remove(at(file.path));
  ASSERT_EQ(::mkfifo(at(file.path).c_str(), 0600), 0);
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
  EXPECT_EQ(files_->check(file).error().code, Errc::corrupt);
}

TEST_F(ArtifactFilesTest, AFolderThatWasRemovedIsMadeAgain) {
  stored("hello");
  fs::remove_all(at("runs/r1"));
  const StoredFile file = stored("more");
  EXPECT_EQ(*files_->read(file, 0, 4), "more");
}

TEST_F(ArtifactFilesTest, AFailedSyncIsAnsweredByOneNewFile) {
  for (const char* point :
       {"artifact.fsync_eio", "artifact.folder_fsync_eio", "artifact.write_eio", "artifact.open_emfile"}) {
    failpoint::arm(std::string(point) + "=error@1");
    const StoredFile file = stored("hello");
    EXPECT_EQ(*files_->read(file, 0, 5), "hello") << point;
    EXPECT_EQ(fs::hard_link_count(at(file.path)), 2u) << point;
  }
}

TEST_F(ArtifactFilesTest, ASecondFailureIsASystemErrorAndLeavesNothing) {
  for (const char* point :
       {"artifact.fsync_eio", "artifact.folder_fsync_eio", "artifact.write_eio", "artifact.open_emfile"}) {
    failpoint::arm(std::string(point) + "=error@1+");
    const auto file = store("hello");
    failpoint::arm("");
    ASSERT_FALSE(file) << point;
    EXPECT_EQ(file.error().code, Errc::system_error) << point;
    EXPECT_TRUE(names().empty()) << point;
  }
}

TEST_F(ArtifactFilesTest, AFailedSyncOfAStreamIsASystemErrorAtOnce) {
  auto write = files_->begin(0);
  ASSERT_TRUE((*write)->append(std::string(1 << 20, 'x')));
  failpoint::arm("artifact.fsync_eio=error@1");
  const auto file = (*write)->publish("r1", "main", make_uuid_v7({}), text_type);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::system_error);
  EXPECT_TRUE(names().empty());
}

TEST_F(ArtifactFilesTest, AFullDiskIsOverBudget) {
  failpoint::arm("artifact.write_enospc=error@1");
  const auto file = store("hello");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::over_budget);
  EXPECT_TRUE(names().empty());
}

TEST_F(ArtifactFilesTest, AStartTakesAwayWhatHasNoEvent) {
  const StoredFile lost = stored("lost");
  const StoredFile kept = stored("kept");
  ASSERT_TRUE(files_->sweep_staging([&](const Uuid& id) { return Result<bool>(id == kept.artifact_id); }));
  EXPECT_EQ(names(), std::set<std::string>{kept.path});
}

TEST_F(ArtifactFilesTest, AStagingNameThatIsTheOnlyOneOfAnAcknowledgedFileStays) {
  const StoredFile file = stored("hello");
  fs::remove(at(file.path));
  ASSERT_TRUE(files_->sweep_staging([](const Uuid&) { return Result<bool>(true); }));
  EXPECT_TRUE(fs::exists(staged(file.artifact_id)));
}

TEST_F(ArtifactFilesTest, ASweepThatCannotAskTheTableChangesNothing) {
  const StoredFile file = stored("hello");
  const Status swept = files_->sweep_staging(
      [](const Uuid&) { return Result<bool>(Error(Errc::unavailable, "Postgres does not answer")); });
  ASSERT_FALSE(swept);
  EXPECT_EQ(swept.error().code, Errc::unavailable);
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(ArtifactFilesTest, AFileThatNoStagingNameExplainsIsNeverTidiedAway) {
  const StoredFile file = stored("hello");
  files_->committed(file.artifact_id);
  reopen();
  ASSERT_TRUE(files_->sweep_staging([](const Uuid&) { return Result<bool>(false); }));
  EXPECT_EQ(names(), std::set<std::string>{file.path});
}

TEST_F(ArtifactFilesTest, AKillAnywhereInAPutLeavesNothingAfterTheNextStart) {
  files_.reset();
  for (const char* point : {"artifact.after_write", "artifact.after_fsync", "artifact.after_stage",
                            "artifact.after_link", "artifact.after_folder_fsync", "artifact.before_unstage"}) {
    expect_killed_at(point, [](ArtifactFiles& files) {
      const auto file = files.store("hello", "r1", "main", make_uuid_v7(Clock().now()), text_type);
      if (file) files.committed(file->artifact_id);
    });
    reopen();
    ASSERT_TRUE(files_->sweep_staging([](const Uuid&) { return Result<bool>(false); }));
    EXPECT_TRUE(names().empty()) << point;
    files_.reset();
  }
}

TEST_F(ArtifactFilesTest, ADamagedFileIsPutBackOnlyByBytesThatFit) {
  const StoredFile file = stored("hello");
  files_->committed(file.artifact_id);
  fs::permissions(at(file.path), fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(at(file.path)) << "jello";
  std::ofstream(folder_ / "wrong") << "yellow";
  std::ofstream(folder_ / "right") << "hello";
  EXPECT_EQ(files_->repair(file, (folder_ / "wrong").string()).error().code, Errc::invalid_argument);
  EXPECT_EQ(files_->read(file, 0, 5).error().code, Errc::corrupt);
  ASSERT_TRUE(*files_->repair(file, (folder_ / "right").string()));
  EXPECT_EQ(*files_->read(file, 0, 5), "hello");
  const auto inode = [&] {
    struct stat about {};
    ::stat(at(file.path).c_str(), &about);
    return about.st_ino;
  };
  const auto mended = inode();
  EXPECT_FALSE(*files_->repair(file, (folder_ / "right").string())) << "it is as it was recorded";
  EXPECT_EQ(inode(), mended);
  EXPECT_EQ(files_->repair(file, (folder_ / "wrong").string()).error().code, Errc::invalid_argument);
  reopen();
  EXPECT_EQ(names(), std::set<std::string>{file.path});
}

TEST_F(ArtifactFilesTest, AMissingFolderOrALinkIsRepairedToo) {
  const StoredFile file = stored("hello");
  std::ofstream(folder_ / "right") << "hello";
  fs::remove_all(at("runs/r1"));
  ASSERT_TRUE(files_->repair(file, (folder_ / "right").string()));
  fs::remove(at(file.path));
  fs::create_symlink("/etc/passwd", at(file.path));
  ASSERT_TRUE(files_->repair(file, (folder_ / "right").string()));
  EXPECT_EQ(*files_->read(file, 0, 5), "hello");
}

TEST_F(ArtifactFilesTest, ARepairFromWhatIsNoFileIsRefused) {
  const StoredFile file = stored("hello");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(files_->repair(file, (folder_ / "fifo").string()).error().code, Errc::invalid_argument);
  EXPECT_EQ(files_->repair(file, (folder_ / "absent").string()).error().code, Errc::not_found);
}

TEST_F(ArtifactFilesTest, AnUploadGoesOnWhereItStopped) {
  const Uuid id = make_uuid_v7(Clock().now());
  EXPECT_EQ(files_->upload_size(id).error().code, Errc::not_found);
  EXPECT_EQ(files_->upload_append(id, 3, "lo").error().code, Errc::not_found);
  ASSERT_TRUE(files_->upload_append(id, 0, "hel"));
  reopen();
  EXPECT_EQ(*files_->upload_size(id), 3);
  const Status overlap = files_->upload_append(id, 2, "llo");
  ASSERT_FALSE(overlap);
  EXPECT_EQ(overlap.error().code, Errc::conflict);
  EXPECT_EQ(overlap.error().limit, 3);
  ASSERT_TRUE(files_->upload_append(id, 3, "lo"));
  const auto file = files_->upload_publish(id, "r1", "main", make_uuid_v7(Clock().now()), text_type);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->hash, sha256("hello"));
  EXPECT_EQ(*files_->read(*file, 0, 5), "hello");
  EXPECT_EQ(files_->upload_size(id).error().code, Errc::not_found);
  EXPECT_EQ(files_->upload_append(id, 5, "!").error().code, Errc::not_found);
}

TEST_F(ArtifactFilesTest, AFailedPieceDoesNotCount) {
  const Uuid id = make_uuid_v7(Clock().now());
  ASSERT_TRUE(files_->upload_append(id, 0, "hel"));
  failpoint::arm("artifact.write_enospc=error@1");
  EXPECT_EQ(files_->upload_append(id, 3, "lo").error().code, Errc::over_budget);
  EXPECT_EQ(*files_->upload_size(id), 3);
}

TEST_F(ArtifactFilesTest, AnUploadWhoseSyncFailsIsLostAndSaysSo) {
  const Uuid id = make_uuid_v7(Clock().now());
  ASSERT_TRUE(files_->upload_append(id, 0, "hello"));
  failpoint::arm("artifact.fsync_eio=error@1");
  EXPECT_EQ(files_->upload_publish(id, "r1", "main", make_uuid_v7({}), text_type).error().code, Errc::system_error);
  EXPECT_EQ(files_->upload_size(id).error().code, Errc::not_found);
  EXPECT_TRUE(names().empty());
}

TEST_F(ArtifactFilesTest, AnUploadExpiresAfterItsTime) {
  const Uuid old_one = make_uuid_v7(Clock().now());
  const Uuid new_one = make_uuid_v7(Clock().now());
  ASSERT_TRUE(files_->upload_append(old_one, 0, "old"));
  ASSERT_TRUE(files_->upload_append(new_one, 0, "new"));
  utimbuf times{};
  times.actime = times.modtime = ::time(nullptr) - 7200;
  ASSERT_EQ(::utime(at("uploads/" + old_one.text()).c_str(), &times), 0);
  EXPECT_EQ(files_->expire_uploads(3600), 1u);
  EXPECT_FALSE(files_->upload_size(old_one));
  EXPECT_TRUE(files_->upload_size(new_one));
}

TEST_F(ArtifactFilesTest, ManyThreadsStoreIntoNewStepsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto file = files_->store("x", "r" + std::to_string(i % 3), "s" + std::to_string(t % 2),
                                        make_uuid_v7(Clock().now()), text_type);
        if (!file)
          ++failures;
        else
          files_->committed(file->artifact_id);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  reopen();
  EXPECT_EQ(names().size(), 160u);
  EXPECT_TRUE(fs::is_empty(at("staging")));
}

}  // namespace
}  // namespace muniment::store
