// The common form of all formats before chunking: blocks (a paragraph, a list item, a function, a member of a JSON
// object) with the strength of the break before them and the way they may be cut, under a tree of headings. One packer
// makes chunks of them, so that the rules of size are the same for all formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/text/document_text.hpp"
#include "retrieval/text/unicode.hpp"

namespace muniment::retrieval {

enum class Break : std::uint8_t {
  line,  // within a unit: list items, rows, members
  paragraph,
  section,  // only tiny blocks are joined across it
  record,   // never joined across: a page, a chat turn, a record
};

enum class Cut : std::uint8_t {
  prose,  // between sentences
  lines,  // between lines, with a larger size kept whole: code, tables
  json,   // between sentences and lines of its strings, never inside an escape
};

struct Block {
  Span span;
  Break before = Break::paragraph;
  Cut cut = Cut::prose;
  std::uint32_t heading = 0;
  bool leads = false;  // belongs to the next block: a heading, "such as:"
};

// The tree of headings. Node 0 is the document itself and has no label.
class Headings {
 public:
  // `label` includes the separator from its parent's path: " › Linux", ".items", "[3]".
  std::uint32_t add(std::uint32_t parent, std::string label);
  // Returns the heading of a chunk with these nodes: the path to their common ancestor, then their names, "Install ›
  // Linux, macOS". At most limits::chunk_heading_bytes_max.
  std::string path(const std::vector<std::uint32_t>& nodes) const;

 private:
  std::uint32_t common(std::uint32_t a, std::uint32_t b) const;  // the deepest common ancestor
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
  std::vector<Block> list;  // in order, disjoint; together all of the text except white space and pictures
  Headings headings;
  std::string title;   // empty: the format has no title
  bool turns = false;  // contains chat turns
};

// Returns the chunks of a text: at most limits::chunk_bytes_max each, about limits::chunk_bytes_target if possible.
std::vector<Chunk> pack(std::string_view text, const Blocks& blocks);

// Splits a span that is too long for one chunk into pieces of about equal size, each cut at the best place near its
// end.
std::vector<Span> split(std::string_view text, Span span, Cut cut);

// The readers. All are linear in the text.
Blocks text_blocks(std::string_view text);
Blocks markdown_blocks(std::string_view text);
Blocks code_blocks(std::string_view text, std::string_view name);
Blocks json_blocks(std::string_view text);
Blocks jsonl_blocks(std::string_view text);
// One value; more tolerant than base/json/json.hpp of depth, length and repeated names.
bool is_json(std::string_view text);
bool is_jsonl(std::string_view text);  // several lines, each an object or an array

// Adds the paragraphs of a part of a text under a heading; the first has the break `before`.
void add_paragraphs(std::vector<Block>& list, std::string_view text, Span span, std::uint32_t heading, Break before);

}  // namespace muniment::retrieval
