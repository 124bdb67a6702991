#include "store/logs/log_place.hpp"

#include "base/files/file.hpp"
#include "base/text.hpp"

namespace muniment::store {

std::string log_folder(const std::string& data, std::int16_t log_no) {
  return log_no == 1 ? data : data + "/log-" + std::to_string(log_no);
}

Result<std::int16_t> read_log_no(const std::string& data) {
  constexpr std::size_t bytes_max = 16;
  auto text = read_file(data + "/log_no", bytes_max);
  if (!text && text.error().code == Errc::not_found) return std::int16_t{1};
  if (!text) return std::move(text).error();
  text->erase(text->find_last_not_of('\n') + 1);
  const auto number = parse_decimal(*text);
  if (!number || *number < 1 || *number > INT16_MAX)
    return Error(Errc::corrupt, data + "/log_no does not hold the number of a log");
  return static_cast<std::int16_t>(*number);
}

}  // namespace muniment::store
