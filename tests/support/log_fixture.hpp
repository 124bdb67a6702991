// A log with all its writers except for the socket: a fresh database, the appender, the artifact
// files, and helpers that start runs and append to them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "store/append/appender.hpp"
#include "store/files/artifact_files.hpp"
#include "store/read/reader.hpp"
#include "support/postgres_fixture.hpp"

namespace muniment::test {

class LogFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Acquire the log like a daemon's start, and release it.
  void open_log();
  void close_log();

  Result<std::vector<events::Receipt>> append(store::AppendRequest request);
  // Appends an event as the daemon. A rejection fails the test.
  events::Receipt append(const std::shared_ptr<store::Run>& run, std::string_view type, const std::string& body,
                         std::vector<store::Row> rows = {});
  std::shared_ptr<store::Run> start_run(const std::string& run_id, const std::string& parent = {});

  // Stores an artifact of the run with its event and row, and removes its staging name.
  store::ArtifactRow put(const std::shared_ptr<store::Run>& run, const std::string& bytes);
  std::string file_of(const store::ArtifactRow& row) const { return folder.path() + "/artifacts/" + row.path; }
  std::string pointer_to(const store::ArtifactRow& row) const {
    return "artifact://" + row.run_id + "/" + row.artifact_id.text();
  }

  std::vector<events::Event> events_of(const std::shared_ptr<store::Run>& run);
  std::vector<std::string> types_of(const std::shared_ptr<store::Run>& run);

  std::int64_t partition_bits = limits::partition_bits_max;  // a derived fixture may set it in its constructor
  TemporaryFolder folder;
  std::string uri;
  Clock clock;
  std::unique_ptr<store::Tail> tail;
  std::unique_ptr<store::RunDirectory> runs;
  std::unique_ptr<store::Appender> appender;
  std::unique_ptr<store::ArtifactFiles> files;
  std::unique_ptr<store::Reader> reader;
};

}  // namespace muniment::test
