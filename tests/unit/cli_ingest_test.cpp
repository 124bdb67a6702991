// Tests of the selection of files in a folder: patterns as gitignore(5) describes them, and the directory walk.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "cli/ingest/file_candidate.hpp"
#include "cli/ingest/folder_walk.hpp"
#include "cli/ingest/ignore_rules.hpp"
#include "cli/ingest/ingest.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

TEST(Globs, MatchAsGitDoes) {
  const std::tuple<const char*, const char*, bool> cases[] = {{"a", "a", true},
                                                              {"a", "b", false},
                                                              {"*.o", "x.o", true},
                                                              {"*.o", ".o", true},
                                                              {"*.o", "x.oo", false},
                                                              {"a*c", "abbc", true},
                                                              {"a*c", "ab/c", false},
                                                              {"a?c", "abc", true},
                                                              {"a?c", "a/c", false},
                                                              {"**/x", "x", true},
                                                              {"**/x", "a/b/x", true},
                                                              {"**/x", "ax", false},
                                                              {"a/**", "a/b/c", true},
                                                              {"a/**", "a", false},
                                                              {"a/**/b", "a/b", true},
                                                              {"a/**/b", "a/x/y/b", true},
                                                              {"a/**/b", "axb", false},
                                                              {"a**b", "axxb", true},
                                                              {"a**b", "a/b", false},
                                                              {"[abc]x", "bx", true},
                                                              {"[!abc]x", "bx", false},
                                                              {"[^abc]x", "dx", true},
                                                              {"[a-c]x", "bx", true},
                                                              {"[]x]y", "]y", true},
                                                              {"[a-]x", "-x", true},
                                                              {"[[:digit:]]", "7", true},
                                                              {"[[:digit:]]", "a", false},
                                                              {"[!a]", "/", false},
                                                              {"\\*", "*", true},
                                                              {"\\*", "a", false},
                                                              {"[a", "a", false},
                                                              {"a\\", "a", false},
                                                              {"*", "", true},
                                                              {"", "", true},
                                                              {"?", "", false},
                                                              {"**", "a", true},
                                                              {"*a*b*c", "xxaxxbxxc", true},
                                                              {"*a*b*c", "xxaxxcxxb", false},
                                                              {"**/a/*.c", "x/a/f.c", true},
                                                              {"**/a/*.c", "x/a/b/f.c", false}};
  for (const auto& [pattern, text, expected] : cases)
    EXPECT_EQ(Glob(pattern).matches(text), expected) << pattern << " on " << text;
}

TEST(Globs, ThatWouldBacktrackForeverDoNot) {
  std::string pattern, text(4'000, 'a');
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(Glob(pattern + "[b]").matches(text));  // with backtracking, this call never returns
}

TEST(Rules, TheLastThatFitsDecides) {
  const IgnoreRules rules("*.log\n!keep.log\n");
  EXPECT_EQ(rules.verdict("a/b.log", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("a/keep.log", false), Verdict::kept);
  EXPECT_EQ(rules.verdict("a/b.txt", false), Verdict::silent);
}

TEST(Rules, ASlashBindsAndASlashAtTheEndMeansFolders) {
  const IgnoreRules rules("/top\nbuild/\ndoc/*.txt\n");
  EXPECT_EQ(rules.verdict("top", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("a/top", false), Verdict::silent);
  EXPECT_EQ(rules.verdict("a/build", true), Verdict::ignored);
  EXPECT_EQ(rules.verdict("a/build", false), Verdict::silent);
  EXPECT_EQ(rules.verdict("doc/a.txt", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("x/doc/a.txt", false), Verdict::silent);
  EXPECT_EQ(rules.verdict("doc/x/a.txt", false), Verdict::silent);
}

TEST(Rules, CommentsBlanksAndEscapes) {
  const IgnoreRules rules("\xef\xbb\xbf# a comment\r\n\n   \n\\#hash\n\\!bang\ntrailing   \nkept\\ \n!\n/\n");
  EXPECT_EQ(rules.verdict("# a comment", false), Verdict::silent);
  EXPECT_EQ(rules.verdict("#hash", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("!bang", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("trailing", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("kept ", false), Verdict::ignored);
  EXPECT_EQ(rules.verdict("kept", false), Verdict::silent);
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "muniment-walk-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text = "x") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  std::set<std::string> walk(const std::string& below = "") {
    std::set<std::string> found;
    skipped_.clear();
    const WalkVisitor visitor{[&](const FoundFile& file) { return found.insert(file.path), success(); },
                              [&](std::string_view path, std::string_view) { skipped_.insert(std::string(path)); },
                              [&] { ++ignored_; }};
    const Status walked = walk_folder((root_ / below).string(), options_, visitor);
    EXPECT_TRUE(walked.ok());
    return found;
  }

  using Paths = std::set<std::string>;
  fs::path root_;
  WalkOptions options_;
  Paths skipped_;
  int ignored_ = 0;
};

TEST_F(Folder, NestedRulesOverruleThoseAbove) {
  write(".gitignore", "*.log\nout/\n/only-here\n");
  write("a/.gitignore", "!wanted.log\n*.tmp\n");
  for (const char* path : {"x.log", "a/x.log", "a/wanted.log", "a/b/wanted.log", "wanted.log", "a/x.tmp", "x.tmp",
                           "out/keep", "only-here", "a/only-here"})
    write(path);
  EXPECT_EQ(walk(), (Paths{"a/wanted.log", "a/b/wanted.log", "x.tmp", "a/only-here"}));
}

TEST_F(Folder, NothingBelowAnIgnoredFolderIsTakenBack) {
  write(".gitignore", "out/\n!out/keep\n");
  write("out/keep");
  write("in");
  EXPECT_EQ(walk(), Paths{"in"});
}

TEST_F(Folder, TheRulesOfTheRepositoryAboveHold) {
  fs::create_directories(root_ / ".git");
  write(".gitignore", "*.log\n/docs/private/\n");
  for (const char* path : {"docs/a.md", "docs/a.log", "docs/private/b.md"}) write(path);
  EXPECT_EQ(walk("docs"), Paths{"a.md"});
  options_.ignore_files = false;
  EXPECT_EQ(walk("docs"), (Paths{"a.md", "a.log", "private/b.md"}));
}

TEST_F(Folder, HiddenFilesOnlyOnRequestAndGitNever) {
  for (const char* path : {".git/config", ".env", ".config/a", "a"}) write(path);
  EXPECT_EQ(walk(), Paths{"a"});
  options_.hidden = true;
  EXPECT_EQ(walk(), (Paths{".env", ".config/a", "a"}));
}

TEST_F(Folder, IncludeTakesFilesAndAllBelowAFolder) {
  for (const char* path : {"a.md", "a.txt", "src/x.cpp", "src/deep/y.h", "lib/src.md", "lib/z.h"}) write(path);
  options_.include.add("*.md");
  options_.include.add("src/");
  EXPECT_EQ(walk(), (Paths{"a.md", "src/x.cpp", "src/deep/y.h", "lib/src.md"}));
  options_.exclude.add("deep/");
  EXPECT_EQ(walk(), (Paths{"a.md", "src/x.cpp", "lib/src.md"}));
}

TEST_F(Folder, LinksAndPipesAreSaidAndNotFollowed) {
  write("real/a");
  fs::create_symlink(root_, root_ / "real" / "loop");
  fs::create_symlink(root_ / "real" / "a", root_ / "link");
  fs::create_symlink("nowhere", root_ / "dangling");
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(walk(), Paths{"real/a"});
  EXPECT_EQ(skipped_, (Paths{"real/loop", "link", "dangling", "pipe"}));
}

TEST_F(Folder, TooManyLevelsAreSaid) {
  std::string path;
  for (int i = 0; i < 250; ++i) path += "d/";
  write("top");
  write(path + "deep");
  EXPECT_EQ(walk(), Paths{"top"});
  EXPECT_EQ(skipped_.size(), 1U);
}

TEST_F(Folder, AFileIsReadWithItsHashOrNotAtAll) {
  write("text", "Ω and more");
  write("binary", std::string("ab\0cd", 5));
  write("image", std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16));
  write("latin", "caf\xe9");
  write("wide", std::string("\xff\xfeh\0i\0", 6));
  write("wide-le", std::string("a\0,\0b\0\r\0\n\0", 10));
  write("wide-be", std::string("\0a\4\x16\0\n", 6));
  write("japanese", std::string("\x92\x63\x34\x6c\0\x4e\n\0", 8));
  write("numbers", std::string("\1\0\2\0\3\0\4\0", 8));
  write("late", std::string(20'000, 'a') + std::string("\0", 1) + "b");
  write("empty", "");
  const auto folder = open_folder(root_.string());
  ASSERT_TRUE(folder.ok());
  const FileCandidate text = read_candidate(folder->get(), "text", false);
  EXPECT_EQ(text.fate, Fate::document);
  EXPECT_TRUE(text.inlined);
  EXPECT_EQ(text.text, "Ω and more");
  EXPECT_EQ(text.hash, sha256("Ω and more"));
  EXPECT_TRUE(held_still(text));
  EXPECT_EQ(read_candidate(folder->get(), "binary", false).why, "binary");
  EXPECT_EQ(read_candidate(folder->get(), "image", false).why, "binary: a PNG image");
  EXPECT_EQ(read_candidate(folder->get(), "numbers", false).why, "binary");
  for (const char* name : {"latin", "wide", "wide-le", "wide-be", "japanese", "late"}) {
    const FileCandidate other = read_candidate(folder->get(), name, false);
    EXPECT_EQ(other.fate, Fate::document) << name;
    EXPECT_FALSE(other.inlined) << name;
  }
  const FileCandidate empty = read_candidate(folder->get(), "empty", false);
  EXPECT_EQ(empty.fate, Fate::document);
  EXPECT_EQ(empty.hash, sha256(""));
  EXPECT_EQ(read_candidate(folder->get(), "none", false).fate, Fate::skipped);
  fs::create_symlink(root_ / "text", root_ / "link");
  EXPECT_EQ(read_candidate(folder->get(), "link", false).fate, Fate::skipped);
  EXPECT_EQ(read_candidate(folder->get(), "link", true).fate, Fate::document);
}

TEST_F(Folder, AFileThatIsWrittenToAfterwardsDidNotHoldStill) {
  write("a", "before");
  const auto folder = open_folder(root_.string());
  const FileCandidate read = read_candidate(folder->get(), "a", false);
  ASSERT_TRUE(held_still(read));
  std::ofstream(root_ / "a", std::ios::app) << "after";
  EXPECT_FALSE(held_still(read));
}

TEST_F(Folder, WhatIsTooLargeIsRefusedWithoutReadingIt) {
  write("large");
  fs::resize_file(root_ / "large", (std::uintmax_t{256} << 20) + 1);
  const auto folder = open_folder(root_.string());
  const FileCandidate large = read_candidate(folder->get(), "large", false);
  EXPECT_EQ(large.fate, Fate::failed);
  EXPECT_NE(large.why.find("256"), std::string::npos);
}

// A daemon that answers each request with the next of `answers` and records the requests.
class Answering {
 public:
  explicit Answering(std::vector<std::string> answers) {
    char folder[] = "/tmp/muniment-ingest-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/s";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    thread_ = std::thread([this, answers = std::move(answers)] {
      const int connection = ::accept(socket_, nullptr, nullptr);
      int id = 0;
      for (const std::string& answer : answers) {
        std::string& line = requests_.emplace_back();
        for (char c = 0; c != '\n' && ::read(connection, &c, 1) == 1;) line += c;
        const std::string reply = "{\"jsonrpc\":\"2.0\",\"id\":" + std::to_string(++id) + "," + answer + "}\n";
        EXPECT_EQ(::send(connection, reply.data(), reply.size(), MSG_NOSIGNAL), static_cast<ssize_t>(reply.size()));
      }
      ::close(connection);
    });
  }
  ~Answering() {
    finish();
    ::close(socket_);
    fs::remove_all(folder_);
  }
  const std::vector<std::string>& finish() {
    if (thread_.joinable()) thread_.join();
    return requests_;
  }
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
  int socket_ = -1;
  std::vector<std::string> requests_;
  std::thread thread_;
};

std::string refusal_of(std::string_view why) {
  return "\"error\":{\"code\":-32001,\"message\":\"" + std::string(why) +
         "\",\"data\":{\"code\":\"invalid_argument\"}}";
}
std::string taken_in(std::string_view id) {
  return R"("result":{"documents":[{"id":")" + std::string(id) + R"("}],"errors":[],"seq":3})";
}

Status send_three(const Answering& daemon, IngestReport& report) {
  auto client = Client::connect(daemon.path());
  if (!client) return client.error();
  IngestSender sender(*client, {"notes", {}, "untrusted", {}}, report);
  for (const char* id : {"a", "b", "c"}) {
    FileCandidate file;
    file.inlined = true;
    file.text = id;
    RETURN_IF_ERROR(sender.add(id, "here", file, true));
  }
  return sender.finish(false);
}

TEST(Sender, ARefusedRequestIsRepeatedForEachDocumentAndTheOneAtFaultIsNamed) {
  Answering daemon({refusal_of("at byte 70"), taken_in("a"), refusal_of("at byte 9"), taken_in("c")});
  IngestReport report;
  ASSERT_TRUE(send_three(daemon, report).ok());
  EXPECT_EQ(daemon.finish().size(), 4U);
  EXPECT_EQ(report.added, 2U);
  ASSERT_EQ(report.failed.count, 1U);
  EXPECT_EQ(report.failed.first.front().first, "b");
  EXPECT_NE(report.failed.first.front().second.find("at byte 9"), std::string::npos);
}

TEST(Sender, ARefusalThatIsTheSameForAllDocumentsEndsTheIngestion) {
  Answering daemon(
      {refusal_of("no such tag"), refusal_of("no such tag"), refusal_of("no such tag"), refusal_of("no such tag")});
  IngestReport report;
  EXPECT_FALSE(send_three(daemon, report).ok());
  EXPECT_EQ(report.failed.count, 0U);
}

}  // namespace
}  // namespace muniment::cli
