// Tests of the private Postgres: creation, supervision, adoption, refusal.
#include "store/postgres/private_postgres.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "support/postgres_fixture.hpp"

namespace muniment::store {
namespace {

namespace fs = std::filesystem;
using test::ask_sql;
using test::TemporaryFolder;

bool eventually(const std::function<bool()>& condition) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

std::string cwd_of(int pid) {
  std::error_code error;
  return fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd", error).string();
}

PrivatePostgresOptions options_for(const std::string& data_dir) { return {data_dir, std::chrono::seconds(60), {}}; }

// Puts a cluster into the data folder, copied from one that was created once: creating one takes seconds.
void put_cluster_in(const std::string& data_dir) {
  static TemporaryFolder origin;
  if (!fs::exists(origin.path() + "/postgres")) {
    auto made = PrivatePostgres::start(options_for(origin.path()));
    ASSERT_TRUE(made) << made.error().message;
  }
  fs::create_directories(data_dir);
  fs::copy(origin.path() + "/postgres", data_dir + "/postgres", fs::copy_options::recursive);
}

TEST(PrivatePostgres, ANewClusterHasChecksumsAndUtf8AndNoTcpPort) {
  TemporaryFolder folder;
  auto postgres = PrivatePostgres::start(options_for(folder.path() + "/data"));
  ASSERT_TRUE(postgres) << postgres.error().message;
  const std::string uri = (*postgres)->uri();
  EXPECT_EQ(ask_sql(uri, "SHOW data_checksums"), "on");
  EXPECT_EQ(ask_sql(uri, "SHOW server_encoding"), "UTF8");
  EXPECT_EQ(ask_sql(uri, "SHOW lc_collate"), "C");
  EXPECT_EQ(ask_sql(uri, "SHOW listen_addresses"), "");
  EXPECT_EQ(ask_sql(uri, "SELECT current_database()"), "muniment");
  for (const char* setting : {"fsync", "synchronous_commit", "full_page_writes", "autovacuum"}) {
    EXPECT_EQ(ask_sql(uri, std::string("SHOW ") + setting), "on") << setting;
  }
}

TEST(PrivatePostgres, TheServerOfARootDaemonIsNotRootAndItsFolderIsClosed) {
  TemporaryFolder folder;
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_TRUE(postgres) << postgres.error().message;
  struct stat about {};
  ASSERT_EQ(stat((folder.path() + "/postgres").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  struct stat process {};
  ASSERT_EQ(stat(("/proc/" + std::to_string((*postgres)->pid())).c_str(), &process), 0);
  EXPECT_EQ(process.st_uid, about.st_uid);
  EXPECT_NE(process.st_uid, 0u);
}

TEST(PrivatePostgres, ADataFolderBehindAClosedOneOfRootIsReached) {
  if (geteuid() != 0) GTEST_SKIP() << "only root's daemon has a user to let through";
  TemporaryFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  auto options = options_for(folder.path() + "/closed/data");
  put_cluster_in(options.data_dir);
  ASSERT_EQ(chmod((folder.path() + "/closed").c_str(), 0700), 0);
  std::vector<std::string> notices;
  options.notice = [&](const std::string& text) { notices.push_back(text); };
  auto postgres = PrivatePostgres::start(options);
  ASSERT_TRUE(postgres) << postgres.error().message;
  EXPECT_EQ(ask_sql((*postgres)->uri(), "SELECT 1"), "1");
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_NE(notices[0].find("pass through " + folder.path()), std::string::npos) << notices[0];
  struct stat about {};
  ASSERT_EQ(stat(folder.path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07, 0u) << "others must stay shut out";
}

TEST(PrivatePostgres, AFolderOfAnotherUserIsNotOpenedAndTheErrorSaysWhatToRun) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  TemporaryFolder folder;
  const std::string closed = folder.path() + "/closed";
  ASSERT_TRUE(fs::create_directories(closed + "/data"));
  ASSERT_EQ(chown(closed.c_str(), 12345, 12345), 0);
  ASSERT_EQ(chmod(closed.c_str(), 0700), 0);
  auto postgres = PrivatePostgres::start(options_for(closed + "/data"));
  ASSERT_FALSE(postgres);
  EXPECT_EQ(postgres.error().code, Errc::denied);
  EXPECT_NE(postgres.error().message.find("setfacl -m u:muniment:x " + closed), std::string::npos)
      << postgres.error().message;
}

TEST(PrivatePostgres, AKilledServerComesBackWithItsData) {
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_TRUE(postgres) << postgres.error().message;
  test::run_sql((*postgres)->uri(), "CREATE TABLE kept AS SELECT 42 AS answer");
  const int first = (*postgres)->pid();
  ASSERT_EQ(kill(first, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return (*postgres)->alive() && (*postgres)->pid() != first; }));
  EXPECT_EQ(ask_sql((*postgres)->uri(), "SELECT answer FROM kept"), "42");
}

TEST(PrivatePostgres, AServerWhoseDaemonDiedIsAdopted) {
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  const pid_t daemon = fork();
  if (daemon == 0) {
    auto postgres = PrivatePostgres::start(options_for(folder.path()));
    if (postgres) test::run_sql((*postgres)->uri(), "CREATE TABLE kept AS SELECT 7 AS answer");
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(daemon, nullptr, 0), daemon);
  std::ifstream pid_file(folder.path() + "/postgres/postmaster.pid");
  int orphan = 0;
  ASSERT_TRUE(pid_file >> orphan);
  ASSERT_EQ(cwd_of(orphan), folder.path() + "/postgres");
  {
    auto postgres = PrivatePostgres::start(options_for(folder.path()));
    ASSERT_TRUE(postgres) << postgres.error().message;
    EXPECT_EQ((*postgres)->pid(), orphan);
    EXPECT_EQ(ask_sql((*postgres)->uri(), "SELECT answer FROM kept"), "7");
    ASSERT_EQ(kill(orphan, SIGKILL), 0);
    EXPECT_TRUE(eventually([&] { return (*postgres)->alive() && (*postgres)->pid() != orphan; }))
        << "an adopted server is supervised too";
    EXPECT_EQ(ask_sql((*postgres)->uri(), "SELECT answer FROM kept"), "7");
  }
  EXPECT_FALSE(fs::exists(folder.path() + "/postgres/postmaster.pid")) << "it was stopped";
}

TEST(PrivatePostgres, APidFileThatNamesAnotherProcessDoesNotPreventTheStart) {
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  std::ofstream(folder.path() + "/postgres/postmaster.pid") << getpid() << "\n" << folder.path() << "\n";
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  EXPECT_TRUE(postgres) << postgres.error().message;
}

TEST(PrivatePostgres, ACopyThatBelongsToRootIsTakenOver) {
  if (geteuid() != 0) GTEST_SKIP() << "a copy of one's own needs nothing";
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  ASSERT_EQ(chmod((folder.path() + "/postgres").c_str(), 0755), 0);
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_TRUE(postgres) << postgres.error().message;
  EXPECT_EQ(ask_sql((*postgres)->uri(), "SELECT 1"), "1");
}

TEST(PrivatePostgres, AClusterOfAnotherMajorVersionIsRefusedWithTheCommandsThatHelp) {
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  std::ofstream(folder.path() + "/postgres/PG_VERSION") << "14\n";
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_FALSE(postgres);
  EXPECT_EQ(postgres.error().code, Errc::conflict);
  for (const char* wanted : {"made by Postgres 14", "apt-get install postgresql-14", "/pg_upgrade "}) {
    EXPECT_NE(postgres.error().message.find(wanted), std::string::npos) << postgres.error().message;
  }
}

TEST(PrivatePostgres, AFolderThatIsNoClusterIsLeftAlone) {
  TemporaryFolder folder;
  fs::create_directories(folder.path() + "/postgres");
  std::ofstream(folder.path() + "/postgres/precious") << "text";
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_FALSE(postgres);
  EXPECT_NE(postgres.error().message.find("not a Postgres cluster"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder.path() + "/postgres/precious"));
}

TEST(PrivatePostgres, ALongDataPathGetsItsSocketInAShortFolder) {
  TemporaryFolder folder;
  const std::string data_dir = folder.path() + "/" + std::string(120, 'x');
  put_cluster_in(data_dir);
  auto postgres = PrivatePostgres::start(options_for(data_dir));
  ASSERT_TRUE(postgres) << postgres.error().message;
  EXPECT_EQ(ask_sql((*postgres)->uri(), "SELECT 1"), "1");
}

TEST(PrivatePostgres, AServerThatCannotStartNamesItsLogAndItsLastWords) {
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  std::ofstream(folder.path() + "/postgres/postgresql.conf", std::ios::app) << "no_such_setting = 1\n";
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_FALSE(postgres);
  EXPECT_NE(postgres.error().message.find("/postgres/server.log"), std::string::npos);
  EXPECT_NE(postgres.error().message.find("no_such_setting"), std::string::npos);
}

TEST(PrivatePostgres, StopEndsTheServerWhileItIsBeingRestarted) {
  TemporaryFolder folder;
  put_cluster_in(folder.path());
  auto postgres = PrivatePostgres::start(options_for(folder.path()));
  ASSERT_TRUE(postgres) << postgres.error().message;
  std::ofstream(folder.path() + "/postgres/postgresql.conf", std::ios::app) << "no_such_setting = 1\n";
  ASSERT_EQ(kill((*postgres)->pid(), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return !(*postgres)->alive(); }));
  (*postgres)->stop();
  EXPECT_FALSE((*postgres)->alive());
  EXPECT_EQ((*postgres)->pid(), 0);
}

}  // namespace
}  // namespace muniment::store
