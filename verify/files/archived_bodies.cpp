#include "verify/files/archived_bodies.hpp"

#include <fmt/format.h>

#include "base/tile_path.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t held_bytes_max = std::size_t{64} << 20;

}  // namespace

Result<std::string_view> ArchivedBodies::body(std::int64_t seq) {
  auto of = bundle(seq / tile_width);
  if (!of) return std::move(of).error();
  const std::optional<ArchivedBody>& event = (**of)[static_cast<std::size_t>(seq % tile_width)];
  if (event) return std::string_view(event->body);
  ASSIGN_OR_RETURN(const bool erased, erased_since(seq));
  if (erased) return Error(Errc::conflict, fmt::format("event {} was erased during this verification", seq));
  return Error(Errc::corrupt, fmt::format("{}/{} marks it as erased", folder_, bodies_path(seq / tile_width)));
}

Result<const BodyBundle*> ArchivedBodies::bundle(std::int64_t index) {
  if (const auto known = read_.find(index); known != read_.end()) return &known->second;
  auto bundle = read_bodies(folder_, index);
  if (!bundle && bundle.error().code == Errc::unavailable) return std::move(bundle).error();
  if (!bundle) return Error(Errc::corrupt, bundle.error().message);
  std::size_t size = 0;
  for (const auto& event : *bundle) size += event ? event->body.size() : 0;
  if (held_bytes_ + size > held_bytes_max) {
    read_.clear();
    held_bytes_ = 0;
  }
  held_bytes_ += size;
  return &read_.emplace(index, *std::move(bundle)).first->second;
}

Result<bool> ArchivedBodies::erased_since(std::int64_t seq) {
  ASSIGN_OR_RETURN(Connection now, snapshot_.outside());
  ASSIGN_OR_RETURN(
      const auto salts,
      now.integer(fmt::format("SELECT count(salt) FROM event WHERE log_no = {} AND seq = {}", log_no_, seq)));
  return salts.value_or(0) == 0;
}

}  // namespace muniment::verify
