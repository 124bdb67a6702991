#include <algorithm>
#include <unordered_map>
#include <utility>

#include "adapters/import/otlp/otlp_file.hpp"

namespace muniment::cli {
namespace {

class Ordering {
 public:
  Ordering(const OtlpItem* items, std::size_t count) : items_(items), count_(count) {}

  OtlpOrder run() {
    find_parents();
    cut_circles();
    walk();
    settle_times();
    order_edges();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t none = OtlpOrder::none;

  void find_parents() {
    std::unordered_map<std::uint64_t, std::uint32_t> by_id;
    by_id.reserve(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (items_[i].id != 0) by_id.emplace(items_[i].id, i);
    }
    out_.parents.assign(count_, none);
    for (std::uint32_t i = 0; i < count_; ++i) {
      const auto parent = by_id.find(items_[i].parent);
      if (items_[i].parent != 0 && parent != by_id.end() && parent->second != i) out_.parents[i] = parent->second;
    }
  }

  // Breaks cycles: a span that is its own ancestor becomes a root, the earliest of the cycle first.
  void cut_circles() {
    std::vector<std::uint32_t> seen(count_, none);  // the span whose ancestors were visited
    for (std::uint32_t i = 0; i < count_; ++i) {
      std::uint32_t at = i;
      while (at != none && seen[at] == none) {
        seen[at] = i;
        at = out_.parents[at];
      }
      if (at != none && seen[at] == i) out_.parents[at] = none;
    }
  }

  // Depth first without recursion; children in the order of the items, which is the order of their starts.
  void walk() {
    std::vector<std::uint32_t> first(count_ + 1, none), next(count_, none);
    for (std::uint32_t i = static_cast<std::uint32_t>(count_); i-- > 0;) {
      const std::size_t parent = out_.parents[i] == none ? count_ : out_.parents[i];
      next[i] = std::exchange(first[parent], i);
    }
    entered_.assign(count_, 0);
    left_.assign(count_, 0);
    std::uint32_t tour = 0;
    for (std::uint32_t at = first[count_]; at != none;) {
      entered_[at] = tour++;
      out_.top_down.push_back(at);
      if (first[at] != none) {
        at = first[at];
        continue;
      }
      left_[at] = tour++;
      while (next[at] == none && out_.parents[at] != none) {
        at = out_.parents[at];
        left_[at] = tour++;
      }
      at = next[at];
    }
  }

  void settle_times() {
    start_.assign(count_, 0);
    end_.assign(count_, 0);
    for (const std::uint32_t i : out_.top_down) {
      const std::uint32_t parent = out_.parents[i];
      start_[i] = parent == none ? items_[i].start_ns : std::max(items_[i].start_ns, start_[parent]);
      end_[i] = std::max(items_[i].end_ns, start_[i]);
    }
    for (auto i = out_.top_down.rbegin(); i != out_.top_down.rend(); ++i) {
      if (const std::uint32_t parent = out_.parents[*i]; parent != none)
        end_[parent] = std::max(end_[parent], end_[*i]);
    }
  }

  // The traversal of the tree is a valid order and breaks ties of equal times.
  void order_edges() {
    out_.edges.reserve(2 * count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      out_.edges.push_back({i, false});
      if (items_[i].kind != OtlpKind::log) out_.edges.push_back({i, true});
    }
    const auto key = [&](const OtlpOrder::Edge& edge) {
      return edge.end ? std::pair(end_[edge.item], left_[edge.item])
                      : std::pair(start_[edge.item], entered_[edge.item]);
    };
    std::sort(out_.edges.begin(), out_.edges.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  }

  const OtlpItem* const items_;
  const std::size_t count_;
  OtlpOrder out_;
  std::vector<std::uint32_t> entered_, left_;  // positions in the traversal
  std::vector<std::uint64_t> start_, end_;     // adjusted times
};

}  // namespace

OtlpOrder otlp_order(const OtlpItem* items, std::size_t count) { return Ordering(items, count).run(); }

}  // namespace muniment::cli
