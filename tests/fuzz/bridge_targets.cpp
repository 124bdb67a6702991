// Targets of the sanitiser: any text, any file of rules, and any query of which a question is made.
#include "bridge/question.hpp"
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

// A question is text of ASCII in one line, and the sanitiser finds nothing in it.
void try_query(const std::string& query) {
  thread_local bridge::Sanitiser sanitiser(bridge::Scope::outbound);
  const auto corpora = [](std::string_view word) -> Result<std::size_t> { return word.size() % 2; };
  for (const auto terms : {bridge::PrivateTerms::refuse, bridge::PrivateTerms::replace}) {
    const auto made = bridge::make_question(query, sanitiser, corpora, terms);
    const auto* question = std::get_if<bridge::Question>(&made);
    if (question == nullptr) {
      require(!std::get<bridge::QuestionRefusal>(made).detail.empty(), "a refusal has no detail");
      continue;
    }
    require(!question->template_id.empty(), "a question has no template");
    for (const char c : question->text) require(c >= ' ' && c < 0x7f, "a question holds other characters than ASCII");
    require(question->text.find('{') == std::string::npos, "a slot is not filled");
    require(sanitiser.find(question->text).empty(), "the sanitiser finds something in a question");
  }
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
          {"question",
           try_query,
           {"what is the difference between TCP and a queue?", "please compare a falcon's nest with C++",
            "why doesn\u2019t /srv/ledger/data.db work with Python", "how do I calculate compound interest in 5 steps",
            "explain kqzrt to Ann Lee (ann@example.com)"}},
          {"sanitiser_rules",
           try_rules,
           {"[[rules]]\nid='a'\nregex='''ACME-([0-9]+)'''\nkeywords=['acme']\n[[rules.allowlists]]\nregexes=['x']\n"}}};
}

}  // namespace muniment::fuzz
