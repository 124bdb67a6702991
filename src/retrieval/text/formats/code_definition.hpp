// Recognizes the definition on a line of code by the line alone: a keyword that many languages share, or the shape of a
// C-like function. It is a guess for code in common layout; a wrong one affects a heading, never the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::retrieval {

// Properties in which families of languages differ.
struct Dialect {
  bool c_like = false;  // type name(args) {  and  name(args) {  define functions; // and /* */ comment
  bool hash_comments = false;
  bool dash_comments = false;  // SQL, Lua, Haskell
  bool triple_quotes = false;  // Python
  bool sections = false;       // [section] and top-level keys: TOML, INI, YAML
  bool statements = false;     // SQL: CREATE TABLE name
};

Dialect dialect_of(std::string_view extension);

struct Definition {
  std::string label;       // "class Appender", "submit"
  bool container = false;  // its content gets headings of its own
};

// `line` excludes its indentation. `opens`: it, or the next line, begins a body with "{".
std::optional<Definition> definition_on(std::string_view line, const Dialect& dialect, bool opens);

}  // namespace muniment::retrieval
