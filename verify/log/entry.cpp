#include "verify/log/entry.hpp"

#include <algorithm>

namespace muniment::verify {
namespace {

class EntryReader {
 public:
  explicit EntryReader(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::size_t count) {
    if (rest_.size() < count) whole_ = false;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t number(std::size_t count) {
    std::uint64_t value = 0;
    for (const char byte : take(count)) value = value << 8 | static_cast<std::uint8_t>(byte);
    return value;
  }
  std::int64_t count() {
    const auto value = static_cast<std::int64_t>(number(8));
    if (value < 0) whole_ = false;
    return value;
  }
  std::string text() { return std::string(take(number(2))); }
  Uuid uuid() {
    Uuid id;
    std::ranges::copy(take(id.bytes.size()), id.bytes.begin());
    return id;
  }
  bool present() {
    const std::uint64_t flag = number(1);
    if (flag > 1) whole_ = false;
    return flag == 1;
  }
  bool done() const { return whole_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

}  // namespace

Result<Entry> decode_entry(std::string_view bytes) {
  EntryReader in(bytes);
  Entry entry;
  const bool known = in.number(1) == 1;
  entry.log_id = in.uuid();
  entry.seq = in.count();
  entry.run_no = in.count();
  entry.run_id = in.text();
  entry.run_seq = in.count();
  entry.recorded_at = {static_cast<std::int64_t>(in.number(8))};
  if (in.present()) entry.occurred_at = Time{static_cast<std::int64_t>(in.number(8))};
  entry.origin = static_cast<int>(in.number(1));
  entry.type = in.text();
  entry.schema_version = static_cast<std::int64_t>(in.number(2));
  if (in.present()) entry.step_id = in.text();
  entry.actor = in.text();
  entry.event_id = in.uuid();
  entry.previous = in.take(32);
  entry.body_hash = in.take(32);
  if (!known || !in.done()) return Error(Errc::corrupt, "not an entry of version 1");
  return entry;
}

}  // namespace muniment::verify
