// Checks the size of event bodies and seals events.
#include "events/event.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::events {

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::observed: return "observed";
    case Origin::reported: return "reported";
    case Origin::imported: return "imported";
  }
  return "reported";
}

std::optional<Origin> origin_named(std::string_view name) {
  for (Origin origin : {Origin::observed, Origin::reported, Origin::imported}) {
    if (name_of(origin) == name) return origin;
  }
  return std::nullopt;
}

Status check_body_size(std::size_t size, std::string_view what, std::string_view advice) {
  if (size <= limits::event_body_bytes_max) return success();
  Error error(Errc::too_large, fmt::format("{} is {} bytes, limit {}. {}", what, grouped(size),
                                           grouped(limits::event_body_bytes_max), advice));
  error.limit = static_cast<std::int64_t>(limits::event_body_bytes_max);
  return error;
}

void seal(NewEvent& event) {
  event.salt = random_salt();
  event.body_hash =
      sha256({std::string_view(reinterpret_cast<const char*>(event.salt.data()), event.salt.size()), event.body});
}

}  // namespace muniment::events
