// Tests of files of 256 archived bodies: they are read back exactly, and all other files are refused.
#include "base/files/body_bundle.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/files/zstd.hpp"
#include "base/limits.hpp"

namespace muniment {
namespace {

constexpr std::string_view magic = "muniment-bodies/1\n";

Salt salt_of(std::uint8_t byte) {
  Salt salt;
  salt.fill(byte);
  return salt;
}

std::string present(std::size_t length, std::string_view body) {
  std::string bytes(1, '\x01');
  bytes += std::string(32, 's');
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes + std::string(body);
}

// Returns the error for a file with these uncompressed bytes.
Errc refusal_of(const std::string& bytes) {
  const auto decoded = decode_bodies(compress(bytes));
  return decoded ? Errc::system_error : decoded.error().code;
}

RC_GTEST_PROP(BodyBundle, ComesBackAsItWent, ()) {
  BodyBundle bundle(256);
  for (auto& event : bundle) {
    if (*rc::gen::inRange(0, 4) == 0) continue;
    event = ArchivedBody{salt_of(*rc::gen::arbitrary<std::uint8_t>()), *rc::gen::string<std::string>()};
  }
  const auto decoded = decode_bodies(encode_bodies(bundle));
  RC_ASSERT(decoded.ok());
  RC_ASSERT(*decoded == bundle);
}

TEST(BodyBundle, ABodyOfTheLimitFitsAndOneByteMoreDoesNot) {
  BodyBundle bundle(256);
  bundle[255] = ArchivedBody{salt_of(7), std::string(limits::event_body_bytes_max, 'x')};
  const auto decoded = decode_bodies(encode_bodies(bundle));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, bundle);
  bundle[255]->body += 'x';
  EXPECT_EQ(decode_bodies(encode_bodies(bundle)).error().code, Errc::corrupt);
}

TEST(BodyBundle, AllOfTheLargestFit) {
  const BodyBundle bundle(256, ArchivedBody{salt_of(9), std::string(limits::event_body_bytes_max, 'y')});
  const auto decoded = decode_bodies(encode_bodies(bundle));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, bundle);
}

TEST(BodyBundle, RefusesWhatIsNotOne) {
  const std::string erased(256, '\0');
  EXPECT_TRUE(decode_bodies(compress(std::string(magic) + erased)).ok());
  EXPECT_EQ(refusal_of(std::string(magic) + erased + '\0'), Errc::corrupt) << "257 bodies";
  EXPECT_EQ(refusal_of(std::string(magic) + erased.substr(1)), Errc::corrupt) << "255 bodies";
  EXPECT_EQ(refusal_of(std::string(magic) + erased.substr(1) + '\x02'), Errc::corrupt) << "an unknown kind";
  EXPECT_EQ(refusal_of("muniment-bodies/2\n" + erased), Errc::corrupt);
  EXPECT_EQ(refusal_of(""), Errc::corrupt);
  EXPECT_EQ(refusal_of(std::string(magic) + erased.substr(1) + present(5, "four")), Errc::corrupt)
      << "a body that is cut off";
  EXPECT_EQ(refusal_of(std::string(magic) + erased.substr(1) + present(61'441, std::string(61'441, 'x'))),
            Errc::corrupt);
  EXPECT_EQ(refusal_of(std::string(magic) + erased.substr(1) + "\x01short"), Errc::corrupt) << "a salt that is cut off";
  EXPECT_EQ(decode_bodies("no frame").error().code, Errc::corrupt);
  const std::string file = compress(std::string(magic) + erased);
  EXPECT_EQ(decode_bodies(file.substr(0, file.size() - 1)).error().code, Errc::corrupt) << "without its checksum's end";
}

TEST(BodyBundle, AFrameThatSaysItIsHugeIsNotUnpacked) {
  EXPECT_EQ(decode_bodies(compress(std::string(64 << 20, 'a'))).error().code, Errc::too_large);
}

TEST(BodyBundle, EveryFlippedByteIsSeen) {
  BodyBundle bundle(256);
  bundle[3] = ArchivedBody{salt_of(3), R"({"text":"quite short"})"};
  const std::string file = encode_bodies(bundle);
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto decoded = decode_bodies(damaged);
    EXPECT_TRUE(!decoded || *decoded == bundle) << "byte " << i;
  }
}

TEST(BodyBundle, Paths) {
  EXPECT_EQ(bodies_path(0), "bodies/000");
  EXPECT_EQ(bodies_path(1'234'067), "bodies/x001/x234/067");
}

}  // namespace
}  // namespace muniment
