// Tests of the sanitiser: each class of findings, the forms in which they hide, and what is none.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"
#include "bridge/known_secrets.hpp"
#include "bridge/local_rules.hpp"
#include "bridge/rule.hpp"
#include "bridge/rule_database.hpp"
#include "bridge/sanitiser.hpp"
#include "bridge/text_view.hpp"

namespace muniment::bridge {
namespace {

// Tokens are written in two parts, so that no scanner of repositories takes them for real ones.
std::string token(std::string_view begin, std::string_view rest) { return std::string(begin) + std::string(rest); }

std::vector<std::string> rules_in(Sanitiser& sanitiser, std::string_view text) {
  std::vector<std::string> rules;
  for (const Finding& finding : sanitiser.find(text)) {
    EXPECT_LE(finding.offset + finding.length, text.size());
    if (std::find(rules.begin(), rules.end(), finding.rule) == rules.end()) rules.emplace_back(finding.rule);
  }
  return rules;
}

bool has(const std::vector<std::string>& rules, std::string_view rule) {
  return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

std::string redacted(Sanitiser& sanitiser, std::string text) {
  redact(text, sanitiser.find(text), [](const Finding& finding) { return "[" + std::string(finding.rule) + "]"; });
  return text;
}

struct Case {
  std::string rule;
  std::string text;
};

std::vector<Case> cases() {
  return {
      {"aws-access-key", token("AK", "IAIOSFODNN7ABCDEFG")},
      {"aws-secret-key", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzKqT4hX0d"},
      {"gcp-api-key", token("AI", "zaSyB-0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5")},
      {"google-oauth-secret", token("GOC", "SPX-a1B2c3D4e5F6g7H8i9J0k1L2m3N4")},
      {"azure-storage-key",
       "AccountName=x;AccountKey=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYg==;"},
      {"github-token", token("gh", "p_a8Kd02mXq7Zt4Lw9Rb1Vc6Ny3Ej5Hs0Pu2Fi")},
      {"github-fine-grained-token",
       token("github", "_pat_11ABCDEFG0a1b2c3d4e5f6_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5m")},
      {"gitlab-token", token("gl", "pat-x9Yz8Wv7Ut6Sr5Qp4On3")},
      {"slack-token", token("xo", "xb-123456789012-1234567890123-a1B2c3D4e5F6g7H8i9J0k1L2")},
      {"slack-webhook", token("https://hooks.sl", "ack.com/services/T01ABCDEFGH/B01ABCDEFGH/a1B2c3D4e5F6g7H8i9J0k1L2")},
      {"telegram-token", token("1234567890:", "AAa1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7")},
      {"stripe-key", token("sk", "_live_a1B2c3D4e5F6g7H8i9J0k1L2")},
      {"twilio-key", token("S", "K0a1b2c3d4e5f60718293a4b5c6d7e8f9")},
      {"sendgrid-key", token("S", "G.a1B2c3D4e5F6g7H8i9J0k1.L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g")},
      {"openai-key", token("sk-", "proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3")},
      {"anthropic-key", token("sk-", "ant-api03-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3AA")},
      {"huggingface-token", token("h", "f_aBcXqZtLwRbVkNyJhPuGiMdKoQeXzTjWs")},
      {"npm-token", token("np", "m_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")},
      {"pypi-token", token("py", "pi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNC0xMjM0LTEyMzQ1Njc4OTBhYgACKlszLCJ")},
      {"vault-token", token("hv", "s.CAESIJlWh8Kx0mQz7R2vT5yB9nL3pD6sF1gH4jK8aZ0xCGh4KHGh2cy5")},
      {"databricks-token", token("da", "pi0a1b2c3d4e5f60718293a4b5c6d7e8f9")},
      {"datadog-key", "datadog_api_key: 0a1b2c3d4e5f60718293a4b5c6d7e8f9"},
      {"heroku-key", "HEROKU_API_KEY=01234567-89ab-4cde-8f01-23456789abcd"},
      {"jwt",
       token("ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U")},
      {"private-key",
       "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBytJ1Dx3Kq9vW2zX5mN8bV7cT6yR4uP0lO1iK3jH2gF\n-----END EC PRIVATE KEY-----"},
      {"bitcoin-key", token("5JLtWhTxZak62aKwVvp1RHC3B", "QzvzauLAhXzN2xz9Qxn6hSwiDA")},
      {"password-hash", "ann:$2b$12$abcdefghijklmnopqrstuuJ4x9Zs0k1L2m3N4o5P6q7R8s9T0u1V2"},
      {"authorization-header", "Authorization: Token 8f14e45fceea167a"},
      {"url-password", "postgres://app:s3cr3t@db.example.org/main"},
      {"connection-string", "Server=db;Database=x;User Id=sa;Password=hunter22;"},
      {"netrc", "machine api.example.org login ann password hunter22"},
      {"password-literal", "password = \"hunter22\""},
      {"secret-variable", "DB_PASSWORD=hunter22"},
      {"generic-key", "api_key = \"q8Zr2Lx7Vt5Kd9Wm3Bn6\""},
      {"email", "ann.lee@example.com"},
      {"email-spelled", "ann [at] example [dot] com"},
      {"phone", "+49 30 1234567"},
      {"phone-us", "(415) 555-2671"},
      {"iban", "DE89 3704 0044 0532 0130 00"},
      {"card-number", "4111 1111 1111 1111"},
      {"social-security-number", "536-22-8123"},
      {"birth-date", "date of birth: 1984-03-12"},
      {"user-id", "user_id=829134"},
      {"user-name", "{\"username\": \"alee\"}"},
      {"windows-sid", "S-1-5-21-3623811015-3361044348-30300820-1013"},
      {"ipv4", "192.168.17.4"},
      {"ipv6", "2001:db8:85a3::8a2e:370:7334"},
      {"mac-address", "3c:22:fb:a1:07:9e"},
      {"path-home", "/home/ann/notes.txt"},
      {"path-unix", "/srv/ledger/data.db"},
      {"path-windows", "C:\\Users\\ann\\plan.docx"},
      {"path-unc", "\\\\files01\\finance\\plan.docx"},
      {"internal-host", "db01.corp"},
      {"ssh-target", "ssh ann@build7"},
      {"arn", "arn:aws:iam::123456789012:role/deploy"},
  };
}

TEST(Sanitiser, FindsEachClassInASentence) {
  Sanitiser sanitiser(Scope::outbound);
  for (const Case& one : cases()) {
    EXPECT_TRUE(has(rules_in(sanitiser, "see " + one.text + " there"), one.rule)) << one.rule << ": " << one.text;
    EXPECT_TRUE(has(rules_in(sanitiser, one.text), one.rule)) << one.rule << ", alone";
  }
}

TEST(Sanitiser, EveryRuleCompilesWithoutVectorscan) {
  const auto file = read_rules(rule_texts());
  ASSERT_TRUE(file.ok()) << file.error().message;
  Sanitiser sanitiser(Scope::outbound);
  for (const Rule& rule : file->rules) {
    const Status added = sanitiser.add_rules("[[rules]]\nid = '" + rule.id + "'\nregex = '''" + rule.regex + "'''\n");
    EXPECT_TRUE(added.ok()) << rule.id << ": " << added.error().message;
  }
}

TEST(Sanitiser, FindsATokenInEveryForm) {
  Sanitiser sanitiser(Scope::outbound);
  const std::string secret = token("gh", "p_a8Kd02mXq7Zt4Lw9Rb1Vc6Ny3Ej5Hs0Pu2Fi");
  std::string percent, json, entities, spaced, wide, pairs;
  for (const char c : secret) {
    const std::string hex = to_hex(std::string_view(&c, 1));
    percent += "%" + hex;
    json += "\\u00" + hex;
    entities += "&#x" + hex + ";";
    spaced += std::string(1, c) + " ";
    pairs += hex + ":";
    wide += "\xef\xbc";  // the first bytes of U+FF01 to U+FF3F
    wide += static_cast<char>(0x80 + c - 0x20);
    if (c >= 0x60) wide.replace(wide.size() - 2, 2, {static_cast<char>(0xbd), static_cast<char>(0x80 + c - 0x60)});
  }
  const std::string reversed(secret.rbegin(), secret.rend());
  const std::string half = secret.substr(0, 20) + "\xe2\x80\x8b" + secret.substr(20);
  for (const std::string& form :
       {percent, json, entities, spaced, wide, pairs, reversed, half, to_base64("token: " + secret),
        to_base64(to_base64(secret)), to_hex(secret), secret.substr(0, 17) + "\n" + secret.substr(17),
        "\"" + secret.substr(0, 17) + "\" + \"" + secret.substr(17) + "\"",
        to_base64(std::string(40, 'x') + " " + secret).insert(40, "\n")}) {
    EXPECT_TRUE(has(rules_in(sanitiser, "see " + form + "."), "github-token")) << form;
  }
}

TEST(Sanitiser, AFindingHasTheBytesOfTheSecret) {
  Sanitiser sanitiser(Scope::outbound);
  EXPECT_EQ(redacted(sanitiser, "postgres://app:s3cr3t@db.example.org/main"),
            "postgres://app:[url-password]@db.example.org/main");
  EXPECT_EQ(redacted(sanitiser, "mail ann@example.com, or +49 30 1234567!"), "mail [email], or [phone]!");
  EXPECT_EQ(redacted(sanitiser, "x %61nn%40example.com y"), "x [email] y");
  EXPECT_EQ(redacted(sanitiser, "x " + to_base64("card 4111111111111111") + " y"), "x [card-number] y");
  EXPECT_EQ(redacted(sanitiser, "DE89 3704 0044 0532 0130 00 and"), "[iban] and");
}

TEST(Sanitiser, OrdinaryTextHasNoFindings) {
  Sanitiser sanitiser(Scope::outbound);
  for (const std::string_view text : {
           "The proxy listens on port 8080 and answers within 20 ms.",
           "for (std::size_t i = 0; i < key.size(); ++i) keys[i] = token(key[i]);",
           "password: the password of the user",
           "commit 1dd7d3ca5b0e6f0c8e2f3a4b5c6d7e8f90123456",
           "version 1.2.3.4, released 2024-05-17 12:34:56",
           "uuid 01234567-89ab-4cde-8f01-23456789abcd",
           "4111 1111 1111 1112 and 1234567890123456",
           "and/or, I/O, text/html, https://example.org/usr/share/x.html",
           "std::vector<a::b> c::d(e::f);",
           "ask-sk-learn-pipelines-for-estimators",
           "git commit -m 'turn the key = value map'",
           "#!/bin/sh\n#!/usr/bin/env python3\n>/dev/null 2>&1",
           "DE89 3704 0044 0532 0130 01",
           "icon@2x.png, sshd@boot.service",
           "\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xe4\xbd\xa0\xe5\xa5\xbd",
       }) {
    EXPECT_EQ(rules_in(sanitiser, text), std::vector<std::string>{}) << text;
  }
}

TEST(Sanitiser, OutputKeepsDataOfPersonsAndPlaces) {
  Sanitiser sanitiser(Scope::output);
  EXPECT_EQ(redacted(sanitiser, "ann@example.com wrote /home/ann/x, API_TOKEN=abc"),
            "ann@example.com wrote /home/ann/x, API_TOKEN=[announced-assignment]");
}

TEST(Sanitiser, AUsersRulesHaveTheMeaningOfGitleaks) {
  Sanitiser sanitiser(Scope::outbound);
  ASSERT_TRUE(
      sanitiser
          .add_rules(
              "title = 'mine'\n[extend]\nuseDefault = true\ndisabledRules = ['email']\n"
              "[allowlist]\nstopwords = ['sample']\n"
              "[[rules]]\nid = 'ticket'\nregex = '''\\bACME-([0-9]{4,6})\\b'''\nsecretGroup = 1\nkeywords = ['acme']\ntags = ['personal']\n"
              "[[rules.allowlists]]\nregexTarget = 'line'\nregexes = ['public']\n"
              "[[rules]]\nid = 'noise'\nregex = '''noise-(\\w+)'''\nentropy = 3.0\n")
          .ok());
  EXPECT_EQ(redacted(sanitiser, "ACME-12345 by ann@example.com"), "ACME-[ticket] by ann@example.com");
  EXPECT_EQ(redacted(sanitiser, "public ACME-12345\nACME-54321"), "public ACME-12345\nACME-[ticket]");
  EXPECT_EQ(redacted(sanitiser, "noise-aaaaaaaaaaaaaaaa noise-q8Zr2Lx7Vt5Kd9Wm noise-sample8Zr2Lx7Vt5K"),
            "noise-aaaaaaaaaaaaaaaa noise-[noise] noise-sample8Zr2Lx7Vt5K");
  for (const std::string_view wrong :
       {"[[rules]]\nregex = 'a'", "[[rules]]\nid = 'a'\nregex = '('",
        "[[rules]]\nid = 'a'\nregex = 'a'\nsecretGroup = 1",
        "x = ", "[[rules]]\nid = 'a'\nregex = 'a'\n[[rules.allowlists]]\nregexTarget = 'file'"}) {
    EXPECT_FALSE(sanitiser.add_rules(wrong).ok()) << wrong;
  }
}

TEST(Sanitiser, ARuleFileHasALimit) {
  Sanitiser sanitiser(Scope::outbound);
  std::string file = "# ";
  file.resize(limits::rule_file_bytes_max, 'x');
  EXPECT_TRUE(sanitiser.add_rules(file).ok());
  file += 'x';
  const Status refused = sanitiser.add_rules(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::too_large);
}

TEST(Sanitiser, KnownSecretsAreFoundInEveryForm) {
  Sanitiser sanitiser(Scope::outbound);
  LocalRules local;
  local.secrets.add("blue+ heron 17");
  ASSERT_TRUE(sanitiser.use(local).ok());
  for (const std::string& text : {std::string("it is blue+ heron 17."), to_base64("it is blue+ heron 17."),
                                  std::string("71 noreh +eulb"), std::string("blue+\nheron \"17\"")}) {
    const auto findings = sanitiser.find(text);
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
      return one.category == "known";
    })) << text;
  }
  EXPECT_TRUE(sanitiser.find("it is blue- heron 17.").empty());
}

TEST(LocalRules, AreReadFromFilesAndTheEnvironment) {
  std::string folder = (std::filesystem::temp_directory_path() / "muniment-rules-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto write = [&](const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  };
  const char* const environment[] = {"API_TOKEN=blue-heron-17", "KEY_FILE=/etc/some/path", "MY_KEY=production",
                                     "HOME=/home/ann1234", nullptr};
  Config config;
  config.sanitiser_rules = write("rules.toml", "[[rules]]\nid = 'acme'\nregex = 'ACME-[0-9]{5}'\n");
  config.sanitiser_secrets = write("secrets", "northern light\r\n\ncorrect horse\n");
  const auto local = read_local_rules(config, environment);
  ASSERT_TRUE(local.ok()) << local.error().message;
  Sanitiser sanitiser(Scope::output);
  ASSERT_TRUE(sanitiser.use(*local).ok());
  EXPECT_EQ(redacted(sanitiser, "blue-heron-17 ACME-12345 northern light, production in /etc/some/path of ann1234"),
            "[known] [acme] [known], production in /etc/some/path of ann1234");

  const auto refused = [&](const char* what) {
    const auto read = read_local_rules(config, environment);
    EXPECT_FALSE(read.ok()) << what;
    return read.ok() ? std::string() : read.error().message;
  };
  const std::string secrets = config.sanitiser_secrets;
  config.sanitiser_secrets = write("short", "northern light\nshort\n");
  EXPECT_NE(refused("a short secret").find("line 2 has 5 bytes"), std::string::npos);
  config.sanitiser_secrets = write("open", "northern light\n", 0644);
  EXPECT_NE(refused("an open file").find("chmod 600"), std::string::npos);
  config.sanitiser_secrets = folder + "/missing";
  EXPECT_NE(refused("a missing file").find("sanitiser_secrets"), std::string::npos);
  std::string many;
  for (std::size_t i = 0; i < limits::known_secrets_max; ++i) many += "secret " + std::to_string(1'000'000 + i) + "\n";
  config.sanitiser_secrets = write("most", many);
  EXPECT_TRUE(read_local_rules(config, environment).ok());
  config.sanitiser_secrets = write("more", many + "one more secret\n");
  EXPECT_NE(refused("too many secrets").find("more than 10000"), std::string::npos);
  config.sanitiser_secrets = secrets;
  config.sanitiser_rules = write("bad.toml", "[[rules]]\nid = 'acme'\nregex = '('\n");
  EXPECT_NE(refused("a bad pattern").find("sanitiser_rules"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(KnownSecrets, HaveLimitsOfTheirLength) {
  KnownSecrets secrets;
  secrets.add(std::string(limits::known_secret_bytes_min - 1, 'a'));
  secrets.add(std::string(limits::known_secret_bytes_max + 1, 'a'));
  EXPECT_TRUE(secrets.empty());
  secrets.add("bcdefghi");
  secrets.add(std::string(limits::known_secret_bytes_max, 'b'));
  EXPECT_EQ(secrets.find("abcdefghij").size(), 1U);
  EXPECT_EQ(secrets.find(std::string(limits::known_secret_bytes_max + 1, 'b')).size(), 2U);
  EXPECT_EQ(secrets.find("bcdefgh").size(), 0U);
}

TEST(TextView, AJoinedTextKnowsItsPlaces) {
  const std::string text = std::string(300, ' ') + "ab, \"c\\nd\" + e+1";
  const TextView view = TextView::of(text);
  const TextView joined = TextView::joined(view);
  EXPECT_EQ(joined.text(), "abcde+1");
  const Span place = joined.in_root({1, 4});
  EXPECT_EQ(text.substr(place.begin, place.end - place.begin), "b, \"c\\nd");
  EXPECT_TRUE(joined.has_gap({1, 3}));
  EXPECT_FALSE(joined.has_gap({0, 2}));
}

TEST(Sanitiser, ALongTextIsSearchedInPiecesOfWholeLines) {
  Sanitiser sanitiser(Scope::outbound);
  std::string text(limits::sanitised_piece_bytes_max - 5, 'x');
  text[text.size() / 2] = '\n';
  text += "\nann@example.com\n";
  const auto findings = sanitiser.find(text);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(text.substr(findings[0].offset, findings[0].length), "ann@example.com");
}

}  // namespace
}  // namespace muniment::bridge
