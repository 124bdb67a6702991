#include "verify/log/hashing.hpp"

#include <algorithm>
#include <bit>

namespace muniment::verify {
namespace {

template <std::size_t bytes>
void put(std::string& out, std::int64_t value) {
  for (std::size_t i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_text(std::string& out, std::string_view text) {
  put<2>(out, static_cast<std::int64_t>(text.size()));
  out += text;
}

}  // namespace

void encode_before_previous(const Uuid& log_id, std::string_view run_id, const EventView& event, std::string& out) {
  out += '\x01';
  out.append(reinterpret_cast<const char*>(log_id.bytes.data()), log_id.bytes.size());
  put<8>(out, event.seq);
  put<8>(out, event.run_no);
  put_text(out, run_id);
  put<8>(out, event.run_seq);
  put<8>(out, event.recorded_at.micros);
  put<1>(out, event.occurred_at ? 1 : 0);
  if (event.occurred_at) put<8>(out, event.occurred_at->micros);
  put<1>(out, event.origin);
  put_text(out, event.type);
  put<2>(out, event.schema_version);
  put<1>(out, event.step_id ? 1 : 0);
  if (event.step_id) put_text(out, *event.step_id);
  put_text(out, event.actor);
  out += event.event_id;
}

EntryHashes hash_entry(std::string_view before, std::string_view previous, std::string_view body_hash) {
  return {sha256({"\x10", before, previous, body_hash}),
          sha256({std::string_view("\0", 1), before, previous, body_hash})};
}

Hash node_hash(const Hash& left, const Hash& right) { return sha256({"\x01", view(left), view(right)}); }

std::optional<Hash> root_of_proof(const Hash& leaf, std::int64_t index, std::int64_t size,
                                  const std::vector<Hash>& hashes) {
  if (index < 0 || index >= size) return std::nullopt;
  Hash hash = leaf;
  std::int64_t first = index, last = size - 1;
  for (const Hash& sibling : hashes) {
    if (last == 0) return std::nullopt;
    if ((first & 1) != 0 || first == last) {
      hash = node_hash(sibling, hash);
      for (; (first & 1) == 0 && first != 0; first >>= 1) last >>= 1;
    } else {
      hash = node_hash(hash, sibling);
    }
    first >>= 1;
    last >>= 1;
  }
  if (last != 0) return std::nullopt;
  return hash;
}

std::optional<Tree> Tree::from_edge(std::int64_t size, std::string_view edge) {
  if (size < 0 ||
      edge.size() != sizeof(Hash) * static_cast<std::size_t>(std::popcount(static_cast<std::uint64_t>(size))))
    return std::nullopt;
  Tree tree;
  tree.size_ = size;
  for (std::size_t at = 0; at < edge.size(); at += sizeof(Hash)) {
    std::ranges::copy(edge.substr(at, sizeof(Hash)), tree.subtrees_.emplace_back().begin());
  }
  return tree;
}

void Tree::add(const Hash& leaf) {
  Hash node = leaf;
  // Each set bit at the low end of the size is a perfect subtree, which the new leaf merges with its sibling.
  for (std::int64_t bits = size_; (bits & 1) != 0; bits >>= 1) {
    node = node_hash(subtrees_.back(), node);
    subtrees_.pop_back();
  }
  subtrees_.push_back(node);
  ++size_;
}

Hash Tree::root() const {
  if (subtrees_.empty()) return sha256("");
  Hash root = subtrees_.back();
  for (std::size_t i = subtrees_.size() - 1; i-- > 0;) root = node_hash(subtrees_[i], root);
  return root;
}

std::string Tree::edge() const {
  std::string bytes;
  for (const Hash& subtree : subtrees_) bytes += view(subtree);
  return bytes;
}

}  // namespace muniment::verify
