// Reads a JSON text in one pass that recognizes only strings and brackets: more tolerant than base/json/json.hpp, since
// documents may be imperfect, and in place, since chunks are spans. A container that fits a chunk is one leaf; a larger
// one is opened, and its items and members are leaves under its path. Small neighbours share a leaf, so that the number
// of leaves is within a constant factor of the number of chunks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {

class JsonReader {
 public:
  // In a notebook, images are not leaves.
  JsonReader(std::string_view text, Span span, bool notebook = false)
      : text_(text.substr(0, span.end)), start_(span.start), at_(span.start), notebook_(notebook) {}

  // Returns false if brackets, strings or commas are malformed, or text follows the value.
  bool read();

  bool is_turn() const { return leaves_.size() == 1 && leaves_.front().turn; }
  std::string_view speaker() const { return piece_of(text_, leaves_.front().speaker); }

  // Adds its leaves as blocks, under `root_label` below `root`; the first has the break `before`.
  void add_blocks(Blocks& blocks, std::uint32_t root, const std::string& root_label, Break before) const;

 private:
  // A stretch of values that is not opened; it ends where the next one begins.
  struct Leaf {
    std::size_t start = 0;        // start of its key, or of the containers that begin with it
    std::uint32_t container = 0;  // the opened container that holds it
    std::uint32_t index = 0;
    Span key;                // empty: an item
    Span speaker;            // speaker of the turn that begins here
    bool turn = false;       // begins a chat turn
    bool ends_turn = false;  // ends one
    bool shared = false;     // by small neighbours
    bool picture = false;    // no block
  };

  struct Container {
    std::uint32_t parent = 0;
    std::uint32_t index = 0;  // in its parent
    std::uint32_t items = 0;  // so far
    bool is_object = false;
    bool said = false;           // has a member with the content of a turn
    bool holds_turns = false;    // keeps it open, whatever its size
    bool holds_picture = false;  // likewise
    std::size_t start = 0;       // start of its key, or its bracket
    std::size_t first_leaf = 0;
    Span key;
    Span speaker;  // the value of the member that names the speaker
  };

  bool skip_blanks();
  bool read_next();
  bool read_key();
  bool read_value();
  bool read_scalar();
  bool open();
  bool close(char bracket);
  bool skip_container();
  void note_member(char first, Span inside);
  bool names_a_picture(Span key) const;
  void add_leaf(const Leaf& leaf);
  std::string label(const Leaf& leaf) const;
  std::string label(Span key, std::uint32_t index) const;

  std::string_view text_;
  std::size_t start_;
  std::size_t at_;
  bool notebook_;
  std::vector<Container> containers_;  // [0] represents the parent of the text's one value
  std::uint32_t in_ = 0;               // the innermost open one
  std::size_t levels_ = 0;
  std::vector<Leaf> leaves_;
  std::size_t value_start_ = 0;
  Span key_;
  Span title_;
  bool after_value_ = false;
};

}  // namespace muniment::retrieval
