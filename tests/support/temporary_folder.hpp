// A folder for one test, removed by the destructor.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace muniment::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/muniment-test-XXXXXX";
    // Postgres runs as another user if the test runs as root, and must be able to enter the folder.
    if (::mkdtemp(name) == nullptr || ::chmod(name, 0711) != 0) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muniment::test
