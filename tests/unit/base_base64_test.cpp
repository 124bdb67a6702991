#include "base/crypto/base64.hpp"

#include <gtest/gtest.h>

namespace muniment {
namespace {

TEST(Base64, TheVectorsOfRfc4648ComeOutBothWays) {
  const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
}

TEST(Base64, WhatIsNotExactlyBase64IsRefused) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zm9v\n", "Zm 9", "Zh==", "Zm9=", "Zg==Zg==", "Zm9-"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
}  // namespace muniment
