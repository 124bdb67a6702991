// What an import would record, worked out from the file alone: nothing is sent, and no daemon is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/import/events.hpp"

namespace muniment::cli {

using TranslateRecord = Result<ImportedRun> (*)(const json::Value& record);

struct ForecastRun {
  std::string run_id;  // jsonl: as the export has it; where it is taken the import chooses another
  std::string agent = {};
  std::string goal = {};
  std::string outcome = {};  // empty: the run goes on in its parent's file
  std::uint64_t line = 0;    // in which its record begins; 0: it is the whole file, or all over it
  std::map<std::string, std::uint64_t> events = {};  // by type, with its start and its end
  std::uint64_t long_events = 0;  // of them, whose long texts become artifacts, each with an event of its own
};

struct ForecastReader {
  std::function<void(const ForecastRun&)> tell;
  std::function<void(std::uint64_t line, const std::string& message)> complain;  // line 0: the file
};

// `translate`: of a format that is read record by record, otherwise nullptr. Errors: those of reading the file.
Status forecast_import(const std::string& path, std::string_view format, TranslateRecord translate,
                       const ForecastReader& reader);

}  // namespace muniment::cli
