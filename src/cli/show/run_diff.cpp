#include "cli/show/run_diff.hpp"

#include <algorithm>

namespace muniment::cli {
namespace {

bool same_call(const DiffCall& a, const DiffCall& b) { return a.name == b.name && a.arguments == b.arguments; }

// Stores furthest-reaching paths: v[k] is the furthest index in the first list on diagonal k = x - y after d
// differences.
class Myers {
 public:
  Myers(const std::vector<DiffCall>& a, const std::vector<DiffCall>& b, std::size_t differences_max)
      : a_(a),
        b_(b),
        n_(static_cast<int>(a.size())),
        m_(static_cast<int>(b.size())),
        bound_(static_cast<int>(std::min(differences_max, a.size() + b.size()))),
        v_(static_cast<std::size_t>(2 * bound_ + 3), 0) {}

  std::vector<DiffStep> steps() {
    for (int d = 0; d <= bound_; ++d) {
      trace_.push_back(std::vector<int>(v_.begin() + (centre() - d),
                                        v_.begin() + (centre() + d + 1)));  // part that step d may read
      for (int k = -d; k <= d; k += 2) {
        const int x = slide(from_above(k, d) ? at(k + 1) : at(k - 1) + 1, k);
        at(k) = x;
        if (x >= n_ && x - k >= m_) return walk_back(d, n_, m_);
        if (x <= n_ && x - k <= m_ && x + (x - k) > best_) {
          best_ = x + (x - k);
          best_x_ = x;
          best_k_ = k;
          best_d_ = d;
        }
      }
    }
    std::vector<DiffStep> out = walk_back(best_d_, best_x_, best_x_ - best_k_);
    for (int x = best_x_; x < n_; ++x) out.push_back({DiffKind::only_first, static_cast<std::size_t>(x), 0});
    for (int y = best_x_ - best_k_; y < m_; ++y) out.push_back({DiffKind::only_second, 0, static_cast<std::size_t>(y)});
    return out;
  }

 private:
  int centre() const { return bound_ + 1; }
  int& at(int k) { return v_[static_cast<std::size_t>(k + centre())]; }
  bool from_above(int k, int d) { return k == -d || (k != d && at(k - 1) < at(k + 1)); }

  int slide(int x, int k) const {
    while (x < n_ && x - k < m_ && same_call(a_[static_cast<std::size_t>(x)], b_[static_cast<std::size_t>(x - k)])) ++x;
    return x;
  }

  std::vector<DiffStep> walk_back(int d, int x, int y) const {
    std::vector<DiffStep> out;
    for (; d >= 0; --d) {
      const std::vector<int>& before = trace_[static_cast<std::size_t>(d)];  // paths for the diagonals -d … d
      const auto past = [&before, d](int k) { return before[static_cast<std::size_t>(k + d)]; };
      const int k = x - y;
      const bool above = k == -d || (k != d && past(k - 1) < past(k + 1));
      const int from_k = above ? k + 1 : k - 1;
      const int from_x = d == 0 ? 0 : past(from_k);
      const int from_y = d == 0 ? 0 : from_x - from_k;
      while (x > from_x && y > from_y) {
        --x;
        --y;
        out.push_back({DiffKind::same, static_cast<std::size_t>(x), static_cast<std::size_t>(y)});
      }
      if (d == 0) break;
      if (x == from_x) {
        out.push_back({DiffKind::only_second, 0, static_cast<std::size_t>(from_y)});
      } else {
        out.push_back({DiffKind::only_first, static_cast<std::size_t>(from_x), 0});
      }
      x = from_x;
      y = from_y;
    }
    std::ranges::reverse(out);
    return out;
  }

  const std::vector<DiffCall>& a_;
  const std::vector<DiffCall>& b_;
  const int n_;
  const int m_;
  const int bound_;
  std::vector<int> v_;
  std::vector<std::vector<int>> trace_;
  int best_ = -1;
  int best_x_ = 0;
  int best_k_ = 0;
  int best_d_ = 0;
};

struct Differences {
  std::size_t left;
  const std::function<void(const std::string&, std::string_view, std::string_view)>& tell;
  bool all = true;

  void compare(const std::string& path, const json::Value& a, const json::Value& b) {
    if (a && b && json::canonical(a) == json::canonical(b)) return;
    const bool objects = a.is(json::Kind::object) && b.is(json::Kind::object);
    const bool arrays = a.is(json::Kind::array) && b.is(json::Kind::array);
    if (objects) {
      for (const json::Value member : a) compare(path + "/" + member.key(), member, b[member.key()]);
      for (const json::Value member : b) {
        if (!a[member.key()]) compare(path + "/" + member.key(), json::Value(), member);
      }
    } else if (arrays) {
      auto x = a.begin();
      auto y = b.begin();
      for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const json::Value left_item = i < a.size() ? *x : json::Value();
        const json::Value right_item = i < b.size() ? *y : json::Value();
        compare(path + "/" + std::to_string(i), left_item, right_item);
        if (i + 1 < a.size()) ++x;
        if (i + 1 < b.size()) ++y;
      }
    } else if (left == 0) {
      all = false;
    } else {
      --left;
      tell(path, a ? a.source() : std::string_view(), b ? b.source() : std::string_view());
    }
  }
};

}  // namespace

std::vector<DiffStep> align(const std::vector<DiffCall>& first, const std::vector<DiffCall>& second,
                            std::size_t differences_max) {
  return Myers(first, second, differences_max).steps();
}

bool differing(const json::Value& first, const json::Value& second, std::size_t limit,
               const std::function<void(const std::string& path, std::string_view a, std::string_view b)>& tell) {
  Differences differences{limit, tell};
  differences.compare("", first, second);
  return differences.all;
}

}  // namespace muniment::cli
