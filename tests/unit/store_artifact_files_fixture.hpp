// Artifact files in a folder of the test's own, and functions that list its files.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/process/failpoint.hpp"
#include "store/files/artifact_files.hpp"

namespace muniment::store {

namespace fs = std::filesystem;

inline constexpr std::string_view text_type = "text/plain";

class ArtifactFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/muniment-files-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    reopen();
  }
  void TearDown() override {
    failpoint::arm("");
    files_.reset();
    fs::remove_all(folder_);
  }

  void reopen() {
    files_.reset();  // the first one finishes its cleanup before the next one starts
    auto opened = ArtifactFiles::open(options_at(folder_ / "artifacts"));
    ASSERT_TRUE(opened) << opened.error().message;
    files_ = std::move(*opened);
  }

  static ArtifactFilesOptions options_at(const fs::path& root) {
    ArtifactFilesOptions options;
    options.root = root;
    options.bytes_max = 64 << 20;
    return options;
  }

  Result<StoredFile> store(std::string_view bytes) {
    return files_->store(bytes, "r1", "main", make_uuid_v7(Clock().now()), text_type);
  }
  StoredFile stored(std::string_view bytes) {
    auto file = store(bytes);
    EXPECT_TRUE(file) << file.error().message;
    return *file;
  }

  fs::path at(std::string_view path) const { return folder_ / "artifacts" / path; }
  fs::path staged(const Uuid& id) const { return at("staging/" + id.text()); }

  // Returns everything below runs/ and staging/ except folders.
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const char* top : {"runs", "staging"}) {
      for (const auto& entry : fs::recursive_directory_iterator(at(top))) {
        if (!entry.is_directory()) found.insert(fs::relative(entry.path(), at("")));
      }
    }
    return found;
  }

  // Runs `work` in a child process that the armed failpoint must kill.
  void expect_killed_at(const std::string& name, const std::function<void(ArtifactFiles&)>& work) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      failpoint::arm(name + "=kill@1");
      auto mine = ArtifactFiles::open(options_at(folder_ / "artifacts"));
      if (mine) {
        work(**mine);
        mine->reset();  // finishes its cleanup
      }
      ::_exit(0);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << name << " was not passed";
  }

  fs::path folder_;
  std::unique_ptr<ArtifactFiles> files_;
};

}  // namespace muniment::store
