// Splits texts into words at white space, punctuation, case and underscores, reduces words to stems, and classifies
// them (stop words, verbs of work, praise, generic nouns), so that the checks can weigh a word by its class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muniment::evidence::completion {

inline constexpr std::size_t word_bytes_max = 64;  // longer runs of letters are not words

// Classes of a word; a word may have several.
enum WordClass : std::uint32_t {
  stop_word = 1U << 0,     // the, of, and
  work_verb = 1U << 1,     // fix, implement, add: verbs of tasks
  praise = 1U << 2,        // successful, correct, clean: a claim without an observation
  generic_noun = 1U << 3,  // module, service, system: near-miss subjects share them
  test_word = 1U << 4,     // test, suite, pytest
  observation = 1U << 5,   // found, measured, approved, returned: the result of an inspection
  future = 1U << 6,        // will, later, pending
  hedge = 1U << 7,         // probably, should, assume
  pseudo_latin = 1U << 8,  // lorem, ipsum
  blank = 1U << 9,         // tbd, todo, fixme: an unfilled place
  soft_blank = 1U << 10,   // none, null, n/a: also printed by many tools
  result_name = 1U << 11,  // result, output, status: a field's name that promises a result
  count_noun = 1U << 12,   // passed, tests, ms: nouns and units after a number
  review_word = 1U << 13,  // review, approve
  preposition = 1U << 14,  // in, on, when: the surroundings of a task's object follow
  negation = 1U << 15,     // not, no, without
  test_object = 1U << 16,  // test, assertion, check, threshold: objects of weakening
  weakening = 1U << 17,    // removed, skipped, disabled, relaxed
  runner_name = 1U << 18,  // pytest, ctest, cargo
  deploy_word = 1U << 19,
  document_word = 1U << 20,
  deed = 1U << 21,         // added, renamed, refactored: completed work, which is not a check
  design_word = 1U << 23,  // design, decide, investigate: tasks whose result is a text
  slot_word = 1U << 22,    // insert, paste, your, here: a template's instruction
};

std::uint32_t classes_of(std::string_view lower_word);

// Returns the stem of a word in lower case, at most word_bytes_max bytes: "processing" → "process", "authenticated" →
// "authent".
std::string_view stem_of(std::string_view lower_word);

// Returns the common stem of a set of synonyms: "latency" → "perform", "db" → "databas".
std::string_view concept_of(std::string_view stem);

constexpr bool is_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return static_cast<unsigned char>((byte | 0x20U) - 'a') < 26 || byte >= 0x80;
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
// Returns the position of the first byte that `is` accepts; the size of the text if there is none. The searches of
// std::string_view for several bytes call a function for each byte.
template <typename Is>
std::size_t position_of(std::string_view text, Is is) {
  std::size_t at = 0;
  while (at < text.size() && !is(text[at])) ++at;
  return at;
}
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}
std::string lowered(std::string_view text);

// Kinds of bytes, which are bits.
enum ByteKind : std::uint16_t {
  lower_byte = 1U << 0,  // a to z
  upper_byte = 1U << 1,
  digit_byte = 1U << 2,
  wide_byte = 1U << 3,  // a part of a character outside ASCII
  open_byte = 1U << 4,  // { < [ (
  mark_byte = 1U << 5,  // _ ? % #
  slash_byte = 1U << 6,
  dot_byte = 1U << 7,
  other_byte = 1U << 8,
};
inline constexpr auto byte_kinds = [] {
  std::array<std::uint16_t, 256> kinds{};
  kinds.fill(other_byte);
  for (std::size_t c = 'a'; c <= 'z'; ++c) kinds[c] = lower_byte;
  for (std::size_t c = 'A'; c <= 'Z'; ++c) kinds[c] = upper_byte;
  for (std::size_t c = '0'; c <= '9'; ++c) kinds[c] = digit_byte;
  for (std::size_t c = 0x80; c < kinds.size(); ++c) kinds[c] = wide_byte;
  for (const char c : {'{', '<', '[', '('}) kinds[static_cast<unsigned char>(c)] = open_byte;
  for (const char c : {'_', '?', '%', '#'}) kinds[static_cast<unsigned char>(c)] = mark_byte;
  kinds['/'] = slash_byte;
  kinds['.'] = dot_byte;
  return kinds;
}();
inline std::uint16_t byte_kind(char c) { return byte_kinds[static_cast<unsigned char>(c)]; }
// Returns the kinds of all bytes of the text.
inline std::uint16_t kinds_in(std::string_view text) {
  std::uint16_t kinds = 0;
  for (const char c : text) kinds = static_cast<std::uint16_t>(kinds | byte_kind(c));
  return kinds;
}

// Random for each process, so that a client cannot construct words whose hashes collide.
extern const std::uint64_t hash_seed;

// Returns a hash for sets of words. Equal texts have equal hashes within one process.
inline std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15ULL;
  std::uint64_t hash = hash_seed ^ (text.size() * factor);
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t part = 0;
    std::memcpy(&part, text.data(), sizeof part);
    hash = (hash ^ part) * factor;
    hash ^= hash >> 29;
    text.remove_prefix(sizeof part);
  }
  std::uint64_t part = 0;
  if (text.size() >= sizeof(std::uint32_t)) {  // the two reads may overlap, because the hash includes the size
    std::uint32_t front = 0, back = 0;
    std::memcpy(&front, text.data(), sizeof front);
    std::memcpy(&back, text.data() + text.size() - sizeof back, sizeof back);
    part = front | static_cast<std::uint64_t>(back) << 32;
  } else {
    for (const char c : text) part = part << 8 | static_cast<unsigned char>(c);
  }
  hash = (hash ^ part) * factor;
  hash ^= hash >> 32;
  hash *= factor;
  return hash ^ (hash >> 29);
}

// Maps the hash of a word to a value, with open addressing; a text of 16 KiB has about 2,000 words.
class WordTable {
 public:
  WordTable() = default;
  // Reserves space for the words of a text of this size, so that the table does not grow.
  explicit WordTable(std::size_t text_bytes);
  // Returns the value of a word; nullptr if it is not in the table.
  const std::uint32_t* find(std::uint64_t hash) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(hash)];
    return slot.hash == 0 ? nullptr : &slot.value;
  }
  // Returns the value of a word, which is `value` if it was not in the table, and whether it was not.
  std::pair<std::uint32_t, bool> insert(std::uint64_t hash, std::uint32_t value) {
    if (size_ * 2 >= slots_.size()) grow();
    Slot& slot = slots_[place_of(hash)];
    if (slot.hash != 0) return {slot.value, false};
    slot = {hash, value};
    ++size_;
    return {value, true};
  }
  // Returns true if the hash was not in the table.
  bool add(std::uint64_t hash) { return insert(hash, 0).second; }
  bool contains(std::uint64_t hash) const { return find(hash) != nullptr; }
  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t hash = 0;  // 0: free slot
    std::uint32_t value = 0;
  };
  std::size_t place_of(std::uint64_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash ^ (hash >> 32)) & mask;
    while (slots_[at].hash != 0 && slots_[at].hash != hash) at = (at + 1) & mask;
    return at;
  }
  void grow();
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

// Calls take(word) with each word of `text` in lower case: letters only, identifiers split at case and underscores.
// The view is valid during the call.
template <typename Take>
void each_word(std::string_view text, Take&& take) {
  char word[word_bytes_max];
  std::size_t length = 0;
  bool too_long = false;
  const auto end_word = [&] {
    if (length > 0 && !too_long) take(std::string_view(word, length));
    length = 0;
    too_long = false;
  };
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!is_letter(c)) {
      if (c == '\'' && i + 1 < text.size() && is_letter(text[i + 1]) && length > 0) continue;  // don't → dont
      end_word();
      continue;
    }
    const bool hump =
        is_upper(c) && length > 0 &&
        (is_lower(text[i - 1]) || (i + 1 < text.size() && is_lower(text[i + 1]) && is_upper(text[i - 1])));
    if (hump) end_word();
    if (length == word_bytes_max) {
      too_long = true;
      continue;
    }
    word[length++] = lower(c);
  }
  end_word();
}

}  // namespace muniment::evidence::completion
