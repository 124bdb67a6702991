// Recognises injected SQL: statements stacked after a quote, tautologies, comments that cut off a query.
#include "evidence/completion/text/sign.hpp"

#include <algorithm>

namespace muniment::evidence::completion {
namespace {

bool ends_in_comment(std::string_view rest) {
  const std::size_t at = rest.find("--");
  return at != std::string_view::npos || rest.find("/*") != std::string_view::npos;
}

// Returns whether a statement that changes or reads data begins at the keyword.
bool statement_at(std::string_view at) {
  for (const std::string_view head : {"drop", "truncate", "alter"}) {
    if (!begins_word(at, head)) continue;
    const std::string_view object = word_at(skip_blanks(at.substr(head.size())));
    for (const std::string_view kind : {"table", "database", "schema", "user", "role"}) {
      if (begins_word(object, kind)) return true;
    }
  }
  if (begins_word(at, "delete")) return begins_word(skip_blanks(at.substr(6)), "from");
  if (begins_word(at, "insert")) return begins_word(skip_blanks(at.substr(6)), "into");
  if (begins_word(at, "update")) return contains(at.substr(0, 80), " set ");
  if (begins_word(at, "exec") || begins_word(at, "execute"))
    return contains(at.substr(0, 40), "xp_") || contains(at.substr(0, 40), "sp_");
  if (begins_word(at, "shutdown")) return true;
  if (begins_word(at, "select")) return contains(at.substr(0, 80), "sleep(") || contains(at.substr(0, 80), "pg_sleep");
  return false;
}

}  // namespace

// '; DROP TABLE x; --   and   ' OR '1'='1   and   ' UNION SELECT …
bool is_broken_quote(std::string_view at) {
  std::string_view rest = at.substr(1, sign_bytes_max);
  rest = skip_blanks(rest);
  while (!rest.empty() && rest[0] == ')') rest = skip_blanks(rest.substr(1));
  if (rest.empty()) return false;
  if (rest[0] == ';') return statement_at(skip_blanks(rest.substr(1))) || begins(skip_blanks(rest.substr(1)), "--");
  if (rest.starts_with("--")) {
    return rest.size() == 2 ||
           (is_blank(rest[2]) && skip_blanks(rest.substr(2)).substr(0, 1).find_first_of("\n\"'") == 0);
  }
  if (begins_word(rest, "union")) return contains(rest.substr(0, 40), "select");
  const bool disjunction = begins_word(rest, "or") || begins_word(rest, "and") || rest.starts_with("||");
  if (!disjunction) return false;
  rest = skip_blanks(rest.substr(begins_word(rest, "and") ? 3 : 2));
  const bool quote = !rest.empty() && (rest[0] == '\'' || rest[0] == '"');
  if (quote) rest.remove_prefix(1);
  const std::string_view left = word_at(rest);
  if (left.empty()) return quote && rest.substr(0, 4).find('=') != std::string_view::npos;
  rest = rest.substr(left.size());
  if (quote && !rest.empty() && (rest[0] == '\'' || rest[0] == '"')) rest.remove_prefix(1);
  rest = skip_blanks(rest);
  if (begins_word(left, "sleep") || begins_word(left, "benchmark") || begins_word(left, "pg_sleep")) return true;
  if (rest.empty() || rest[0] != '=' || rest.substr(1, 1) == "=") return begins_word(rest, "like") && quote;
  rest = skip_blanks(rest.substr(1));
  if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"')) rest.remove_prefix(1);
  return word_at(rest) == left;
}

// "1 OR 1=1", "UNION SELECT password FROM users --", "1; DROP TABLE users", and a destructive statement on its own.
bool is_bare_sql(std::string_view at, std::string_view before) {
  if (!begins_as_any(at, "or un xp dr tr al de in up ex sh se")) return false;
  const std::string_view line = line_from(at.substr(0, sign_bytes_max));
  if (begins_word(at, "or")) {
    std::string_view rest = skip_blanks(line.substr(std::min<std::size_t>(2, line.size())));
    const std::string_view left = word_at(rest);
    if (left.empty() || !is_digit(left[0])) return false;
    rest = skip_blanks(rest.substr(left.size()));
    if (rest.empty() || rest[0] != '=' || rest.substr(1, 1) == "=") return false;
    rest = skip_blanks(rest.substr(1));
    return word_at(rest) == left;
  }
  if (begins_word(at, "union")) {
    std::string_view rest = skip_blanks(line.substr(5));
    if (begins_word(rest, "all")) rest = skip_blanks(rest.substr(3));
    return begins_word(rest, "select") &&
           (ends_in_comment(rest) || contains(rest, "null,") || contains(rest, "password"));
  }
  if (begins_word(at, "xp_cmdshell")) return true;
  if (!statement_at(at)) return false;
  if (begins_word(at, "drop") || begins_word(at, "truncate")) return true;
  std::string_view front = before;
  while (!front.empty() && (front.back() == ' ' || front.back() == '\t')) front.remove_suffix(1);
  return !front.empty() && front.back() == ';' && ends_in_comment(line);
}

}  // namespace muniment::evidence::completion
