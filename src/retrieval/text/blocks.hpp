// What every format is read into, before it becomes chunks: blocks (a paragraph, a list item, a function, a member of a
// JSON object) that say how strong the break before them is and how they may be cut, under a tree of headings. One
// packer makes chunks of them, so that all formats follow the same rules of size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/text/document_text.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {

enum class Break : std::uint8_t {
  line,  // within what belongs together: list items, rows, members
  paragraph,
  section,  // crossed only by what is tiny
  record,   // never crossed: a page, a chat turn, a record
};

enum class Cut : std::uint8_t {
  prose,  // between sentences
  lines,  // between lines, and kept whole for longer: code, tables
  json,   // between sentences and lines of its strings, and never inside an escape
};

struct Block {
  Span span;
  Break before = Break::paragraph;
  Cut cut = Cut::prose;
  std::uint32_t heading = 0;
  bool leads = false;  // belongs with what follows: a heading, "such as:"
};

// The tree of headings. Node 0 is the document itself, which has none.
class Headings {
 public:
  // `label` carries what parts it from its parent's path: " › Linux", ".items", "[3]".
  std::uint32_t add(std::uint32_t parent, std::string label);
  // Where a chunk of these stands: the path to what they have in common, and then their names, "Install › Linux,
  // macOS". At most limits::chunk_heading_bytes_max.
  std::string path(const std::vector<std::uint32_t>& nodes) const;

 private:
  std::uint32_t common(std::uint32_t a, std::uint32_t b) const;  // the deepest that both stand under
  void append_names(std::string& path, std::uint32_t parent, const std::vector<std::uint32_t>& nodes) const;
  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t depth = 0;
    std::string label;
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

inline constexpr std::string_view under = " › ";

struct Blocks {
  std::vector<Block> list;  // in order, disjoint; together all of the text but white space
  Headings headings;
  std::string title;   // empty: the format has none to offer
  bool turns = false;  // holds chat turns
};

// The chunks of a text: at most limits::chunk_bytes_max each, about limits::chunk_bytes_target where there is a choice.
std::vector<Chunk> pack(std::string_view text, const Blocks& blocks);

// A span too long for one chunk, in about equal pieces, each cut at the best place near its end.
std::vector<Span> split(std::string_view text, Span span, Cut cut);

// The readers. All are linear in the text, whatever it holds.
Blocks text_blocks(std::string_view text);
Blocks markdown_blocks(std::string_view text);
Blocks code_blocks(std::string_view text, std::string_view name);
Blocks json_blocks(std::string_view text);
Blocks jsonl_blocks(std::string_view text);
bool is_json(std::string_view text);   // one value; looser than base/json/json.hpp: deep, long and repeated is fine
bool is_jsonl(std::string_view text);  // several lines, each an object or an array

// Paragraphs of a part of a text, under a heading; the first has the break `before`.
void add_paragraphs(std::vector<Block>& list, std::string_view text, Span span, std::uint32_t heading, Break before);

}  // namespace muniment::retrieval
