#include "base/limits.hpp"
#include "retrieval/text/blocks.hpp"

namespace muniment::retrieval {

std::uint32_t Headings::add(std::uint32_t parent, std::string label) {
  nodes_.push_back({parent, nodes_[parent].depth + 1, std::move(label)});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t Headings::common(std::uint32_t a, std::uint32_t b) const {
  while (a != b) {
    if (nodes_[a].depth >= nodes_[b].depth) {
      a = nodes_[a].parent;
    } else {
      b = nodes_[b].parent;
    }
  }
  return a;
}

std::string Headings::path(std::uint32_t node) const {
  std::vector<std::uint32_t> way;
  for (; node != 0; node = nodes_[node].parent) way.push_back(node);
  std::string path;
  for (auto step = way.rbegin(); step != way.rend() && path.size() <= limits::chunk_heading_bytes_max; ++step) path += nodes_[*step].label;
  if (path.starts_with(under)) path.erase(0, under.size());
  return std::string(first_graphemes(path, limits::chunk_heading_bytes_max));
}

}  // namespace muniment::retrieval
