// Formats the parts that the reports on a log, a proof and a bundle share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "verify/finding.hpp"
#include "verify/signed/signatures.hpp"

namespace muniment::verify {

std::string number(std::int64_t value);  // 61441 → "61,441"

// Functions for text reports.
std::string place_of(const Finding& finding);  // "run_chain at seq 5 of run r1"
std::string vouchers(
    const Signatures& signatures);  // "signed by 9c1e12ab, witnessed 2 of 2 (last 2026-11-21T14:02:05Z)"
std::string findings_text(const std::vector<Finding>& findings, std::size_t count,
                          const LogPlace* place);  // meaning of the first finding, and the list

// Functions for JSON reports, which write members of the report.
void write_upto(json::Writer& out, std::string_view name, std::int64_t upto);  // null below 0
void write_signatures(json::Writer& out, const Signatures& signatures);        // signed_upto, keys, witnesses
void write_strings(json::Writer& out, std::string_view name, const std::vector<std::string>& texts);
void write_findings(json::Writer& out, const std::vector<Finding>& findings,
                    const LogPlace* place);  // first_bad, findings

}  // namespace muniment::verify
