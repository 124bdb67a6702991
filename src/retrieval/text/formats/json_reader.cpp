// Reads JSON into leaves.
#include "retrieval/text/formats/json_reader.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"

namespace muniment::retrieval {
namespace {

// Returns the end of the string that begins at `at`; npos if it is not closed.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at;; at += 2) {
    at = text.find_first_of("\"\\", at);
    if (at == std::string_view::npos) return at;
    if (text[at] == '"') return at + 1;
  }
}

// Returns the end of a number, true, false or null: the next delimiter.
std::size_t scalar_end(std::string_view text, std::size_t at) {
  const auto is_mark = [](char c) {
    return is_ascii_blank(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"';
  };
  while (at < text.size() && !is_mark(text[at])) ++at;
  return at;
}

bool begins_scalar(char c) {
  return c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n' || c == 'N' || c == 'I';
}

bool names_a_speaker(std::string_view key) {
  return key == "role" || key == "from" || key == "speaker" || key == "sender" || key == "author";
}
bool names_what_is_said(std::string_view key) {
  return key == "content" || key == "text" || key == "value" || key == "message" || key == "parts";
}

}  // namespace

bool JsonReader::read() {
  containers_.emplace_back();
  if (!skip_blanks()) return false;
  value_start_ = at_;
  if (!read_value()) return false;
  while (in_ != 0) {
    if (!skip_blanks() || !read_next()) return false;
  }
  return !skip_blanks();
}

bool JsonReader::skip_blanks() {
  while (at_ < text_.size() && is_ascii_blank(text_[at_])) ++at_;
  return at_ < text_.size();
}

// Within a container, reads a comma, a member, an item, or its end.
bool JsonReader::read_next() {
  const char c = text_[at_];
  if (c == '}' || c == ']') return close(c);
  if (after_value_) {
    if (c != ',') return false;
    ++at_;
    after_value_ = false;
    if (!skip_blanks() || text_[at_] == '}' || text_[at_] == ']') return false;
  }
  value_start_ = at_;
  key_ = {};
  if (containers_[in_].is_object && !read_key()) return false;
  return read_value();
}

bool JsonReader::read_key() {
  if (text_[at_] != '"') return false;
  const std::size_t end = string_end(text_, at_);
  if (end == std::string_view::npos) return false;
  key_ = {at_ + 1, end - 1};
  at_ = end;
  if (!skip_blanks() || text_[at_] != ':') return false;
  ++at_;
  return skip_blanks();
}

bool JsonReader::read_value() {
  const char c = text_[at_];
  if (c != '{' && c != '[') return read_scalar();
  note_member(c, {});
  return levels_ < limits::document_levels_max ? open() : skip_container();
}

bool JsonReader::read_scalar() {
  const std::size_t start = at_;
  const bool is_string = text_[at_] == '"';
  if (!is_string && !begins_scalar(text_[at_])) return false;
  at_ = is_string ? string_end(text_, at_) : scalar_end(text_, at_);
  if (at_ == std::string_view::npos) return false;
  if (is_string) note_member('"', {start + 1, at_ - 1});
  Leaf leaf;
  leaf.start = value_start_;
  leaf.key = key_;
  leaf.picture = is_string && names_a_picture(key_);
  containers_[in_].holds_picture |= leaf.picture;
  add_leaf(leaf);
  return true;
}

bool JsonReader::open() {
  Container container;
  container.parent = in_;
  container.index = containers_[in_].items;
  container.is_object = text_[at_] == '{';
  container.start = value_start_;
  container.first_leaf = leaves_.size();
  container.key = key_;
  containers_.push_back(container);
  in_ = static_cast<std::uint32_t>(containers_.size() - 1);
  ++levels_;
  ++at_;
  after_value_ = false;
  return true;
}

// Ends the innermost container: it becomes one leaf if it fits a chunk; otherwise its leaves remain.
bool JsonReader::close(char bracket) {
  const Container done = containers_[in_];
  if ((bracket == '}') != done.is_object) return false;
  ++at_;
  --levels_;
  const std::uint32_t number = in_;
  in_ = done.parent;
  const bool turn = done.is_object && done.said && !done.speaker.empty();
  const bool too_long = at_ - done.start > limits::chunk_whole_bytes_max && leaves_.size() > done.first_leaf;
  const bool picture = !done.is_object && names_a_picture(done.key);  // base64, line by line
  if (!picture && (too_long || done.holds_picture || (!turn && done.holds_turns))) {
    containers_[in_].holds_turns |= done.holds_turns || turn;
    containers_[in_].holds_picture |= done.holds_picture;
    ++containers_[in_].items;
    after_value_ = true;
    leaves_[done.first_leaf].start = done.start;
    leaves_[done.first_leaf].turn |= turn;
    if (turn) leaves_[done.first_leaf].speaker = done.speaker;
    leaves_.back().ends_turn |= turn;
    return true;
  }
  // Everything that is open in it is closed with it.
  containers_[in_].holds_turns |= turn;
  containers_.resize(number);
  leaves_.resize(done.first_leaf);
  Leaf leaf;
  leaf.start = done.start;
  leaf.key = done.key;
  leaf.speaker = done.speaker;
  leaf.turn = leaf.ends_turn = turn;
  leaf.picture = picture;
  containers_[in_].holds_picture |= picture;
  add_leaf(leaf);
  return true;
}

// Skips a container that is too deep to read.
bool JsonReader::skip_container() {
  std::string brackets;
  do {
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      brackets += c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (brackets.back() != c) return false;
      brackets.pop_back();
    }
    at_ = c == '"' ? string_end(text_, at_) : at_ + 1;
  } while (!brackets.empty() && at_ < text_.size());
  if (!brackets.empty()) return false;
  Leaf leaf;
  leaf.start = value_start_;
  leaf.key = key_;
  add_leaf(leaf);
  return true;
}

// Records a member that describes its object.
void JsonReader::note_member(char first, Span inside) {
  if (key_.empty()) return;
  const std::string_view key = piece_of(text_, key_);
  Container& object = containers_[in_];
  if (first == '"' && names_a_speaker(key) && inside.size() <= 64 && object.speaker.empty()) object.speaker = inside;
  if (names_what_is_said(key)) object.said = true;
  if (first == '"' && key == "title" && levels_ == 1 && title_.empty()) title_ = inside;
}

// In a notebook, outputs and attachments are members named by their media type; before version 4, by its short name.
bool JsonReader::names_a_picture(Span key) const {
  if (!notebook_ || key.empty()) return false;
  const std::string_view name = piece_of(text_, key);
  return name.starts_with("image/") || name.starts_with("audio/") || name.starts_with("video/") ||
         name == "application/pdf" || name == "png" || name == "jpeg" || name == "svg";
}

void JsonReader::add_leaf(const Leaf& leaf) {
  after_value_ = true;
  const std::uint32_t index = containers_[in_].items++;
  const bool shares = !leaves_.empty() && leaves_.back().container == in_ &&
                      leaves_.size() > containers_[in_].first_leaf && !leaves_.back().ends_turn && !leaf.turn &&
                      !leaf.picture && !leaves_.back().picture &&
                      at_ - leaves_.back().start <= limits::chunk_tiny_bytes_max;
  if (shares) {
    leaves_.back().shared = true;
    return;
  }
  leaves_.push_back(leaf);
  leaves_.back().index = index;
  leaves_.back().container = in_;
}

std::string JsonReader::label(Span key, std::uint32_t index) const {
  if (key.empty()) return fmt::format("[{}]", index);
  return fmt::format(".{}", first_graphemes(piece_of(text_, key), limits::heading_bytes_max));
}

std::string JsonReader::label(const Leaf& leaf) const {
  std::string text = leaf.container == 0 ? std::string() : label(leaf.key, leaf.index);
  if (leaf.turn) text.append(under).append(piece_of(text_, leaf.speaker));
  return text;
}

void JsonReader::add_blocks(Blocks& blocks, std::uint32_t root, const std::string& root_label, Break before) const {
  std::vector<std::uint32_t> nodes = {root};
  for (std::size_t i = 1; i < containers_.size(); ++i) {
    const Container& one = containers_[i];
    nodes.push_back(blocks.headings.add(nodes[one.parent], one.parent == 0 ? root_label : label(one.key, one.index)));
  }
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    if (leaf.picture) continue;
    const std::size_t end = i + 1 < leaves_.size() ? leaves_[i + 1].start : text_.size();
    const std::string own = leaf.shared ? std::string() : label(leaf);
    const std::uint32_t heading = own.empty() ? nodes[leaf.container] : blocks.headings.add(nodes[leaf.container], own);
    if (i > 0) {
      const Leaf& last = leaves_[i - 1];
      const bool run = leaf.shared && last.shared && leaf.container == last.container;
      before = leaf.turn || last.ends_turn || last.picture ? Break::record : run ? Break::paragraph : Break::section;
    }
    blocks.turns |= leaf.turn;
    blocks.list.push_back(
        {.span = {i == 0 ? start_ : leaf.start, end}, .before = before, .cut = Cut::json, .heading = heading});
  }
  if (blocks.title.empty() && !title_.empty()) blocks.title = piece_of(text_, title_);
}

}  // namespace muniment::retrieval
