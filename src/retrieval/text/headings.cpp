// Builds paths from the tree of headings.
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

std::string Headings::path(const std::vector<std::uint32_t>& nodes) const {
  std::uint32_t node = nodes.front();
  for (const std::uint32_t other : nodes) node = common(node, other);
  std::vector<std::uint32_t> way;
  for (std::uint32_t step = node; step != 0; step = nodes_[step].parent) way.push_back(step);
  std::string path;
  for (auto step = way.rbegin(); step != way.rend() && path.size() <= limits::chunk_heading_bytes_max; ++step)
    path += nodes_[*step].label;
  append_names(path, node, nodes);
  if (path.starts_with(under)) path.erase(0, under.size());
  return std::string(first_graphemes(path, limits::chunk_heading_bytes_max));
}

// Appends the children of `parent` that contain the nodes, as many as fit. A JSON path has no names to list.
void Headings::append_names(std::string& path, std::uint32_t parent, const std::vector<std::uint32_t>& nodes) const {
  std::uint32_t last = parent;
  bool first = true;
  for (std::uint32_t node : nodes) {
    while (nodes_[node].depth > nodes_[parent].depth + 1) node = nodes_[node].parent;
    const std::string& label = nodes_[node].label;
    if (node == parent || node == last || !label.starts_with(under)) continue;
    const std::string_view name = std::string_view(label).substr(first ? 0 : under.size());
    if (path.size() + 2 + name.size() > limits::chunk_heading_bytes_max) return;
    path.append(first ? "" : ", ").append(name);
    first = false;
    last = node;
  }
}

}  // namespace muniment::retrieval
