#include "verify/files/pieces.hpp"

#include <algorithm>

namespace muniment::verify {
namespace {

constexpr std::size_t piece_size = 65'536;
constexpr std::size_t node_size = 256 * 32;

}  // namespace

void PieceDigest::update(std::string_view bytes) {
  for (std::size_t taken = 0; taken < bytes.size();) {
    const std::size_t in_piece = static_cast<std::size_t>(size_) % piece_size;
    const std::string_view part = bytes.substr(taken, piece_size - in_piece);
    digest_.update(part);
    taken += part.size();
    size_ += static_cast<std::int64_t>(part.size());
    if (in_piece + part.size() == piece_size) values_ += view(digest_.chaining_value());
  }
}

PieceTree PieceDigest::tree() const {
  PieceTree tree;
  // Each value separates two pieces; the hash of the file follows the last piece.
  std::string level = values_;
  if (size_ > 0 && static_cast<std::size_t>(size_) % piece_size == 0) level.resize(level.size() - sizeof(Hash));
  for (char number = 0;; ++number) {
    tree.file += level;
    std::string nodes;
    for (std::size_t at = 0; at < level.size(); at += node_size) {
      nodes += view(sha256({std::string_view(&number, 1), std::string_view(level).substr(at, node_size)}));
    }
    if (nodes.size() > sizeof(Hash)) {
      level = std::move(nodes);
      continue;
    }
    std::copy(nodes.begin(), nodes.end(), tree.root.begin());
    return tree;
  }
}

}  // namespace muniment::verify
