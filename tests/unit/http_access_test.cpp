// Tests of the Host and Origin headers that a loopback listener accepts, and of bearer tokens.
#include "http/access.hpp"

#include <gtest/gtest.h>

namespace muniment::http {
namespace {

Request with(std::vector<Header> headers) {
  Request request;
  request.headers = std::move(headers);
  return request;
}

const AllowedHosts hosts{8080, {"memory.example.org", "Proxy.Example.Org:8443", "[2001:db8::1]"}};

bool host_ok(const std::string& value) { return check_host(with({{"Host", value}}), hosts).ok(); }
bool origin_ok(const std::string& value) { return check_origin(with({{"Origin", value}}), hosts).ok(); }

TEST(HttpAccess, TheLoopbackNamesAreAllowedAtThePortOrWithoutOne) {
  for (const std::string name : {"localhost", "LocalHost", "127.0.0.1", "[::1]"}) {
    EXPECT_TRUE(host_ok(name)) << name;
    EXPECT_TRUE(host_ok(name + ":8080")) << name;
    for (const char* port : {":", ":80", ":8081", ":08080", ":8080 ", ": 8080", ":+8080", ":8080:8080", ":0", ":65536",
                             ":808O", ":8080/", ":18446744073709559696"}) {
      EXPECT_FALSE(host_ok(name + port)) << name << port;
    }
  }
}

TEST(HttpAccess, NothingElseIsALoopbackName) {
  for (const char* name : {"",
                           " ",
                           ".",
                           ":",
                           ":8080",
                           "localhost.",
                           "localhost.:8080",
                           "localhost.evil.example",
                           "evil.example",
                           "evil.example:8080",
                           "notlocalhost",
                           "localhos",
                           "127.0.0.1.",
                           "127.0.0.1.nip.io",
                           "127.0.0.2",
                           "127.1",
                           "127.000.000.001",
                           "2130706433",
                           "0x7f000001",
                           "0.0.0.0",
                           "::1",
                           "::1:8080",
                           "[::1",
                           "::1]",
                           "[::1]]",
                           "[[::1]]",
                           "[::1]x",
                           "[::1]x:8080",
                           "[::1].",
                           "[::1%lo]",
                           "[::1%25lo]",
                           "[0:0:0:0:0:0:0:1]",
                           "[::ffff:127.0.0.1]",
                           "[]",
                           "[",
                           "]",
                           "[localhost]",
                           "user@localhost",
                           "user:password@localhost:8080",
                           "localhost@evil.example",
                           "localhost#evil.example",
                           "localhost/",
                           "localhost\\",
                           "localhost?",
                           "local%68ost",
                           "%6cocalhost",
                           "localhost%2eevil",
                           "localhost,evil.example",
                           "localhost evil.example",
                           " localhost",
                           "localhost ",
                           "\tlocalhost",
                           "http://localhost",
                           "//localhost",
                           "loc\xc3\xa0lhost",
                           "\xe2\x84\x93ocalhost"}) {
    EXPECT_FALSE(host_ok(name)) << name;
  }
  EXPECT_FALSE(host_ok(std::string("localhost\0", 10)));
  EXPECT_FALSE(host_ok(std::string("localhost\0.evil.example", 23)));
}

TEST(HttpAccess, AddedHostsAreAllowedAtAnyPortOrAtTheirs) {
  for (const char* value : {"memory.example.org", "MEMORY.EXAMPLE.ORG", "memory.example.org:443",
                            "memory.example.org:1", "proxy.example.org:8443", "[2001:DB8::1]", "[2001:db8::1]:65535"}) {
    EXPECT_TRUE(host_ok(value)) << value;
  }
  for (const char* value :
       {"memory.example.org.", "memory.example.org:", "memory.example.org:0", "memory.example.org:443x",
        "x.memory.example.org", "memory.example.org.evil.example", "example.org", "proxy.example.org",
        "proxy.example.org:443", "proxy.example.org:8080", "2001:db8::1", "[2001:db8:0::1]", "[2001:db8::1"}) {
    EXPECT_FALSE(host_ok(value)) << value;
  }
}

TEST(HttpAccess, AnAddedHostThatIsNoneAllowsNothing) {
  for (const std::string added : {"", ":8080", "[::2", "evil.example:", "evil.example:x"}) {
    const AllowedHosts odd{8080, {added}};
    for (const std::string value : {"", ":8080", "[::2", "evil.example:", "evil.example:x", "evil.example"}) {
      EXPECT_FALSE(check_host(with({{"Host", value}}), odd).ok()) << added << " " << value;
      EXPECT_FALSE(check_origin(with({{"Origin", "http://" + value}}), odd).ok()) << added << " " << value;
    }
  }
}

TEST(HttpAccess, ThereIsExactlyOneHostHeader) {
  EXPECT_FALSE(check_host(with({}), hosts).ok());
  EXPECT_FALSE(check_host(with({{"Hosts", "localhost"}, {"Host ", "localhost"}}), hosts).ok());
  EXPECT_TRUE(check_host(with({{"hOST", "localhost"}}), hosts).ok());
  EXPECT_FALSE(check_host(with({{"Host", "localhost"}, {"host", "localhost"}}), hosts).ok());
  EXPECT_FALSE(check_host(with({{"Host", "localhost"}, {"Host", "evil.example"}}), hosts).ok());
  EXPECT_FALSE(check_host(with({{"Host", "evil.example"}, {"Host", "localhost"}}), hosts).ok());
}

TEST(HttpAccess, AnOriginIsAnAllowedHostAtAnyPort) {
  EXPECT_TRUE(check_origin(with({}), hosts).ok());
  for (const char* value :
       {"http://localhost", "https://localhost", "HTTP://LOCALHOST", "http://localhost:3000", "http://127.0.0.1:1",
        "https://[::1]", "https://[::1]:65535", "https://memory.example.org", "https://memory.example.org:444",
        "https://proxy.example.org", "https://proxy.example.org:8443", "http://[2001:db8::1]:9"}) {
    EXPECT_TRUE(origin_ok(value)) << value;
  }
}

TEST(HttpAccess, EveryOtherOriginIsRefused) {
  for (const char* value : {"",
                            "null",
                            "NULL",
                            "*",
                            "localhost",
                            "localhost:8080",
                            "//localhost",
                            "http:localhost",
                            "http:/localhost",
                            "http//localhost",
                            "http://",
                            "https://",
                            "http:// localhost",
                            "http://localhost ",
                            " http://localhost",
                            "http://localhost/",
                            "http://localhost/a",
                            "http://localhost?",
                            "http://localhost#",
                            "http://localhost.",
                            "http://localhost:",
                            "http://localhost:0",
                            "http://localhost:99999",
                            "http://localhost:80a",
                            "http://evil.example",
                            "http://evil.example:8080",
                            "http://localhost.evil.example",
                            "http://user@localhost",
                            "http://localhost@evil.example",
                            "http://localhost:80@evil.example",
                            "http://local%68ost",
                            "http://127.1",
                            "http://127.0.0.2",
                            "http://::1",
                            "http://[::1",
                            "http://[::1]x",
                            "file://localhost",
                            "ftp://localhost",
                            "ws://localhost",
                            "chrome-extension://localhost",
                            "httpx://localhost",
                            "http://localhost http://evil.example",
                            "http://localhost, http://evil.example",
                            "http://http://localhost",
                            "https://http://localhost"}) {
    EXPECT_FALSE(origin_ok(value)) << value;
  }
  EXPECT_FALSE(check_origin(with({{"Origin", "http://localhost"}, {"origin", "http://localhost"}}), hosts).ok());
}

TEST(HttpAccess, ARefusalSaysWhatToDoAndShowsTheNameSafely) {
  const auto refused = check_host(with({{"Host", "evil\x1b[31m" + std::string(5'000, 'x')}}), hosts);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::denied);
  EXPECT_NE(refused.error().message.find("add it to the allowed hosts"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find('\x1b'), std::string::npos);
  EXPECT_LT(refused.error().message.size(), 500U);
  EXPECT_EQ(check_origin(with({{"Origin", "null"}}), hosts).error().code, Errc::denied);
}

TEST(HttpAccess, ABearerTokenMatchesOnlyItself) {
  const auto matches = [](const std::string& value, std::string_view token = "s3cret") {
    return bearer_token_matches(with({{"authorization", value}}), token);
  };
  for (const char* value : {"Bearer s3cret", "bearer s3cret", "BEARER s3cret", "Bearer   s3cret"}) {
    EXPECT_TRUE(matches(value)) << value;
  }
  for (const char* value :
       {"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Bearer S3cret", "Bearer s3cret ", "Bearer\ts3cret",
        "Bearers3cret", " Bearer s3cret", "Basic s3cret", "s3cret", "Bearer s3cret,x"}) {
    EXPECT_FALSE(matches(value)) << value;
  }
  EXPECT_FALSE(matches("Bearer ", ""));
  EXPECT_FALSE(matches("Bearer", ""));
  EXPECT_FALSE(bearer_token_matches(with({}), "s3cret"));
  EXPECT_FALSE(bearer_token_matches(with({}), ""));
  EXPECT_FALSE(
      bearer_token_matches(with({{"Authorization", "Bearer s3cret"}, {"Authorization", "Bearer s3cret"}}), "s3cret"));
}

}  // namespace
}  // namespace muniment::http
