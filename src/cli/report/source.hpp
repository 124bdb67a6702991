// Sources of the data of a report: a daemon, or a bundle that muniment-verify has checked. Values have the forms of
// docs/protocol.md in both.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/report/data.hpp"
#include "cli/show/costs.hpp"

namespace muniment::cli {

class ReportSource {
 public:
  using Take = std::function<void(const json::Value&)>;

  virtual ~ReportSource() = default;

  // Fills in the identity of the run and of the log, and what only this source has. It creates the chain check.
  virtual Status read_run(ReportData& data) = 0;
  virtual Estimates estimates() = 0;
  virtual Status each_event(const Take& take) = 0;
  virtual Status each_claim(const Take& take) = 0;
  virtual Status each_evidence(const Take& take) = 0;
  // Proves the last event of the chain check, or sets `unproven`.
  virtual Status read_custody(ReportData& data) = 0;
  // Returns the state's member `pending` as JSON. Called after the events.
  virtual Result<std::string> pending() = 0;
  // Reads the steps of the daemon's clock during the run.
  virtual Status read_clock_steps(ReportData& data) = 0;
};

std::unique_ptr<ReportSource> daemon_report_source(Client& client, const std::string& run_id);

// Verifies the bundle. `key` is the path of a file of trusted vkeys, or empty. Errors: corrupt if a part of the bundle
// was changed; invalid_argument if the file is not a bundle or is that of the log's own run.
Result<std::unique_ptr<ReportSource>> bundle_report_source(const std::string& bundle, const std::string& key);

// Errors: not_found; those of the source.
Result<ReportData> collect_report(ReportSource& source);

// Formats a value for one cell or fact; objects as "name x, version 2".
std::string shown_value(const json::Value& value);
std::string spelled_value(const json::Value& value);

}  // namespace muniment::cli
