#include "base/crypto/signed_note.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace muniment {
namespace {

// The example key and note of the C2SP specification.
constexpr std::string_view example_key = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
constexpr std::string_view example_note =
    "This is an example message.\n"
    "\n"
    "\xE2\x80\x94 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

VerifierKey key_of(std::string_view text) { return VerifierKey::parse(text).value(); }

NoteSigner signer(std::string name = "muniment.test/log", KeyType type = KeyType::ed25519) {
  Seed seed{};
  seed[0] = 7;
  return {std::move(name), type, SigningKey::from_seed(seed)};
}

}  // namespace

TEST(Ed25519, SignsAsRfc8032Says) {
  // RFC 8032, section 7.1, test 2.
  const auto secret = from_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb").value();
  Seed seed;
  std::copy(secret.begin(), secret.end(), seed.begin());
  const SigningKey key = SigningKey::from_seed(seed);
  const PublicKey public_key = key.public_key();
  EXPECT_EQ(to_hex(std::string_view(reinterpret_cast<const char*>(public_key.data()), 32)),
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const Signature signature = key.sign("\x72");
  EXPECT_EQ(
      to_hex(std::string_view(reinterpret_cast<const char*>(signature.data()), 64)),
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_EQ(key.seed(), seed);
}

TEST(SignedNote, TheSpecificationsExampleVerifies) {
  const Note note = Note::parse(example_note).value();
  EXPECT_EQ(note.text, "This is an example message.\n");
  const std::vector<VerifierKey> keys{key_of(example_key)};
  const auto signers = signers_of(note, keys);
  ASSERT_TRUE(signers.ok());
  ASSERT_EQ(signers->size(), 1U);
  EXPECT_EQ(note.signed_text(), example_note);
  EXPECT_EQ(keys[0].text(), example_key);
}

TEST(SignedNote, AChangedTextOrSignatureOfAKnownKeyIsCorrupt) {
  const std::vector<VerifierKey> keys{key_of(example_key)};
  Note changed = Note::parse(example_note).value();
  changed.text = "This is an example massage.\n";
  EXPECT_EQ(signers_of(changed, keys).error().code, Errc::corrupt);
  Note cut = Note::parse(example_note).value();
  cut.signatures[0].bytes.pop_back();
  EXPECT_EQ(signers_of(cut, keys).error().code, Errc::corrupt);
}

TEST(SignedNote, SignaturesOfUnknownKeysAreIgnored) {
  const std::vector<VerifierKey> keys{signer().verifier()};
  const auto signers = signers_of(Note::parse(example_note).value(), keys);
  ASSERT_TRUE(signers.ok());
  EXPECT_TRUE(signers->empty());
}

TEST(SignedNote, SeveralSignaturesAndACosignatureVerifySideBySide) {
  const NoteSigner log = signer();
  const NoteSigner witness = signer("witness.test", KeyType::cosignature);
  Note note;
  note.text = Checkpoint{"muniment.test/log", 12, sha256("root")}.text();
  note.signatures = {log.sign(note.text), witness.sign(note.text, 1'700'000'000)};
  const Note read = Note::parse(note.signed_text()).value();
  const std::vector<VerifierKey> keys{witness.verifier(), log.verifier()};
  const auto signers = signers_of(read, keys);
  ASSERT_TRUE(signers.ok()) << signers.error().message;
  ASSERT_EQ(signers->size(), 2U);
  EXPECT_EQ(signers->at(0).key, &keys[1]);
  EXPECT_EQ(signers->at(1).key, &keys[0]);
  EXPECT_EQ(signers->at(1).time_s, 1'700'000'000U);
  // The timestamp is signed too.
  Note later = read;
  later.signatures[1].bytes[7] ^= 1;
  EXPECT_FALSE(signers_of(later, keys).ok());
}

TEST(SignedNote, RefusesWhatTheSpecificationForbids) {
  const std::string good(example_note);
  for (const std::string& bad :
       {std::string(), std::string("text\n"), good.substr(0, good.size() - 1), good + "x\n", "a\x01" + good,
        std::string("\xFF") + good, std::string("text\n\n"), std::string("text\n\n\xE2\x80\x94 name\n"),
        std::string("text\n\n\xE2\x80\x94 name AAAA\n"), std::string(70'000, 'a') + good}) {
    EXPECT_EQ(Note::parse(bad).error().code, Errc::corrupt) << bad.substr(0, 40);
  }
}

TEST(VerifierKeys, RefuseWhatDoesNotFit) {
  const std::string good(example_key);
  for (const std::string& bad :
       {std::string(), std::string("name"), std::string("a+b"), "x" + good, good + "A", good.substr(1),
        std::string("example.com/foo+530d903b") + good.substr(24),
        std::string("example.com/foo+530D903a") + good.substr(24), std::string("a b+530d903a+AA==")}) {
    EXPECT_EQ(VerifierKey::parse(bad).error().code, Errc::invalid_argument) << bad;
  }
  const auto keys = parse_verifier_keys("# kept by the auditor\n\n" + good + "\r\n" + signer().verifier().text());
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->size(), 2U);
  EXPECT_FALSE(parse_verifier_keys("nonsense\n").ok());
}

TEST(NoteSigner, ComesBackFromItsText) {
  const NoteSigner made("muniment.test/log", KeyType::ed25519, SigningKey::generate());
  const NoteSigner read = NoteSigner::parse(made.text() + "\n").value();
  EXPECT_EQ(read.verifier(), made.verifier());
  EXPECT_EQ(read.sign("text\n").bytes, made.sign("text\n").bytes);
  EXPECT_FALSE(NoteSigner::parse(made.verifier().text()).ok());
}

TEST(Checkpoints, ComeBackFromTheirText) {
  const Checkpoint made{"muniment.local/0b1c", 20'852'163, sha256("x")};
  const Checkpoint read = Checkpoint::parse(made.text()).value();
  EXPECT_EQ(read.origin, made.origin);
  EXPECT_EQ(read.size, made.size);
  EXPECT_EQ(read.root, made.root);
  for (const std::string& bad :
       {std::string("o\n1\n"), "o\n01\n" + made.text().substr(29), made.text() + "more\n", "\n" + made.text(),
        std::string("o\n-1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"),
        std::string("o\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I\n")}) {
    EXPECT_EQ(Checkpoint::parse(bad).error().code, Errc::corrupt) << bad;
  }
}

RC_GTEST_PROP(SignedNote, NoBytesMakeTheParserDoWorseThanRefuse, (const std::string& bytes)) {
  if (const auto note = Note::parse(bytes)) RC_ASSERT(note->signed_text() == bytes);
  (void)VerifierKey::parse(bytes);
  (void)Checkpoint::parse(bytes);
}

}  // namespace muniment
