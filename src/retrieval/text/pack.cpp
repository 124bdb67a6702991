// Packs blocks into chunks. Short units stay whole; long ones are divided evenly, so that no small rest is left; tiny
// ones join a neighbour. Chunks never cross the edge of a record.
#include <algorithm>

#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {
namespace {

class Packer {
 public:
  Packer(std::string_view text, const Blocks& blocks) : text_(text), headings_(blocks.headings) {
    for (const Block& block : blocks.list) add(block);
  }

  std::vector<Chunk> chunks() && {
    for (std::size_t first = 0; first < pieces_.size();) {
      const std::size_t last = run_end(first, pieces_.size(), Break::record);
      add_record({first, last});
      first = last;
    }
    return std::move(chunks_);
  }

 private:
  struct Range {  // a range of pieces
    std::size_t first = 0;
    std::size_t last = 0;
  };

  // Adds a block, in pieces that fit a chunk each.
  void add(Block block) {
    block.span = trimmed(text_, block.span);
    if (block.span.empty()) return;
    const std::size_t whole_max = block.cut == Cut::lines ? limits::chunk_bytes_max : limits::chunk_whole_bytes_max;
    if (block.span.size() <= whole_max) {
      pieces_.push_back(block);
      return;
    }
    for (const Span piece : split(text_, block.span, block.cut)) {
      block.span = piece;
      pieces_.push_back(block);
      block.before = Break::line;
    }
  }

  // The first piece after `first` with a break at least as strong as `strength`.
  std::size_t run_end(std::size_t first, std::size_t end, Break strength) const {
    std::size_t last = first + 1;
    while (last < end && pieces_[last].before < strength) ++last;
    return last;
  }

  std::size_t bytes(Range range) const { return pieces_[range.last - 1].span.end - pieces_[range.first].span.start; }

  void add_record(Range record) {
    if (bytes(record) <= limits::chunk_whole_bytes_max) return add_chunk(record);
    std::vector<Range> sections;  // none is tiny unless it is the only one
    bool joins = false;
    for (std::size_t first = record.first; first < record.last;) {
      const Range section{first, run_end(first, record.last, Break::section)};
      if (joins) {
        sections.back().last = section.last;
      } else {
        sections.push_back(section);
      }
      joins = bytes(sections.back()) < limits::chunk_tiny_bytes_max;
      first = section.last;
    }
    if (joins && sections.size() > 1) {
      sections.pop_back();
      sections.back().last = record.last;
    }
    for (const Range section : sections) deal_out(section);
  }

  // Divides a section into chunks of about equal size.
  void deal_out(Range section) {
    const std::size_t total = bytes(section);
    if (total <= limits::chunk_whole_bytes_max || section.last - section.first == 1) return add_chunk(section);
    const std::size_t count = (total + limits::chunk_bytes_target - 1) / limits::chunk_bytes_target,
                      ideal = total / count;
    Range chunk{section.first, section.first + 1};
    for (; chunk.last < section.last; ++chunk.last) {
      const std::size_t without = bytes(chunk), with = bytes({chunk.first, chunk.last + 1});
      const std::size_t rest = bytes({chunk.last, section.last});
      const bool tiny = without < limits::chunk_tiny_bytes_max || rest < limits::chunk_tiny_bytes_max;
      const bool fits = with <= ideal || with - ideal < ideal - std::min(ideal, without) ||
                        (tiny && with <= limits::chunk_tolerated_bytes_max);
      if (with <= limits::chunk_bytes_max && (fits || pieces_[chunk.last - 1].leads)) continue;
      add_chunk(chunk);
      chunk.first = chunk.last;
    }
    add_chunk(chunk);
  }

  void add_chunk(Range range) {
    std::vector<std::uint32_t> under_it;
    for (std::size_t i = range.first; i < range.last; ++i) under_it.push_back(pieces_[i].heading);
    chunks_.push_back({static_cast<std::int64_t>(pieces_[range.first].span.start),
                       static_cast<std::int64_t>(pieces_[range.last - 1].span.end), headings_.path(under_it)});
  }

  std::string_view text_;
  const Headings& headings_;
  std::vector<Block> pieces_;
  std::vector<Chunk> chunks_;
};

}  // namespace

std::vector<Chunk> pack(std::string_view text, const Blocks& blocks) { return Packer(text, blocks).chunks(); }

}  // namespace muniment::retrieval
