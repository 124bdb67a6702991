#include "bridge/scrub.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "bridge/local_rules.hpp"
#include "bridge/sanitiser.hpp"

namespace muniment::bridge {
namespace {

constexpr std::size_t scrubbed_line_bytes_max = 1 << 20;

constexpr std::string_view secret_words[] = {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"};

constexpr std::string_view allowed_names[] = {
    "CI",        "COLORTERM", "EDITOR", "HOME",        "HOSTNAME",   "LANG",  "LANGUAGE",          "LOGNAME",
    "MAKEFLAGS", "NODE_ENV",  "PATH",   "PWD",         "PYTHONPATH", "SHELL", "SOURCE_DATE_EPOCH", "TERM",
    "TMPDIR",    "TZ",        "USER",   "VIRTUAL_ENV",
};
constexpr std::string_view allowed_beginnings[] = {"LC_", "MUNIMENT_"};

constexpr std::string_view key_end = "-----END";

std::string upper(std::string_view text) {
  std::string loud(text);
  for (char& c : loud) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return loud;
}

// The rules that scrub_by has read; none before.
std::optional<LocalRules>& local_rules() {
  static std::optional<LocalRules> read;
  return read;
}

// Each thread has its own, since the matcher writes to its memory; the first use reads the compiled rules.
Sanitiser& sanitiser() {
  struct OfThread {
    Sanitiser sanitiser{Scope::output};
    OfThread() {
      // read_local_rules has compiled the rules before.
      if (local_rules()) static_cast<void>(sanitiser.use(*local_rules()).ok());
    }
  };
  thread_local OfThread of_thread;
  return of_thread.sanitiser;
}

// Replaces the secrets. `inside` tells on entry whether the text begins inside a private key, and on return whether it
// ends inside one.
std::size_t scrub_piece(std::string& text, bool& inside) {
  if (inside) {
    const std::size_t end = text.find(key_end);
    inside = end == std::string::npos;
    text.erase(0, std::min(end, text.size()));
    if (inside) return 0;  // counted with its beginning
  }
  const std::vector<Finding> findings = sanitiser().find(text);
  inside = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.open; });
  return redact(text, findings, [](const Finding&) { return std::string(scrubbed_text); });
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

// curl -u user:password
bool scrub_login(std::string& word, std::string_view option) {
  const std::size_t colon = word.find(':');
  const bool login = option == "-u" || option == "--user" || option == "-U" || option == "--proxy-user";
  if (!login || colon == std::string::npos || colon + 1 == word.size()) return false;
  word.replace(colon + 1, std::string::npos, scrubbed_text);
  return true;
}

bool is_curl(std::string_view word) { return word == "curl" || word.ends_with("/curl"); }

// Names of JSON members: "KeyError", "monkey" and "max_tokens" do not announce a secret, but plurals of the other words
// do.
bool announces_secret(std::string_view word) {
  std::string name = upper(word);
  if (name.ends_with('S') && !name.ends_with("TOKENS") && !name.ends_with("SS")) name.pop_back();
  return std::any_of(std::begin(secret_words), std::end(secret_words), [&name](std::string_view secret) {
    if (!name.ends_with(secret)) return false;
    const std::string_view before = std::string_view(name).substr(0, name.size() - secret.size());
    return secret != "KEY" || before.ends_with('_') || before.ends_with('-');
  });
}

}  // namespace

Status scrub_by(const Config& config, const char* const* environment) {
  ASSIGN_OR_RETURN(local_rules(), read_local_rules(config, environment));
  return success();
}

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
  return announces_secret(spaced);
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
      count += scrub_text(text);  // a header or a whole script
    }
  }
  return count;
}

std::size_t scrub_text(std::string& text) {
  bool inside_key = false;
  return scrub_piece(text, inside_key);
}

Result<std::size_t> scrub_file(const Fd& source, const Fd& copy) {
  std::size_t count = 0;
  std::string held;  // the incomplete last line
  bool inside_key = false;
  std::int64_t offset = 0;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const std::string bytes, read_at(source, offset, scrubbed_line_bytes_max));
    offset += static_cast<std::int64_t>(bytes.size());
    more = bytes.size() == scrubbed_line_bytes_max;
    held += bytes;
    const std::size_t line = held.rfind('\n');
    const bool whole = !more || line == std::string::npos;
    std::string out = whole ? std::exchange(held, {}) : held.substr(0, line + 1);
    if (!whole) held.erase(0, line + 1);
    count += scrub_piece(out, inside_key);
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

}  // namespace muniment::bridge
