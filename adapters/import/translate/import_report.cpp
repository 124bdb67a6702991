#include "adapters/import/translate/import_report.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace muniment::cli {

void ImportReport::add(const ImportTally& tally, std::string_view place) {
  ++runs_;
  tally_.add(tally);
  if (!tally.has_dialogue() && without_dialogue_++ == 0) first_without_dialogue_ = place;
}

std::vector<std::string> ImportReport::warnings(std::string_view source, std::string_view remedy, bool counts) const {
  std::vector<std::string> warnings;
  if (const std::uint64_t lines = tally_.unreadable(); lines > 0) {
    warnings.push_back(fmt::format("{}: {} not JSON; recorded in events of the type x.*.unreadable", source,
                                   lines == 1 ? "1 line is" : grouped(lines) + " lines are"));
  }
  if (without_dialogue_ > 0) {
    const std::string where = fmt::format(" in {} of {} runs (first: {})", grouped(without_dialogue_), grouped(runs_),
                                          first_without_dialogue_);
    warnings.push_back(fmt::format(
        "warning: {}: neither a question nor an answer was understood{}. {} the records as x_source{}{}", source,
        runs_ == 1 ? "" : where, runs_ == 1 ? "The run keeps" : "The runs keep", remedy.empty() ? "" : "; ", remedy));
  }
  if (const std::string sentence = tally_.sentence(); !sentence.empty() && counts)
    warnings.push_back(fmt::format("{}: {} (kept in x_source)", source, sentence));
  return warnings;
}

}  // namespace muniment::cli
