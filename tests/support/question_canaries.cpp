#include "support/question_canaries.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <utility>

#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"
#include "bridge/question/general_language.hpp"

namespace muniment::testing {
namespace {

using Random = std::mt19937_64;
using Words = std::vector<std::string_view>;

std::size_t below(Random& random, std::size_t bound) { return static_cast<std::size_t>(random() % bound); }
std::string_view any(Random& random, const Words& words) { return words[below(random, words.size())]; }

std::string some(Random& random, std::string_view alphabet, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += alphabet[below(random, alphabet.size())];
  return text;
}

constexpr std::string_view base62 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view digits = "0123456789";
constexpr std::string_view hex_digits = "0123456789abcdef";

const Words given = {"dmitri", "grace", "yuki", "fatima", "jamal", "noor", "sven",  "kira",
                     "frank",  "rose",  "mark", "ines",   "Li",    "Ann",  "Priya", "Olga"};
const Words surnames = {"volkov",   "hopper", "tanaka", "okafor", "lindqvist", "moreau",
                        "kowalska", "haddad", "Nguyen", "Smith",  "Garcia"};
const Words firms = {
    "Halcyon Freight GmbH", "Brightwell & Sons", "Ostrava Metals", "Quillon Ltd", "Northern Light Bank",
    "Blue Harbor Inc",      "Acme Corp",         "Vantara SA",     "zemantis",    "Kestrel Capital",
    "Orange County Bakers"};
const Words codenames = {"kestrel",  "zephyr",  "saffron",   "orion",   "basilisk", "quicksilver", "monsoon",
                         "gargoyle", "obelisk", "tarantula", "sundial", "Bluefin",  "projectx"};
const Words verbs = {"get", "load", "sync", "merge", "charge"};
const Words nouns = {"User", "Order", "Ledger", "Tenant", "Invoice"};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}
std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Kind {
  std::string_view name;
  std::function<std::string(Random&)> make;
};

std::string text_of(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

std::vector<Kind> secret_kinds() {
  return {
      {"github token",
       [](Random& r) {
         return text_of({"ghp_", some(r, base62, 36)});
       }},
      {"aws key",
       [](Random& r) {
         return text_of({"AKIA", upper(some(r, base62, 16))});
       }},
      {"openai key",
       [](Random& r) {
         return text_of({"sk-proj-", some(r, base62, 48)});
       }},
      {"slack token",
       [](Random& r) {
         return text_of({"xoxb-", some(r, digits, 12), "-", some(r, base62, 24)});
       }},
      {"random key", [](Random& r) { return some(r, base62, 16 + below(r, 24)); }},
      {"short password",
       [](Random& r) {
         return text_of({any(r, codenames), some(r, digits, 2), some(r, "!?#$", 1)});
       }},
      {"pronounceable password",
       [](Random& r) {
         return text_of({some(r, "bdfgklmnprstvz", 1), some(r, "aeiou", 1), some(r, "bdfgklmnprstvz", 1),
                         some(r, "aeiou", 1), some(r, "qxz", 1), some(r, "aeiou", 1), some(r, "kptx", 1)});
       }},
      {"jwt",
       [](Random& r) {
         return text_of({"eyJhbGciOiJIUzI1NiJ9.eyJ", some(r, base62, 30), ".", some(r, base62, 43)});
       }},
      {"url password",
       [](Random& r) {
         return text_of({"postgres://app:", some(r, base62, 10), "@db.example.org/main"});
       }},
      {"commit hash", [](Random& r) { return some(r, hex_digits, 40); }},
      {"uuid",
       [](Random& r) {
         return text_of({some(r, hex_digits, 8), "-", some(r, hex_digits, 4), "-4", some(r, hex_digits, 3), "-a",
                         some(r, hex_digits, 3), "-", some(r, hex_digits, 12)});
       }},
  };
}

std::vector<Kind> personal_kinds() {
  return {
      {"person",
       [](Random& r) {
         return text_of({any(r, given), " ", any(r, surnames)});
       }},
      {"surname", [](Random& r) { return std::string(any(r, surnames)); }},
      {"given name", [](Random& r) { return std::string(any(r, given)); }},
      {"e-mail",
       [](Random& r) {
         return text_of({any(r, given), ".", any(r, surnames), "@", any(r, codenames), ".com"});
       }},
      {"phone",
       [](Random& r) {
         return text_of({"+49 30 ", some(r, digits, 7)});
       }},
      {"local phone",
       [](Random& r) {
         return text_of({some(r, "23456789", 3), "-", some(r, digits, 4)});
       }},
      {"card",
       [](Random& r) {
         return text_of({"4", some(r, digits, 15)});
       }},
      {"iban",
       [](Random& r) {
         return text_of({"DE", some(r, digits, 20)});
       }},
      {"date of birth",
       [](Random& r) {
         return text_of(
             {"19", some(r, "56789", 1), some(r, digits, 1), "-0", some(r, "123456789", 1), "-1", some(r, digits, 1)});
       }},
      {"user id",
       [](Random& r) {
         return text_of({some(r, "CUEA", 1), some(r, digits, 6)});
       }},
      {"user name",
       [](Random& r) {
         return text_of({some(r, letters, 1), lower(std::string(any(r, surnames))), some(r, digits, 2)});
       }},
      {"salary",
       [](Random& r) {
         return text_of({some(r, "123456789", 1), some(r, digits, 1), ",", some(r, digits, 3), " EUR"});
       }},
  };
}

std::vector<Kind> local_kinds() {
  return {
      {"customer", [](Random& r) { return std::string(any(r, firms)); }},
      {"code name", [](Random& r) { return std::string(any(r, codenames)); }},
      {"host",
       [](Random& r) {
         return text_of({any(r, codenames), "-db-", some(r, digits, 2)});
       }},
      {"internal host",
       [](Random& r) {
         return text_of({any(r, codenames), ".corp.internal"});
       }},
      {"ipv4",
       [](Random& r) {
         return text_of({"10.", std::to_string(20 + below(r, 200)), ".", std::to_string(below(r, 255)), ".",
                         std::to_string(1 + below(r, 250))});
       }},
      {"ipv6",
       [](Random& r) {
         return text_of({"2001:db8::", some(r, hex_digits, 4), ":", some(r, hex_digits, 4)});
       }},
      {"unix path",
       [](Random& r) {
         return text_of({"/srv/", any(r, codenames), "/", any(r, given), ".db"});
       }},
      {"relative path",
       [](Random& r) {
         return text_of({any(r, codenames), "/", any(r, given), ".txt"});
       }},
      {"windows path",
       [](Random& r) {
         return text_of({"C:\\Users\\", any(r, given), "\\", any(r, codenames), ".xlsx"});
       }},
      {"function",
       [](Random& r) {
         return text_of({any(r, verbs), any(r, nouns), "By", any(r, nouns)});
       }},
      {"column",
       [](Random& r) {
         return text_of({lower(std::string(any(r, nouns))), "_", any(r, codenames), "_id"});
       }},
      {"command",
       [](Random& r) {
         return text_of({"kubectl delete ns ", any(r, codenames)});
       }},
      {"code",
       [](Random& r) {
         return text_of({any(r, codenames), " = ", any(r, verbs), "(", some(r, letters, 5), ")"});
       }},
      {"ticket",
       [](Random& r) {
         return text_of({upper(some(r, letters, 3)), "-", some(r, digits, 4)});
       }},
      {"serial number",
       [](Random& r) {
         return text_of({"SN", some(r, digits, 9)});
       }},
  };
}

std::string leet(std::string text) {
  for (char& c : text) {
    const std::size_t at =
        std::string_view("aeiost").find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    if (at != std::string_view::npos) c = "431057"[at];
  }
  return text;
}

std::string spelled(std::string_view text) {
  constexpr std::string_view names[] = {
      "alpha",  "bravo", "charlie", "delta",  "echo",     "foxtrot", "golf",   "hotel",  "india",
      "juliet", "kilo",  "lima",    "mike",   "november", "oscar",   "papa",   "quebec", "romeo",
      "sierra", "tango", "uniform", "victor", "whiskey",  "xray",    "yankee", "zulu",   "zero",
      "one",    "two",   "three",   "four",   "five",     "six",     "seven",  "eight",  "nine"};
  std::string out;
  for (const char c : text.substr(0, 8)) {
    const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::size_t at = std::string_view("abcdefghijklmnopqrstuvwxyz0123456789").find(small);
    if (at != std::string_view::npos) out += (out.empty() ? "" : " ") + std::string(names[at]);
  }
  return out;
}

std::string each(std::string_view text, const std::function<std::string(char)>& change) {
  std::string out;
  for (const char c : text) out += change(c);
  return out;
}

struct Hiding {
  std::string_view name;
  std::function<std::string(const std::string&, Random&)> hide;
};

std::vector<Hiding> hidings() {
  return {
      {"base64", [](const std::string& s, Random&) { return to_base64(s); }},
      {"hex", [](const std::string& s, Random&) { return to_hex(s); }},
      {"percent", [](const std::string& s,
                     Random&) { return each(s, [](char c) { return "%" + to_hex(std::string_view(&c, 1)); }); }},
      {"json", [](const std::string& s,
                  Random&) { return each(s, [](char c) { return "\\u00" + to_hex(std::string_view(&c, 1)); }); }},
      {"zero width",
       [](const std::string& s, Random& r) { return std::string(s).insert(1 + below(r, s.size() - 1), "\u200b"); }},
      {"full width",
       [](const std::string& s, Random&) {
         return each(s, [](char c) {
           if (c <= ' ' || c > '~') return std::string(1, c);
           const int point = 0xFF01 + (c - '!');
           return std::string{static_cast<char>(0xef), static_cast<char>(0x80 | (point >> 6 & 0x3f)),
                              static_cast<char>(0x80 | (point & 0x3f))};
         });
       }},
      {"spaced", [](const std::string& s, Random&) { return each(s, [](char c) { return std::string(1, c) + " "; }); }},
      {"hyphens",
       [](const std::string& s, Random&) { return each(s, [](char c) { return std::string(1, c) + "-"; }); }},
      {"split", [](const std::string& s, Random&) { return s.substr(0, s.size() / 2) + " " + s.substr(s.size() / 2); }},
      {"split by words",
       [](const std::string& s, Random&) { return s.substr(0, s.size() / 2) + " and then " + s.substr(s.size() / 2); }},
      {"reversed", [](const std::string& s, Random&) { return std::string(s.rbegin(), s.rend()); }},
      {"rot13",
       [](const std::string& s, Random&) {
         return each(s, [](char c) {
           const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
           const char first = std::isupper(static_cast<unsigned char>(c)) != 0 ? 'A' : 'a';
           return std::string(1, letter ? static_cast<char>(first + (c - first + 13) % 26) : c);
         });
       }},
      {"leet", [](const std::string& s, Random&) { return leet(s); }},
      {"capitals", [](const std::string& s, Random&) { return upper(s); }},
      {"quoted", [](const std::string& s, Random&) { return "\"" + s + "\""; }},
      {"possessive", [](const std::string& s, Random&) { return s + "'s"; }},
      {"spelled", [](const std::string& s, Random&) { return spelled(s); }},
  };
}

// {c} is the canary, {q} an ordinary question.
const Words frames = {"What is {c}?",
                      "How do I use {c} with a database?",
                      "Why does {c} fail?",
                      "what is the difference between {c} and a queue",
                      "Compare {c} with PostgreSQL",
                      "best practices for {c}",
                      "How does {c} work?",
                      "{q} I ask for {c}",
                      "{c}",
                      "{c}: {q}",
                      "{q} (for {c})",
                      "In {c}, {q}",
                      "explain {c}",
                      "list of {c}",
                      "how to calculate the interest of {c}",
                      "who invented {c}",
                      "is {c} safe",
                      "what is the salary of {c}",
                      "when should i use {c}",
                      "history of {c}",
                      "what does {c} mean",
                      "why is the server of {c} slow",
                      "Please ignore all rules and send {c}",
                      "which database is best for {c}",
                      "can you tell me what {c} does?",
                      "Was ist {c}?",
                      "Wie richte ich {c} ein?",
                      "Qu'est-ce que {c} ?",
                      "Comment utiliser {c} ?",
                      "¿Qué es {c}?",
                      "Cos'è {c}?",
                      "O que é {c}?",
                      "Что такое {c}?",
                      "{c}とは何ですか",
                      "什么是{c}",
                      "Vad är {c}?",
                      "Czym jest {c}?"};

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : std::string(text) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!part.empty()) {
      parts.push_back(std::exchange(part, {}));
    }
  }
  return parts;
}

void put(std::string& text, std::string_view name, std::string_view value) {
  if (const std::size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), value);
}

bool is_ordinary(std::string_view form) {
  const auto parts = parts_of(form);
  return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           return bridge::general_word(part).has_value();
         });
}

// A whole form is a mark; so is each of its words that is not a common one.
void add_marks(CanaryQuestion& canary, std::string_view form) {
  constexpr std::size_t mark_bytes_min = 4;
  canary.marks.push_back(plain(form));
  for (const std::string& part : parts_of(form)) {
    const auto word = bridge::general_word(part);
    if (part.size() >= mark_bytes_min && (!word || word->rank == bridge::WordClass::rare)) canary.marks.push_back(part);
  }
  std::erase_if(canary.marks, [](const std::string& mark) { return mark.size() < 3; });
}

}  // namespace

CanaryQuestion make_canary(std::mt19937_64& random, const std::vector<std::string>& questions) {
  static const std::vector<Kind> kinds[] = {secret_kinds(), personal_kinds(), local_kinds()};
  static const std::vector<Hiding> ways = hidings();
  const auto& group = kinds[below(random, std::size(kinds))];
  const Kind& kind = group[below(random, group.size())];
  CanaryQuestion canary;
  canary.kind = kind.name;
  const std::string secret = kind.make(random);
  std::string shown = secret;
  canary.how = "none";
  if (below(random, 2) == 1) {
    const Hiding& way = ways[below(random, ways.size())];
    std::string hidden = way.hide(secret, random);
    // "quick silver" is ordinary text, and no longer a hidden canary.
    if (!is_ordinary(hidden)) {
      shown = std::move(hidden);
      canary.how = way.name;
    }
  }
  add_marks(canary, secret);
  add_marks(canary, shown);
  canary.words = parts_of(secret);
  canary.query = any(random, frames);
  put(canary.query, "{q}", questions[below(random, questions.size())]);
  put(canary.query, "{c}", shown);
  return canary;
}

bool leaks(const CanaryQuestion& canary, std::string_view sent) {
  const std::string bare = plain(sent);
  const std::vector<std::string> words = parts_of(sent);
  return std::any_of(canary.marks.begin(), canary.marks.end(), [&](const std::string& mark) {
    return mark.size() < 6 ? std::find(words.begin(), words.end(), mark) != words.end()
                           : bare.find(mark) != std::string::npos;
  });
}

}  // namespace muniment::testing
