// Sums up what was understood of the runs of one source, and words the warnings of every command that imports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/translate/tally.hpp"

namespace muniment::cli {

class ImportReport {
 public:
  // `place`: where the run is, such as "line 2".
  void add(const ImportTally& tally, std::string_view place);

  // Returns the warnings about the source, without a line feed. `remedy`: what to do if no dialogue was understood; may
  // be empty. `counts`: whether the members that were not understood are counted.
  std::vector<std::string> warnings(std::string_view source, std::string_view remedy, bool counts) const;

 private:
  ImportTally tally_;
  std::size_t runs_ = 0;
  std::size_t without_dialogue_ = 0;
  std::string first_without_dialogue_;
};

}  // namespace muniment::cli
