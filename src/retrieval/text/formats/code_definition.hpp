// Which line of code defines something, told by the line alone: a keyword that many languages share, or the shape of a
// C-like function. A guess, made to be right for code as people lay it out; a wrong one costs a heading, never a byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muniment::retrieval {

// What families of languages do not share.
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
  bool container = false;  // what is inside is worth headings of its own
};

// `line`: without its indentation. `opens`: it, or the next line, begins a body with "{".
std::optional<Definition> definition_on(std::string_view line, const Dialect& dialect, bool opens);

}  // namespace muniment::retrieval
