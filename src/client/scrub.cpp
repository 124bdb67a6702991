#include "client/scrub.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace muniment::cli {
namespace {

constexpr std::size_t scrubbed_line_bytes_max = 1 << 20;

constexpr std::string_view secret_words[] = {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"};

constexpr std::string_view allowed_names[] = {
    "CI",        "COLORTERM", "EDITOR", "HOME",        "HOSTNAME",   "LANG",  "LANGUAGE",          "LOGNAME",
    "MAKEFLAGS", "NODE_ENV",  "PATH",   "PWD",         "PYTHONPATH", "SHELL", "SOURCE_DATE_EPOCH", "TERM",
    "TMPDIR",    "TZ",        "USER",   "VIRTUAL_ENV",
};
constexpr std::string_view allowed_beginnings[] = {"LC_", "MUNIMENT_"};

// Keys with a known prefix, chosen by their issuers so that scanners find them.
struct KeyShape {
  std::string_view beginning;
  std::size_t length_min;
};
constexpr KeyShape key_shapes[] = {
    {"AKIA", 20},  {"ASIA", 20},        {"AIza", 35},   {"eyJ", 40}, {"ghp_", 20},     {"gho_", 20},
    {"ghs_", 20},  {"github_pat_", 20}, {"glpat-", 20}, {"sk-", 20}, {"sk_live_", 20}, {"rk_live_", 20},
    {"xoxb-", 20}, {"xoxp-", 20},       {"npm_", 20},   {"hf_", 20}, {"pypi-", 20},
};

std::string upper(std::string_view text) {
  std::string loud(text);
  for (char& c : loud) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return loud;
}

bool is_key_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == '+';
}

// scheme://user:password@host
bool scrub_url(std::string& text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string::npos) return false;
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(text.find_first_of("/?# '\"", begin), text.size());
  const std::size_t at = text.substr(begin, end - begin).rfind('@');
  if (at == std::string::npos) return false;
  const std::size_t colon = text.find(':', begin);
  if (colon == std::string::npos || colon >= begin + at) return false;
  text.replace(colon + 1, begin + at - colon - 1, scrubbed_text);
  return true;
}

bool scrub_shape(std::string& text) {
  for (const KeyShape& shape : key_shapes) {
    const std::size_t begin = text.find(shape.beginning);
    if (begin == std::string::npos || (begin > 0 && is_key_character(text[begin - 1]))) continue;
    const auto end = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_key_character);
    const auto length = static_cast<std::size_t>(end - text.begin()) - begin;
    if (length < shape.length_min) continue;
    text.replace(begin, length, scrubbed_text);
    return true;
  }
  return false;
}

// NAME=value, --name=value: the value of a secret name.
bool scrub_assignment(std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) return false;
  const std::string_view name = std::string_view(text).substr(0, equals);
  if (name.find_first_of(" /'\"(") != std::string_view::npos || !names_a_secret(name)) return false;
  text.replace(equals + 1, std::string::npos, scrubbed_text);
  return true;
}

bool is_secret_option(std::string_view text) {
  return text.starts_with("--") && text.find('=') == std::string_view::npos && names_a_secret(text);
}

// Recognises "password:" and "api_key:" before a value, as programs print them. "KeyError:", "monkey:" and
// "max_tokens:" do not announce a secret, but plurals of the other words do.
bool announces_secret(std::string_view word) {
  if (is_secret_option(word)) return true;
  if (!word.ends_with(':')) return false;
  std::string name = upper(word.substr(0, word.size() - 1));
  if (name.ends_with('S') && !name.ends_with("TOKENS") && !name.ends_with("SS")) name.pop_back();
  return std::any_of(std::begin(secret_words), std::end(secret_words), [&name](std::string_view secret) {
    if (!name.ends_with(secret)) return false;
    const std::string_view before = std::string_view(name).substr(0, name.size() - secret.size());
    return secret != "KEY" || before.ends_with('_') || before.ends_with('-');
  });
}

bool is_scheme(std::string_view word) {
  return word == "Bearer" || word == "bearer" || word == "Basic" || word == "basic";
}

bool has_one(std::string_view word, int (*kind)(int)) {
  return std::any_of(word.begin(), word.end(), [kind](unsigned char c) { return kind(c) != 0; });
}

// After "Authorization: Bearer", or if the line begins with "Bearer", any value is a secret. Elsewhere a value is a
// secret only if it is not an ordinary word, as in "basic usage" or "bearer tokens".
bool is_credential(std::string_view word, std::string_view scheme, std::string_view before_scheme, bool last) {
  if (before_scheme.ends_with("uthorization:")) return true;
  const bool bearer = scheme.ends_with("earer");
  if (bearer && before_scheme.empty() && last) return true;
  if (word.size() < 8) return false;
  return has_one(word, std::isdigit) || (bearer && has_one(word, std::ispunct));
}

// curl -u user:password
bool scrub_login(std::string& word, std::string_view option) {
  const std::size_t colon = word.find(':');
  const bool login = option == "-u" || option == "--user" || option == "-U" || option == "--proxy-user";
  if (!login || colon == std::string::npos || colon + 1 == word.size()) return false;
  word.replace(colon + 1, std::string::npos, scrubbed_text);
  return true;
}

bool is_curl(std::string_view word) { return word == "curl" || word.ends_with("/curl"); }

// Replaces the bodies of private keys (PEM). `inside` tells on entry whether the text begins inside a key, and on
// return whether it ends inside one.
std::size_t scrub_private_keys(std::string& text, bool& inside) {
  constexpr std::string_view begins = "-----BEGIN ";
  constexpr std::string_view dashes = "-----";
  std::size_t count = 0;
  for (std::size_t body = 0;;) {
    if (!inside) {
      const std::size_t begin = text.find(begins, body);
      if (begin == std::string::npos) return count;
      const std::size_t end = text.find(dashes, begin + begins.size());
      if (end == std::string::npos) return count;
      body = end + dashes.size();
      if (std::string_view(text).substr(begin, end - begin).find("PRIVATE KEY") == std::string_view::npos) continue;
    }
    const std::size_t end = text.find("-----END", body);
    const std::size_t size = std::min(end, text.size()) - body;
    inside = end == std::string::npos;
    if (size > 0) {
      text.replace(body, size, scrubbed_text);
      ++count;
    }
    if (inside) return count;
    body += size > 0 ? scrubbed_text.size() : 0;
  }
}

}  // namespace

bool names_a_secret(std::string_view name) {
  const std::string loud = upper(name);
  return std::any_of(std::begin(secret_words), std::end(secret_words),
                     [&loud](std::string_view word) { return loud.find(word) != std::string::npos; });
}

bool is_secret_member(std::string_view name) {
  std::string spaced;  // writes accessKey as access_Key
  for (const char c : name) {
    const bool begins_word = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (begins_word && !spaced.empty() && std::islower(static_cast<unsigned char>(spaced.back())) != 0) spaced += '_';
    spaced += c;
  }
  return announces_secret(spaced + ":");
}

std::size_t scrub_arguments(std::vector<std::string>& arguments) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string& text = arguments[i];
    const bool value_of_secret = i > 1 && is_secret_option(arguments[i - 1]) && !text.starts_with("-");
    if (value_of_secret) {
      text = scrubbed_text;
      ++count;
    } else if (i > 1 && is_curl(arguments.front()) && scrub_login(text, arguments[i - 1])) {
      ++count;
    } else if (scrub_assignment(text)) {
      ++count;
    } else {
      bool inside_key = false;
      count += scrub_private_keys(text, inside_key) + scrub_line(text);  // a header or a whole script
    }
  }
  return count;
}

std::size_t scrub_line(std::string& line) {
  constexpr std::string_view separators = " \t\r\n'\",;()<>{}[]";
  std::size_t count = 0;
  std::string out;
  std::string before;       // the previous word,
  std::string before_that;  // and the word before it
  bool curl = false;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = std::min(line.find_first_not_of(separators, at), line.size());
    out.append(line, at, begin - at);
    const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
    std::string word = line.substr(begin, end - begin);
    if (word.empty()) break;
    // "Authorization: Bearer …" has two announcing words; the second one is not the secret.
    const bool announced =
        is_scheme(before)
            ? is_credential(word, before, before_that, line.find_first_not_of(separators, end) == std::string::npos)
            : announces_secret(before) && !is_scheme(word);
    curl = curl || is_curl(word);
    before_that = std::exchange(before, word);
    if (announced) word = scrubbed_text;
    if (announced || (curl && scrub_login(word, before_that)) || scrub_assignment(word) || scrub_url(word)) ++count;
    while (scrub_shape(word)) ++count;
    out += word;
    at = end;
  }
  line = std::move(out);
  return count;
}

std::size_t scrub_text(std::string& text) {
  bool inside_key = false;
  std::size_t count = scrub_private_keys(text, inside_key);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    count += scrub_line(line);
    out += line;
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  if (count > 0) text = std::move(out);
  return count;
}

Result<std::size_t> scrub_file(const Fd& source, const Fd& copy) {
  std::size_t count = 0;
  std::string held;  // the incomplete last line
  bool inside_key = false;
  std::int64_t offset = 0;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const std::string piece, read_at(source, offset, scrubbed_line_bytes_max));
    offset += static_cast<std::int64_t>(piece.size());
    more = piece.size() == scrubbed_line_bytes_max;
    held += piece;
    std::string out;
    std::size_t at = 0;
    for (std::size_t end = held.find('\n'); end != std::string::npos; end = held.find('\n', at)) {
      std::string line = held.substr(at, end - at);
      count += scrub_private_keys(line, inside_key) + scrub_line(line);
      out += line + '\n';
      at = end + 1;
    }
    held.erase(0, at);
    if (!more || held.size() >= scrubbed_line_bytes_max) {
      count += scrub_private_keys(held, inside_key) + scrub_line(held);
      out += std::exchange(held, {});
    }
    RETURN_IF_ERROR(write_all(copy.get(), out, "a temporary file"));
  }
  return count;
}

std::vector<std::pair<std::string, std::string>> allowed_environment(const char* const* environment) {
  std::vector<std::pair<std::string, std::string>> allowed;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    const bool listed =
        std::find(std::begin(allowed_names), std::end(allowed_names), name) != std::end(allowed_names) ||
        std::any_of(std::begin(allowed_beginnings), std::end(allowed_beginnings),
                    [name](std::string_view beginning) { return name.starts_with(beginning); });
    // A database URI may contain a password.
    if (!listed || names_a_secret(name) || name == "MUNIMENT_DATABASE") continue;
    std::vector<std::string> value = {std::string(variable.substr(equals + 1))};
    scrub_arguments(value);
    allowed.emplace_back(name, std::move(value.front()));
  }
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(
      std::unique(allowed.begin(), allowed.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
      allowed.end());
  return allowed;
}

}  // namespace muniment::cli
