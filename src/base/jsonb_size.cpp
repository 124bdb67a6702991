#include "base/jsonb_size.hpp"

#include "base/limits.hpp"

namespace muniment::json {

std::size_t jsonb_bytes_max(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
    case Kind::boolean:
    case Kind::string: return value.source().size();
    case Kind::number: {
      const bool plain = value.source().find_first_of("eE") == std::string_view::npos;
      return value.source().size() + (plain ? 0 : static_cast<std::size_t>(limits::number_exponent_max));
    }
    case Kind::array: {
      std::size_t bytes = 2;
      for (const Value item : value) bytes += jsonb_bytes_max(item) + 2;
      return bytes;
    }
    case Kind::object: {
      std::size_t bytes = 2;
      for (const Value member : value) bytes += quote(member.key()).size() + jsonb_bytes_max(member) + 4;
      return bytes;
    }
  }
  return 0;
}

}  // namespace muniment::json
