// Computes what an import would record from the file alone, without a daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "adapters/import/format.hpp"
#include "base/result.hpp"

namespace muniment::cli {

struct ForecastRun {
  std::string run_id;  // format jsonl: id in the export; an import chooses another if it is taken
  std::string agent = {};
  std::string goal = {};
  std::string outcome = {};  // empty: the run continues in its parent's file
  std::uint64_t line = 0;    // first line of its record; 0: the run is the whole file or spread over it
  std::map<std::string, std::uint64_t> events = {};  // by type, including its start and end
  std::uint64_t long_events = 0;  // of these, events with long texts that become artifacts with an event each
};

struct ForecastReader {
  std::function<void(const ForecastRun&)> tell;
  std::function<void(std::uint64_t line, const std::string& message)> complain;  // line 0: the file
};

// Errors: those of reading the file.
Status forecast_import(const std::string& path, const TraceFormat& format, const ForecastReader& reader);

}  // namespace muniment::cli
