#include "client/replay/ids.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t uuid_length = 36;

// Matches lower-case UUIDs, the form that Muniment writes.
bool is_uuid(std::string_view text) {
  if (text.size() != uuid_length) return false;
  for (std::size_t i = 0; i < uuid_length; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !digit) return false;
  }
  return true;
}

}  // namespace

std::string BundleIds::find(const std::string& old_id) const {
  const auto found = ids_.find(old_id);
  return found == ids_.end() ? std::string() : found->second;
}

std::string BundleIds::rewrite(std::string_view text) const {
  const std::string old_place = "artifact://" + old_run_ + "/";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view here = text.substr(i, uuid_length);
    const std::string now =
        here.size() == uuid_length && here[8] == '-' && is_uuid(here) ? find(std::string(here)) : "";
    if (now.empty()) {
      out.push_back(text[i++]);
      continue;
    }
    if (out.ends_with(old_place))
      out.replace(out.size() - old_place.size(), old_place.size(), "artifact://" + new_run_ + "/");
    out += now;
    i += uuid_length;
  }
  return out;
}

}  // namespace muniment::cli
