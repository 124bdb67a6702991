#include "bridge/known_secrets.hpp"

#include <algorithm>
#include <cstring>

#include "base/crypto/hmac.hpp"
#include "base/limits.hpp"

namespace muniment::bridge {
namespace {

constexpr std::size_t hash_values = 1 << 16;

// Hashes the first eight bytes, which each value has.
std::size_t head_hash(const char* bytes, std::uint64_t factor) {
  static_assert(limits::known_secret_bytes_min >= sizeof(std::uint64_t));
  std::uint64_t head = 0;
  std::memcpy(&head, bytes, sizeof head);
  return static_cast<std::size_t>((head ^ head >> 32) * factor >> 48);
}

std::string_view key_of(const Salt& key) { return {reinterpret_cast<const char*>(key.data()), key.size()}; }

}  // namespace

KnownSecrets::KnownSecrets() : key_(random_salt()) {
  std::memcpy(&factor_, key_.data(), sizeof factor_);
  factor_ |= 1;  // an odd factor loses no bits
}

void KnownSecrets::add(std::string_view value) {
  if (value.size() < limits::known_secret_bytes_min || value.size() > limits::known_secret_bytes_max) return;
  lengths_.resize(hash_values);
  auto& lengths = lengths_[head_hash(value.data(), factor_)];
  const auto size = static_cast<std::uint32_t>(value.size());
  if (std::find(lengths.begin(), lengths.end(), size) == lengths.end()) lengths.push_back(size);
  if (!macs_.insert(hmac_sha256(key_of(key_), {value})).second) return;
  const TextView view = TextView::of(value);
  const TextView joined = TextView::joined(view);
  if (joined.text() != value) add(joined.text());
}

std::vector<Span> KnownSecrets::find(std::string_view text) const {
  std::vector<Span> found;
  if (empty()) return found;
  for (std::size_t at = 0; at + limits::known_secret_bytes_min <= text.size(); ++at) {
    for (const std::uint32_t size : lengths_[head_hash(text.data() + at, factor_)]) {
      if (size > text.size() - at) continue;
      if (macs_.count(hmac_sha256(key_of(key_), {text.substr(at, size)})) > 0) found.push_back({at, at + size});
    }
  }
  return found;
}

}  // namespace muniment::bridge
