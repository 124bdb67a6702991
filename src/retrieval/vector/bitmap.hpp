// A set of slots: one bit for each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muniment::retrieval::vec {

// The place of a vector in memory and in the graph. Slots are reused; chunk ids are not.
using Slot = std::uint32_t;
inline constexpr Slot no_slot = 0xffff'ffff;

class Bitmap {
 public:
  static constexpr std::size_t word_bits = 64;

  explicit Bitmap(std::size_t bits = 0) { resize(bits); }
  // Keeps the contents; never shrinks.
  void resize(std::size_t bits) {
    if (const std::size_t words = (bits + word_bits - 1) / word_bits; words > words_.size()) words_.resize(words);
  }
  void clear() { words_.assign(words_.size(), 0); }

  bool test(Slot slot) const { return (words_.data()[slot / word_bits] >> (slot % word_bits) & 1) != 0; }
  void set(Slot slot) { words_.data()[slot / word_bits] |= std::uint64_t{1} << (slot % word_bits); }
  void reset(Slot slot) { words_.data()[slot / word_bits] &= ~(std::uint64_t{1} << (slot % word_bits)); }
  // Returns true if it was not in the set before.
  bool insert(Slot slot) {
    std::uint64_t& word = words_.data()[slot / word_bits];
    const std::uint64_t bit = std::uint64_t{1} << (slot % word_bits);
    if ((word & bit) != 0) return false;
    word |= bit;
    return true;
  }

  std::size_t count() const {
    std::size_t sum = 0;
    for (const std::uint64_t word : words_) sum += static_cast<std::size_t>(std::popcount(word));
    return sum;
  }
  // Returns the first slot from `from` on that is not in the set; at most the number of bits.
  Slot first_absent(Slot from) const {
    for (std::size_t i = from / word_bits; i < words_.size(); ++i) {
      std::uint64_t absent = ~words_[i];
      if (i == from / word_bits) absent &= ~std::uint64_t{0} << (from % word_bits);
      if (absent != 0) return static_cast<Slot>(i * word_bits) + static_cast<Slot>(std::countr_zero(absent));
    }
    return static_cast<Slot>(words_.size() * word_bits);
  }

  void add(const Bitmap& other) {
    for (std::size_t i = 0; i < other.words_.size() && i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void keep(const Bitmap& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= i < other.words_.size() ? other.words_[i] : 0;
  }
  void take(const Bitmap& other) {
    for (std::size_t i = 0; i < other.words_.size() && i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }

  std::size_t words() const { return words_.size(); }
  std::uint64_t word(std::size_t index) const { return words_.data()[index]; }
  std::uint64_t& word(std::size_t index) { return words_.data()[index]; }
  std::size_t bytes() const { return words_.capacity() * sizeof(std::uint64_t); }

  // Calls visit(slot) for each, in order.
  template <typename Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        visit(static_cast<Slot>(i * word_bits) + static_cast<Slot>(std::countr_zero(rest)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace muniment::retrieval::vec
