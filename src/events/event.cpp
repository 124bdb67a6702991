#include "events/event.hpp"

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

void seal(NewEvent& event) {
  event.salt = random_salt();
  event.body_hash = sha256({std::string_view(reinterpret_cast<const char*>(event.salt.data()), event.salt.size()), event.body});
}

}  // namespace muniment::events
