// `muniment doctor`: what can be found out without the daemon, and what mends it.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"

namespace muniment::cli {

enum class Level : std::uint8_t { well, warning, broken };

struct Finding {
  Level level = Level::well;
  std::string subject;   // data, disk, postgres, socket, config, log
  std::string text;
  std::string mend;      // a command, or empty
  std::string doc;       // docs/runbook.md#…, or empty
};

// Reads only: it creates, starts and changes nothing.
std::vector<Finding> examine(const LoadedConfig& loaded);
std::string findings_json(const std::vector<Finding>& findings);

}  // namespace muniment::cli
