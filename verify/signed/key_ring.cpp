#include "verify/signed/key_ring.hpp"

#include <algorithm>
#include <utility>

#include "base/json/json.hpp"
#include "verify/log/run_facts.hpp"

namespace muniment::verify {

KeyRing::KeyRing(const std::vector<VerifierKey>& given) {
  for (const VerifierKey& key : given) facts_[note_key(key, -1)].trusted = true;
}

std::size_t KeyRing::note_key(VerifierKey key, std::int64_t seq) {
  const auto known = std::find(keys_.begin(), keys_.end(), key);
  if (known != keys_.end()) return static_cast<std::size_t>(known - keys_.begin());
  keys_.push_back(std::move(key));
  facts_.push_back({seq, -1, false});
  return keys_.size() - 1;
}

void KeyRing::see(const Rotation& rotation) {
  rotations_.push_back(rotation);
  const std::int64_t seq = rotation.seq;
  const auto document = json::parse(rotation.body);
  if (!document) return;
  const auto name = [&](std::string_view member) -> std::optional<std::size_t> {
    auto key = VerifierKey::parse(text_of(document->root(), member).value_or(""));
    if (!key || key->type != KeyType::ed25519) return std::nullopt;
    const std::size_t index = note_key(*std::move(key), seq);
    namings_.push_back({seq, index});
    return index;
  };
  const auto old_key = name("old_key");
  const auto new_key = name("new_key");
  if (old_key && old_key != new_key) facts_[*old_key].retired_at = seq;
  if (new_key) facts_[*new_key].retired_at = -1;
}

bool KeyRing::trust_named_below(std::int64_t size) {
  bool news = false;
  for (const Naming& naming : namings_) {
    if (naming.seq >= size) break;
    if (!std::exchange(facts_[naming.key].trusted, true)) news = true;
  }
  return news;
}

}  // namespace muniment::verify
