#include "bridge/known_secrets.hpp"

#include <cstring>

#include "base/crypto/hmac.hpp"
#include "base/limits.hpp"

namespace muniment::bridge {
namespace {

constexpr std::size_t hash_values = 1 << 16;

std::size_t fold_hash(std::uint64_t hash) { return static_cast<std::size_t>(hash >> 48); }

}  // namespace

KnownSecrets::KnownSecrets() : key_(random_salt()) {
  std::memcpy(&base_, key_.data(), sizeof base_);
  base_ |= 1;  // an odd factor loses no bits
}

// The rolling hash of a window is the sum of its bytes times falling powers of the base, modulo 2^64.
void KnownSecrets::add(std::string_view value) {
  if (value.size() < limits::known_secret_bytes_min || value.size() > limits::known_secret_bytes_max) return;
  Length& length = lengths_[value.size()];
  length.hashes.resize(hash_values);
  std::uint64_t hash = 0;
  for (const char c : value) hash = hash * base_ + static_cast<unsigned char>(c) + 1;
  length.hashes[fold_hash(hash)] = true;
  length.macs.insert(hmac_sha256(std::string_view(reinterpret_cast<const char*>(key_.data()), key_.size()), {value}));
}

std::vector<Span> KnownSecrets::find(std::string_view text) const {
  std::vector<Span> found;
  for (const auto& [size, length] : lengths_) {
    if (size <= text.size()) find_length(text, size, length, found);
  }
  return found;
}

void KnownSecrets::find_length(std::string_view text, std::size_t size, const Length& length,
                               std::vector<Span>& found) const {
  const std::string_view key(reinterpret_cast<const char*>(key_.data()), key_.size());
  std::uint64_t highest = 1;
  for (std::size_t i = 1; i < size; ++i) highest *= base_;
  std::uint64_t hash = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at >= size) hash -= highest * (static_cast<unsigned char>(text[at - size]) + 1U);
    hash = hash * base_ + static_cast<unsigned char>(text[at]) + 1;
    if (at + 1 < size || !length.hashes[fold_hash(hash)]) continue;
    const std::size_t begin = at + 1 - size;
    if (length.macs.count(hmac_sha256(key, {text.substr(begin, size)})) > 0) found.push_back({begin, at + 1});
  }
}

}  // namespace muniment::bridge
