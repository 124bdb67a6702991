// Targets of the sanitiser: any text, and any file of rules.
#include "bridge/sanitiser.hpp"
#include "fuzz/target.hpp"

namespace muniment::fuzz {
namespace {

void try_text(const std::string& text) {
  thread_local bridge::Sanitiser sanitiser(bridge::Scope::outbound);
  std::size_t at = 0;
  for (const bridge::Finding& finding : sanitiser.find(text)) {
    require(finding.offset >= at, "the findings are not in order");
    require(finding.length > 0 && finding.offset + finding.length <= text.size(), "a finding is not in the text");
    at = finding.offset;
  }
  std::string redacted = text;
  bridge::redact(redacted, sanitiser.find(text), [](const bridge::Finding&) { return std::string(); });
  require(redacted.size() <= text.size(), "a redacted text is longer");
}

void try_rules(const std::string& toml) {
  bridge::Sanitiser sanitiser(bridge::Scope::outbound);
  if (sanitiser.add_rules(toml)) sanitiser.find("ACME-12345 and noise");
}

}  // namespace

std::vector<Target> bridge_targets() {
  return {{"sanitiser",
           try_text,
           {"mail ann@example.com or +49 30 1234567, DE89 3704 0044 0532 0130 00",
            "x %61nn%40example.com \\u0061nn\\x40example.com &#65;&commat;",
            "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBytJ1Dx3Kq9vW2zX5mN8bV7c\n-----END",
            "Y2FyZCA0MTExMTExMTExMTExMTEx 63 61 72 64 20 34 31 31 31 31 31 31",
            "\xd0\xb0nn\xe2\x80\x8b\xef\xbc\xa0"
            "example.com 2001:db8::1 C:\\Users\\ann\\x"}},
          {"sanitiser_rules",
           try_rules,
           {"[[rules]]\nid='a'\nregex='''ACME-([0-9]+)'''\nkeywords=['acme']\n[[rules.allowlists]]\nregexes=['x']\n"}}};
}

}  // namespace muniment::fuzz
