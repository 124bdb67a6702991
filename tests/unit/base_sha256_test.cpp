#include "base/crypto/sha256.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "base/crypto/git_object.hpp"

namespace muniment {
namespace {

constexpr std::string_view hash_of_abc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // FIPS 180-4

TEST(Sha256, TheStandardsExampleHashesAsItSays) {
  EXPECT_EQ(to_hex(sha256("abc")), hash_of_abc);
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, PartsHashAsTheirConcatenation) { EXPECT_EQ(sha256({"a", "", "bc"}), sha256("abc")); }

TEST(Sha256, AStreamHashesAsItsBytesAndStartsAnew) {
  Sha256 stream;
  stream.update("a");
  stream.update("bc");
  EXPECT_EQ(to_hex(stream.finish()), hash_of_abc);
  stream.update("abc");
  Sha256 moved = std::move(stream);
  EXPECT_EQ(to_hex(moved.finish()), hash_of_abc);
}

TEST(Sha256, SaltsDoNotRepeat) {
  std::set<Salt> seen;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(seen.insert(random_salt()).second);
}

TEST(Sha256, AForkedChildDrawsOtherSaltsThanItsParent) {
  random_salt();  // the pool is full now, and the child process inherits it
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Salt salt = random_salt();
    _exit(write(ends[1], salt.data(), salt.size()) == 32 ? 0 : 1);
  }
  Salt theirs{};
  ASSERT_EQ(read(ends[0], theirs.data(), theirs.size()), 32);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NE(random_salt(), theirs);
  close(ends[0]);
  close(ends[1]);
}

TEST(Sha256, LargeRandomRequestsAreFilledToTheEnd) {
  std::string bytes(100'000, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  EXPECT_NE(bytes.substr(99'900), std::string(100, '\0'));
}

TEST(Hex, RoundTripsAndRefusesWhatIsNotHex) {
  const std::string bytes("\x00\x7f\xff", 3);
  EXPECT_EQ(to_hex(bytes), "007fff");
  EXPECT_EQ(from_hex("007fFF"), bytes);
  EXPECT_EQ(from_hex("0"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
}

TEST(GitObject, IdsAreThoseOfGit) {
  EXPECT_EQ(git_object_id("blob", "", git_sha1_digits), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(git_object_id("tree", "", git_sha1_digits), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
  EXPECT_EQ(git_object_id("blob", "", 64), "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
}

TEST(Hex, AHashIsSixtyFourLowerCaseDigits) {
  EXPECT_EQ(hash_from_hex(hash_of_abc), sha256("abc"));
  std::string upper(hash_of_abc);
  upper[0] = 'B';
  EXPECT_EQ(hash_from_hex(upper), std::nullopt);
  EXPECT_EQ(hash_from_hex(hash_of_abc.substr(1)), std::nullopt);
}

}  // namespace
}  // namespace muniment
