#include "audit/keyring.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace muniment::audit {
namespace {

constexpr std::string_view name = "muniment.test/log";
const Checkpoint checkpoint{std::string(name), 7, sha256("root")};

bool signed_by(const Note& note, const VerifierKey& key) {
  const auto signers = signers_of(note, {&key, 1});
  return signers && signers->size() == 1;
}

Keyring with_key(const std::string& folder) {
  Keyring keys = Keyring::open(folder).value();
  EXPECT_TRUE(keys.prepare_next(std::string(name)).ok());
  EXPECT_TRUE(keys.adopt_next().ok());
  return keys;
}

}  // namespace

TEST(Keyring, IsEmptyAtFirst) {
  const test::TemporaryFolder folder;
  const Keyring keys = Keyring::open(folder.path() + "/keys").value();
  EXPECT_FALSE(keys.can_sign());
  EXPECT_TRUE(keys.verifiers().empty());
  EXPECT_FALSE(keys.last_signed());
  EXPECT_EQ(std::filesystem::status(folder.path() + "/keys").permissions(), std::filesystem::perms::owner_all);
}

TEST(Keyring, TheFirstKeySignsAndIsFoundAgain) {
  const test::TemporaryFolder folder;
  const VerifierKey key = with_key(folder.path() + "/k").verifiers().front();
  Keyring keys = Keyring::open(folder.path() + "/k").value();
  ASSERT_TRUE(keys.can_sign());
  EXPECT_EQ(keys.verifiers(), std::vector<VerifierKey>{key});
  EXPECT_TRUE(signed_by(keys.sign(checkpoint), key));
  struct stat about {};
  ASSERT_EQ(::stat((folder.path() + "/k/log.key").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
}

TEST(Keyring, ARotationSignsWithBothUntilTheOldOneIsForgotten) {
  const test::TemporaryFolder folder;
  Keyring keys = with_key(folder.path() + "/k");
  ASSERT_TRUE(keys.prepare_next(std::string(name)).ok());
  ASSERT_TRUE(keys.adopt_next().ok());
  ASSERT_EQ(keys.verifiers().size(), 2U);
  ASSERT_TRUE(keys.has_old());
  const Note both = keys.sign(checkpoint);
  EXPECT_TRUE(signed_by(both, keys.verifiers()[0]));
  EXPECT_TRUE(signed_by(both, keys.verifiers()[1]));
  ASSERT_TRUE(keys.forget_old().ok());
  const Note later = Keyring::open(folder.path() + "/k").value().sign(checkpoint);
  EXPECT_FALSE(signed_by(later, keys.verifiers()[0]));
  EXPECT_TRUE(signed_by(later, keys.verifiers()[1]));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/k/log.key.old"));
}

// Each step of a rotation may be the last one before a crash; the next adopt() completes the rotation.
TEST(Keyring, ARotationCutBetweenItsStepsIsFinishedByAdoptingAgain) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/k";
  const VerifierKey first = with_key(path).verifiers().front();
  VerifierKey second;
  {
    Keyring keys = Keyring::open(path).value();
    ASSERT_TRUE(keys.prepare_next(std::string(name)).ok());
    second = keys.next()->verifier();
  }
  std::filesystem::rename(path + "/log.key", path + "/log.key.old");  // simulates a crash after this step
  Keyring keys = Keyring::open(path).value();
  ASSERT_TRUE(keys.next().has_value());
  ASSERT_TRUE(keys.adopt_next().ok());
  EXPECT_EQ(keys.verifiers(), (std::vector<VerifierKey>{first, second}));
  EXPECT_TRUE(signed_by(keys.sign(checkpoint), first));
  EXPECT_TRUE(signed_by(keys.sign(checkpoint), second));
}

TEST(Keyring, APreparedKeyThatWasNotAnnouncedIsDropped) {
  const test::TemporaryFolder folder;
  Keyring keys = with_key(folder.path() + "/k");
  ASSERT_TRUE(keys.prepare_next(std::string(name)).ok());
  ASSERT_TRUE(keys.drop_next().ok());
  EXPECT_FALSE(Keyring::open(folder.path() + "/k").value().next());
  EXPECT_EQ(keys.verifiers().size(), 1U);
}

TEST(Keyring, APrivateKeyThatOthersMayReadIsRefused) {
  const test::TemporaryFolder folder;
  with_key(folder.path() + "/k");
  std::filesystem::permissions(folder.path() + "/k/log.key", std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  const auto keys = Keyring::open(folder.path() + "/k");
  ASSERT_FALSE(keys.ok());
  EXPECT_EQ(keys.error().code, Errc::denied);
  EXPECT_NE(keys.error().message.find("chmod 600"), std::string::npos);
}

TEST(Keyring, RemembersWhatItSigned) {
  const test::TemporaryFolder folder;
  Keyring keys = with_key(folder.path() + "/k");
  const std::string note = keys.sign(checkpoint).signed_text();
  ASSERT_TRUE(keys.remember(checkpoint, note).ok());
  const auto last = Keyring::open(folder.path() + "/k").value().last_signed();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->checkpoint.size, 7);
  EXPECT_EQ(last->note, note);
  std::ofstream(folder.path() + "/k/last_signed") << "nonsense";
  EXPECT_EQ(Keyring::open(folder.path() + "/k").error().code, Errc::corrupt);
}

}  // namespace muniment::audit
