// Helpers for tests of importers: the daemon's checks of an imported event, and the text of an action in a golden file.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "adapters/import/source.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {

inline void expect_fits(const ImportedEvent& event) {
  EXPECT_EQ(event.body.find('\n'), std::string::npos) << event.type;
  const auto document = json::parse(event.body);
  ASSERT_TRUE(document.ok()) << event.type << ": " << event.body;
  EXPECT_TRUE(events::check_client_may_write(event.type).ok()) << event.type;
  const Status fits = events::check_body(event.type, document->root());
  EXPECT_TRUE(fits.ok()) << event.type << ": " << (fits ? "" : fits.error().message) << event.body;
  EXPECT_TRUE(event.step_id.empty() || check_step_id(event.step_id)) << event.step_id;
  EXPECT_TRUE(event.occurred_at.empty() || parse_time(event.occurred_at)) << event.occurred_at;
}

inline std::string shown(const RunAction& action) {
  json::Writer line;
  line.begin_object();
  if (!action.child.empty()) line.member("child", action.child);
  if (action.kind == RunAction::Kind::start_child) {
    line.member("starts", action.agent).member("goal", action.goal).member("call_id", action.call_id);
  } else if (action.kind == RunAction::Kind::end_child) {
    line.member("ends", action.outcome);
  } else {
    line.member("kind", action.event.kind).member("type", action.event.type);
    if (!action.event.step_id.empty()) line.member("step_id", action.event.step_id);
    if (!action.event.occurred_at.empty()) line.member("occurred_at", action.event.occurred_at);
    line.raw_member("body", action.event.body);
    if (!action.event.blobs.empty()) line.key("blobs").begin_array();
    for (const ImportedBlob& blob : action.event.blobs) line.string(blob.mime_type);
    if (!action.event.blobs.empty()) line.end_array();
  }
  return line.end_object().text();
}

}  // namespace muniment::cli
