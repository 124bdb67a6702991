#include "base/config/standbys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"

namespace muniment {

Result<Standbys> standbys_of(const Config& config) {
  Standbys standbys{config.required_standbys, {}};
  const auto bad = [&](std::string_view why) {
    return Error(Errc::invalid_argument, fmt::format("standbys = \"{}\": {}", config.standbys, why));
  };
  for (std::string_view rest = config.standbys; !rest.empty();) {
    std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    if (name.empty() || name == "*") return bad("give the application_name of each standby, separated by commas");
    if (name.size() > limits::standby_name_bytes_max)
      return bad(fmt::format("a name has at most {} bytes", limits::standby_name_bytes_max));
    if (standbys.names.size() == limits::standbys_max)
      return bad(fmt::format("give at most {} names", limits::standbys_max));
    if (std::ranges::find(standbys.names, name) != standbys.names.end()) return bad("a name is repeated");
    standbys.names.emplace_back(name);
  }
  if (standbys.names.empty()) return standbys;
  standbys.required = std::max<std::int64_t>(standbys.required, 1);
  if (standbys.required > std::ssize(standbys.names))
    return bad(fmt::format("required_standbys is {}, but only {} are named", standbys.required, standbys.names.size()));
  return standbys;
}

}  // namespace muniment
