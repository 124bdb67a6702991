// Writes the lines of a bundle's .jsonl members (docs/format.md, Run bundles): a row with the names of its columns,
// with hashed values in the form that was hashed. Each function appends one line and its line feed.
#pragma once

#include <cstdint>
#include <string>

#include "events/event.hpp"
#include "store/append/rows.hpp"

namespace muniment::audit {

void append_bundle_line(std::string& out, std::int16_t log_no, const events::Event& event);
void append_bundle_line(std::string& out, std::int16_t log_no, const store::ArtifactRow& row);
void append_bundle_line(std::string& out, std::int16_t log_no, const store::ManifestRow& row);
void append_bundle_line(std::string& out, std::int16_t log_no, const store::SnapshotRow& row);
void append_bundle_line(std::string& out, std::int16_t log_no, const store::ClaimRow& row);
void append_bundle_line(std::string& out, std::int16_t log_no, const store::EvidenceRow& row);

}  // namespace muniment::audit
