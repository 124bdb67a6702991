// Scans a text for the beginnings of tells, and decides whether a tell is quoted.
#include "evidence/completion/text/tells.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.hpp"
#include "evidence/completion/text/sign.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t quote_reach_bytes = 160;

bool markup_at(std::string_view at) {
  const std::string_view rest = at.substr(1);
  for (const std::string_view tag : {"script", "iframe", "object", "embed", "applet", "meta http-equiv", "base href"}) {
    if (begins(rest, tag) && rest.size() > tag.size() && !is_word_byte(rest[tag.size()])) return true;
  }
  if (begins(rest, "!entity") || begins(rest, "!doctype foo")) return true;
  if (begins(rest, "?php")) return true;
  if (rest.empty() || !is_letter(rest[0])) return false;
  // An event handler or a script address inside any tag.
  const std::string_view tag = rest.substr(0, std::min({rest.find('>'), rest.find('\n'), sign_bytes_max}));
  for (std::size_t i = 1; i + 4 < tag.size(); ++i) {
    const bool boundary = is_blank(tag[i - 1]) || tag[i - 1] == '/' || tag[i - 1] == '"' || tag[i - 1] == '\'';
    if (boundary && begins(tag.substr(i), "on")) {
      const std::string_view name = word_at(tag.substr(i));
      const std::string_view after = skip_blanks(tag.substr(i + name.size()));
      if (name.size() >= 5 && !after.empty() && after[0] == '=') return true;
    }
    if (begins(tag.substr(i), "javascript:")) return true;
  }
  return false;
}

bool lookup_at(std::string_view at) {
  if (!at.starts_with("${")) return false;
  const std::string_view inside = at.substr(2, sign_bytes_max);
  for (const std::string_view scheme : {"jndi:", "lower:", "upper:", "::-", "env:", "sys:", "java:", "ctx:", "${"}) {
    if (begins(inside, scheme))
      return scheme != "env:" || contains(line_from(inside), "jndi") || contains(line_from(inside), ":-");
  }
  return contains(inside.substr(0, std::min(inside.find('}'), inside.size())), "jndi");
}

// {{7*7}}, ${7*7}, #{7*7}, {{config.__class__}}
bool template_at(std::string_view at) {
  if (!at.starts_with("{{") && !at.starts_with("${") && !at.starts_with("#{")) return false;
  std::string_view inside = at.substr(2, sign_bytes_max);
  inside = inside.substr(0, std::min(inside.find('}'), inside.size()));
  if (inside.find("__") != std::string_view::npos && contains(inside, "class")) return true;
  std::string_view rest = skip_blanks(inside);
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits == 0) return false;
  rest = skip_blanks(rest.substr(digits));
  return !rest.empty() && rest[0] == '*' && rest.size() > 1 && (is_digit(rest[1]) || rest[1] == '\'' || rest[1] == ' ');
}

// Returns whether the text begins with a program that reads secrets, fetches code or destroys data, in a substitution
// or after a value that it breaks out of.
bool hostile_command(std::string_view text) {
  text = skip_blanks(text);
  if (begins(text, "rm -") || begins(text, "cat /etc/") || begins(text, "cat ~/") || begins(text, "chmod ") ||
      begins(text, "mkfs"))
    return true;
  if (begins(text, "dd if=") || begins(text, "bash -i") || begins(text, "nc -") || begins(text, "nc ") ||
      begins(text, "ncat "))
    return true;
  for (const std::string_view word :
       {"whoami", "id", "curl", "wget", "eval", "reboot", "shutdown", "netcat", "powershell", "passwd", "uname"}) {
    if (begins_word(text, word)) return true;
  }
  return false;
}

bool pipes_to_shell(std::string_view text) {
  text = skip_blanks(text);
  for (const std::string_view shell : {"sh", "bash", "zsh", "/bin/sh", "/bin/bash", "sudo sh", "sudo bash"}) {
    if (begins_word(text, shell)) return true;
  }
  return false;
}

bool shell_at(std::string_view at, std::string_view before) {
  const char c = at[0];
  if (c == '$') return at.starts_with("$(") && hostile_command(at.substr(2));  // "$ curl" follows a prompt
  if (c == '`') {
    const std::string_view inside = at.substr(1, sign_bytes_max);
    if (inside.find('`') == std::string_view::npos) return false;
    const std::string_view command = inside.substr(0, inside.find('`'));
    // Prose quotes commands in backquotes: `id` and `curl` alone are names.
    return hostile_command(command) && (command.find(' ') != std::string_view::npos || begins_word(command, "whoami"));
  }
  const bool doubled = at.size() > 1 && at[1] == c;
  const std::string_view command = at.substr(doubled ? 2 : 1, sign_bytes_max);
  if (c == '|' && pipes_to_shell(command)) {
    const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const std::string_view line = before.substr(begin);
    return contains(line, "curl") || contains(line, "wget") || contains(line, "base64") || contains(line, "echo");
  }
  if (!hostile_command(command) || begins_word(skip_blanks(command), "id")) return false;
  if (c == '&' && !doubled) return false;
  // A command line in a build or install log may also chain such programs: the line begins with one.
  const std::size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view line = skip_blanks(before.substr(begin));
  const bool command_line = line.starts_with("$ ") || line.starts_with("+ ") || line.starts_with("RUN ") ||
                            line.starts_with("# ") || begins_word(line, "apt") || begins_word(line, "cd") ||
                            begins_word(line, "mkdir") || line.starts_with("> ");
  return !command_line;
}

bool traversal_at(std::string_view at) {
  std::size_t steps = 0;
  std::string_view rest = at.substr(0, sign_bytes_max);
  bool encoded = false;
  for (;;) {
    std::size_t dots = 0;
    if (rest.starts_with("..")) {
      dots = rest.starts_with("....") ? 4 : 2;
    } else if (begins(rest, "%2e%2e")) {
      dots = 6;
      encoded = true;
    } else {
      break;
    }
    std::string_view after = rest.substr(dots);
    std::size_t slash = 0;
    if (after.starts_with("//") || after.starts_with("\\\\")) {
      slash = 2;
    } else if (after.starts_with("/") || after.starts_with("\\")) {
      slash = 1;
    } else if (begins(after, "%2f") || begins(after, "%5c")) {
      slash = 3;
      encoded = true;
    } else if (begins(after, "%c0%af") || begins(after, "%252f")) {
      slash = begins(after, "%252f") ? 5 : 6;
      encoded = true;
    } else {
      break;
    }
    ++steps;
    rest = after.substr(slash);
  }
  if (steps == 0) return false;
  if (encoded) return true;
  for (const std::string_view secret : {"etc/", "etc\\", "windows/", "windows\\", "winnt", "boot.ini", "proc/self",
                                        ".ssh/", "root/", "var/log/", "shadow", "passwd"}) {
    if (begins(rest, secret)) return steps >= 2 || secret == "etc/" || secret == "shadow" || secret == "passwd";
  }
  return false;
}

bool secret_path_at(std::string_view at) {
  return begins(at, "file:///etc/") || begins(at, "http://169.254.169.254") || begins(at, "data:text/html") ||
         begins(at, "javascript:");
}

bool code_at(std::string_view at, std::string_view before) {
  if (!before.empty() && is_word_byte(before.back())) return false;
  if (begins(at, "__import__('") || begins(at, "__import__(\"")) return true;
  const bool runs =
      begins(at, "os.system(") || begins(at, "eval(") || begins(at, "exec(") || begins(at, "runtime.getruntime()");
  if (!runs) return false;
  const std::string_view line = line_from(at.substr(0, sign_bytes_max));
  return contains(line, "rm -") || contains(line, "atob(") || contains(line, "/etc/") || contains(line, "curl") ||
         contains(line, "base64") || contains(line, "document.cookie") || contains(line, "__import__") ||
         contains(line, "getruntime");
}

bool ansi_at(std::string_view at) {
  std::string_view rest = at.substr(1, 64);
  if (rest.empty()) return true;
  if (rest[0] == '(' || rest[0] == ')') return rest.size() < 2 || (rest[1] != 'B' && rest[1] != '0');
  if (rest[0] != '[') return true;
  std::size_t i = 1;
  while (i < rest.size() && (is_digit(rest[i]) || rest[i] == ';' || rest[i] == ':')) ++i;
  if (i == rest.size()) return true;
  if (rest[i] == 'm') return false;
  // Erasing to the end of the line is allowed, because compilers do it after each colour.
  return !(rest[i] == 'K' && (i == 1 || (i == 2 && rest[1] == '0')));
}

bool near_ascii_letter(std::string_view before, std::string_view after) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '\n'; };
  return (before.empty() || ascii(before.back())) && (after.empty() || ascii(after[0]));
}

std::optional<Tell> invisible_at(std::string_view text, std::size_t at) {
  const CodePoint point = decode_utf8(text, at);
  if (point.size == 0) return std::nullopt;
  const char32_t c = point.value;
  if ((c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)) return Tell::bidi;
  if (c >= 0xE0000 && c <= 0xE007F) return Tell::zero_width;
  const bool joins = c == 0x200C || c == 0x200D;
  if (c == 0x200B || c == 0x2060 || c == 0x180E || (c == 0xFEFF && at > 0)) return Tell::zero_width;
  if (joins && near_ascii_letter(text.substr(0, at), text.substr(at + point.size))) return Tell::zero_width;
  return std::nullopt;
}

// Returns whether the position is quoted: an odd number of the same quote precedes it on its line, or the line is part
// of a traceback, a diff or a source listing.
bool is_quoted(std::string_view text, std::size_t at) {
  const std::size_t reach = at > quote_reach_bytes ? at - quote_reach_bytes : 0;
  std::string_view before = text.substr(reach, at - reach);
  if (const std::size_t feed = before.rfind('\n'); feed != std::string_view::npos) before.remove_prefix(feed + 1);
  std::array<std::size_t, 3> quotes{};
  for (const char c : before) {
    if (c == '"') ++quotes[0];
    if (c == '\'') ++quotes[1];
    if (c == '`') ++quotes[2];
  }
  if (quotes[0] % 2 == 1 || quotes[1] % 2 == 1 || quotes[2] % 2 == 1) return true;
  const std::string_view line = line_from(text.substr(at - before.size(), sign_bytes_max));
  if (line.size() > 2 && (line.starts_with("E  ") || line.starts_with(">  ") || line.starts_with("+ ") ||
                          line.starts_with("- ") || line.starts_with("? ") || line.starts_with("    ")))
    return true;
  if (contains(line, "assert") && contains(line, "(")) return true;
  // The names of subtests in the output of go test.
  if (line.starts_with("=== RUN ") || skip_blanks(line).starts_with("--- PASS: ")) return true;
  // The parameters of a test: tests/test_x.py::test_name[<b>'--] PASSED.
  const std::size_t scope = before.find("::");
  return scope != std::string_view::npos && before.find('[', scope) != std::string_view::npos;
}

// A value that closes the surrounding JSON and adds members: pass"}, "can_complete": true.
bool closes_json(std::string_view at, std::string_view before) {
  if (at.size() < 2 || (at[1] != '}' && at[1] != ']') || before.find('{') != std::string_view::npos) return false;
  std::string_view rest = at.substr(1, sign_bytes_max);
  while (!rest.empty() && (rest[0] == '}' || rest[0] == ']' || rest[0] == ',' || is_blank(rest[0]))) {
    rest.remove_prefix(1);
  }
  if (rest.empty() || rest[0] != '"') return false;
  const std::string_view name = word_at(rest.substr(1));
  return !name.empty() && rest.substr(1 + name.size()).starts_with("\":");
}

// Returns the tell at a position. A quote that ends a value before SQL is not a quotation: "Test passed'; DROP TABLE
// evidence; --".
std::optional<Tell> tell_at(std::string_view text, std::size_t i) {
  const std::string_view at = text.substr(i);
  const std::string_view before = text.substr(0, i);
  switch (at[0]) {
    case '\0': return Tell::nul;
    case '\x1b': return ansi_at(at) ? std::optional(Tell::ansi) : std::nullopt;
    case '<':
      if (markup_at(at)) return Tell::markup;
      return takes_role(at, before) ? std::optional(Tell::prompt) : std::nullopt;
    case '[': return takes_role(at, before) ? std::optional(Tell::prompt) : std::nullopt;
    case '$':
    case '{':
    case '#':
      if (lookup_at(at)) return Tell::lookup;
      if (at[0] == '#' && takes_role(at, before)) return Tell::prompt;
      if (template_at(at)) return Tell::code;
      return at[0] == '$' && shell_at(at, before) ? std::optional(Tell::shell) : std::nullopt;
    case '`':
    case ';':
    case '|':
    case '&':
      return shell_at(at, before.substr(before.size() > sign_bytes_max ? before.size() - sign_bytes_max : 0))
                 ? std::optional(Tell::shell)
                 : std::nullopt;
    case '\'':
    case '"':
      if (at[0] == '"' && closes_json(at, before)) return Tell::code;
      return is_broken_quote(at) ? std::optional(Tell::sql) : std::nullopt;
    case '.':
    case '%':
      if (i > 0 && text[i - 1] == '.') return std::nullopt;
      if (begins(at, "%00")) return Tell::nul;
      if (begins(at, "%0d%0a")) return Tell::code;
      return traversal_at(at) ? std::optional(Tell::traversal) : std::nullopt;
    default: break;
  }
  if (static_cast<unsigned char>(at[0]) >= 0xE1) return invisible_at(text, i);
  return std::nullopt;
}

// Returns the tell that begins at the first letter of a word.
std::optional<Tell> tell_at_word(std::string_view text, std::size_t i) {
  const std::string_view at = text.substr(i);
  const std::string_view before = text.substr(0, i);
  switch (lower(at[0])) {
    case 'o':
      if (code_at(at, before)) return Tell::code;
      if (orders_reader(at, before)) return Tell::prompt;
      return is_bare_sql(at, before) ? std::optional(Tell::sql) : std::nullopt;
    case 'u':
    case 't':
    case 'x':
      if (is_bare_sql(at, before)) return Tell::sql;
      return orders_reader(at, before) ? std::optional(Tell::prompt) : std::nullopt;
    case 'd':
      if (is_bare_sql(at, before)) return Tell::sql;
      if (begins(at, "data:text/html")) return Tell::markup;
      return overrides_instructions(at) || addresses_reader(at) ? std::optional(Tell::prompt) : std::nullopt;
    case 'i':
    case 's':
    case 'b':
      if (is_bare_sql(at, before)) return Tell::sql;
      return overrides_instructions(at) || orders_reader(at, before) || takes_role(at, before)
                 ? std::optional(Tell::prompt)
                 : std::nullopt;
    case 'f':
      if (secret_path_at(at)) return Tell::traversal;
      return overrides_instructions(at) ? std::optional(Tell::prompt) : std::nullopt;
    case 'h':
      return secret_path_at(at)       ? std::optional(Tell::traversal)
             : takes_role(at, before) ? std::optional(Tell::prompt)
                                      : std::nullopt;
    case 'j': return secret_path_at(at) ? std::optional(Tell::markup) : std::nullopt;
    case 'e':
    case '_': return code_at(at, before) ? std::optional(Tell::code) : std::nullopt;
    case 'a':
      return orders_reader(at, before) || addresses_reader(at) || takes_role(at, before) ? std::optional(Tell::prompt)
                                                                                         : std::nullopt;
    case 'm':
    case 'c':
    case 'r':
    case 'y':
    case 'n':
      if (code_at(at, before)) return Tell::code;
      return orders_reader(at, before) || addresses_reader(at) ? std::optional(Tell::prompt) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<FoundTell> tells_in(std::string_view text) {
  std::array<std::optional<FoundTell>, tells_count> first;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool word_byte = (byte_kind(c) & (lower_byte | upper_byte | digit_byte)) != 0 || c == '_';
    if ((word_byte && in_word) || c == ' ') {
      in_word = word_byte;
      continue;
    }
    std::optional<Tell> tell;
    if (!word_byte) {
      tell = tell_at(text, i);
    } else {
      tell = tell_at_word(text, i);
    }
    in_word = word_byte;
    if (!tell) continue;
    auto& slot = first[static_cast<std::size_t>(*tell)];
    if (slot && !slot->quoted) continue;
    const bool controls = *tell == Tell::nul || *tell == Tell::ansi || *tell == Tell::bidi || *tell == Tell::zero_width;
    const bool quoted = !controls && is_quoted(text, i);
    if (!slot || !quoted) slot = FoundTell{*tell, i, quoted};
  }
  std::vector<FoundTell> found;
  for (const auto& slot : first) {
    if (slot) found.push_back(*slot);
  }
  return found;
}

}  // namespace muniment::evidence::completion
