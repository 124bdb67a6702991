// Recognizes definitions by keywords and by shape.
#include "retrieval/text/formats/code_definition.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {
namespace {

constexpr std::string_view modifiers =
    " export default async public private protected internal static final abstract override virtual inline constexpr consteval extern pub unsafe const sealed data open "
    "partial readonly declare native synchronized strictfp local typedef suspend operator mutating friend explicit default! ";
constexpr std::string_view containers =
    " class struct interface trait impl module enum union object protocol extension record mixin actor service message contract mod ";
constexpr std::string_view weak_containers =
    "object record actor message service contract extension protocol mod";  // these words have other uses too
constexpr std::string_view functions =
    " def fn func function sub procedure proc fun macro defun defmodule defp defmacro fixpoint theorem ";
constexpr std::string_view no_functions =
    " if else for while switch catch return sizeof do case new delete throw try in of typeof await yield assert elif elsif unless until when match loop print raise with "
    "except from import and or not goto using static_assert defined require include synchronized ";
constexpr std::string_view sql_kinds =
    " table view function procedure index trigger type schema database sequence policy role extension domain aggregate ";
constexpr std::string_view sql_fillers =
    " or replace temp temporary unique materialized if not exists concurrently recursive global local unlogged external ";

bool is_name(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Takes the word at the beginning of `rest`, with the blanks after it.
std::string_view take_word(std::string_view& rest, std::string_view also = "") {
  std::size_t end = 0;
  while (end < rest.size() && (is_name(rest[end]) || also.find(rest[end]) != std::string_view::npos)) ++end;
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  while (!rest.empty() && is_ascii_blank(rest.front())) rest.remove_prefix(1);
  return word;
}

// Skips "(…)" or "<…>" at the beginning of `rest`, and blanks.
std::string_view take_bracketed(std::string_view& rest, char open, char close) {
  if (!rest.starts_with(open)) return {};
  int depth = 0;
  std::size_t end = 0;
  while (end < rest.size()) {
    const char c = rest[end++];
    depth += c == open ? 1 : c == close ? -1 : 0;
    if (depth == 0) break;
  }
  const std::string_view inside = rest.substr(1, end > 1 ? end - 2 : 0);
  rest.remove_prefix(end);
  while (!rest.empty() && is_ascii_blank(rest.front())) rest.remove_prefix(1);
  return inside;
}

// impl<T: X> Display for Stack<T> where …
Definition implementation(std::string_view rest) {
  take_bracketed(rest, '<', '>');
  std::string_view words = rest.substr(0, rest.find('{'));
  words = words.substr(0, words.find(" where "));
  return {"impl " + std::string(trimmed(words)), true};
}

// func (s *Store) Append( → Store.Append
Definition function(std::string_view keyword, std::string_view rest) {
  std::string receiver;
  if (keyword == "func" && rest.starts_with('(')) {
    std::string_view inside = take_bracketed(rest, '(', ')');
    inside = inside.substr(0, inside.find('['));
    receiver = std::string(inside.substr(inside.find_last_of(" *") + 1));
  }
  while (rest.starts_with('*') || rest.starts_with('&')) rest.remove_prefix(1);
  const std::string_view name = take_word(rest, ".:?!-");
  return {receiver.empty() ? std::string(name) : receiver + "." + std::string(name), false};
}

std::optional<Definition> by_keyword(std::string_view line, bool opens) {
  std::string_view rest = line;
  std::string_view word = take_word(rest);
  bool bound = false;  // const f = …
  for (int count = 0; count < 8 && (is_listed(modifiers, word) || word == "let" || word == "var"); ++count) {
    bound = bound || word == "const" || word == "let" || word == "var";
    if (word == "pub" || word == "extern") take_bracketed(rest, '(', ')');
    if (rest.starts_with('"')) take_word(rest, "\"");  // extern "C"
    const std::string_view before = rest;
    word = take_word(rest, "*");
    if (word == "function*") word = "function";
    if (before == rest) return std::nullopt;
  }
  if (word == "impl") return implementation(rest);
  const bool declared = !opens && line.ends_with(';');
  if (is_listed(containers, word)) {
    if (word == "enum" && (rest.starts_with("class ") || rest.starts_with("struct "))) take_word(rest);
    while (rest.starts_with("alignas") || rest.starts_with("[["))
      rest = trimmed(rest.substr(std::min(rest.find_first_of(")]"), rest.size() - 1) + 1));
    std::string_view name = take_word(rest, ".:");
    while (name.ends_with(':')) name.remove_suffix(1);  // class Derived: Base
    if (name.empty() || declared || rest.starts_with('=') || (!opens && is_listed(weak_containers, word)))
      return std::nullopt;
    return Definition{std::string(word) + " " + std::string(name), true};
  }
  if (is_listed(functions, word) && !declared) {
    Definition found = function(word, rest);
    if (!found.label.empty()) return found;
    return std::nullopt;
  }
  if (word == "type" && opens) return Definition{"type " + std::string(take_word(rest)), true};
  if (word == "macro_rules") return Definition{std::string(take_word(rest, "! ")), false};
  const std::size_t assigned = rest.find('=');
  const bool is_function = bound && assigned != std::string_view::npos &&
                           (rest.find("=>", assigned) != std::string_view::npos ||
                            rest.substr(assigned + 1, 20).find("function") != std::string_view::npos);
  if (is_function) return Definition{std::string(word), false};
  return std::nullopt;
}

// type name(args) {, Class::name(args) {, name(args) {, name() {
std::optional<Definition> by_shape(std::string_view line, bool opens) {
  const std::size_t paren = line.find('(');
  if (paren == std::string_view::npos || paren == 0 || !opens) return std::nullopt;
  const std::string_view head = trimmed(line.substr(0, paren));
  if (head.find_first_of("=.;\"'{}?!#,+") != std::string_view::npos || head.find("->") != std::string_view::npos)
    return std::nullopt;
  std::size_t start = head.size();
  while (start > 0 && (is_name(head[start - 1]) || head[start - 1] == ':' || head[start - 1] == '~')) --start;
  std::string_view name = head.substr(start);
  while (name.starts_with(':')) name.remove_prefix(1);
  std::string_view first = head;
  if (name.empty() || is_listed(no_functions, name) || is_listed(no_functions, take_word(first))) return std::nullopt;
  if (start > 0) return Definition{std::string(name), false};
  if (name.ends_with('_')) return std::nullopt;  // a member in a constructor's list
  // Only a name before the bracket: a method, a constructor, or a macro whose arguments name its definition.
  const std::size_t close = line.find(')', paren);
  const bool macro = name == lower_ascii(name)
                         ? false
                         : std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return Definition{std::string(macro && close != std::string_view::npos ? line.substr(0, close + 1) : name), false};
}

std::optional<Definition> sql_statement(std::string_view line) {
  std::string_view rest = line;
  const std::string verb = lower_ascii(take_word(rest));
  if (verb != "create" && verb != "alter") return std::nullopt;
  std::string word = lower_ascii(take_word(rest));
  while (is_listed(sql_fillers, word)) word = lower_ascii(take_word(rest));
  if (!is_listed(sql_kinds, word)) return std::nullopt;
  std::string_view before = rest, name = take_word(rest, ".\"`");
  while (is_listed(sql_fillers, lower_ascii(name)) && before != rest) before = rest, name = take_word(rest, ".\"`");
  return Definition{word + " " + std::string(name), false};
}

std::optional<Definition> section(std::string_view line) {
  if (line.starts_with('[')) return Definition{std::string(line.substr(0, line.find_last_of(']') + 1)), true};
  std::string_view rest = line;
  const std::string_view key = take_word(rest, "-./\"' ");
  if (key.empty() || key.front() == '-' || !rest.starts_with(':')) return std::nullopt;
  return Definition{std::string(trimmed(key)), true};
}

}  // namespace

Dialect dialect_of(std::string_view extension) {
  Dialect dialect;
  dialect.triple_quotes = is_listed(" py pyi pyx ", extension);
  dialect.statements = extension == "sql";
  dialect.sections = is_listed(" yaml yml toml ini cfg conf properties ", extension);
  dialect.dash_comments = dialect.statements || is_listed(" lua hs vhd vhdl ", extension);
  dialect.hash_comments =
      dialect.triple_quotes || dialect.sections ||
      is_listed(
          " rb rake pl pm sh bash zsh fish ps1 r jl ex exs nim cmake make mk makefile dockerfile meson.build cmakelists.txt gemfile rakefile tf hcl nix ",
          extension);
  dialect.c_like =
      !dialect.sections && !dialect.statements &&
      !is_listed(" py pyi pyx rb rake lua hs ml mli clj cljs lisp el scm xml xsd svg tf hcl makefile make mk ",
                 extension);
  return dialect;
}

std::optional<Definition> definition_on(std::string_view line, const Dialect& dialect, bool opens) {
  line = line.substr(0, 1000);  // longer lines are generated code
  std::optional<Definition> found;
  if (dialect.sections) {
    found = section(line);
  } else if (dialect.statements) {
    found = sql_statement(line);
  } else {
    found = by_keyword(line, opens);
    if (!found && dialect.c_like) found = by_shape(line, opens);
  }
  if (!found) return found;
  found->label = std::string(first_graphemes(trimmed(found->label), limits::heading_bytes_max));
  if (found->label.empty()) return std::nullopt;
  return found;
}

}  // namespace muniment::retrieval
