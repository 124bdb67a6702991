// Results of the OTLP importer for a file, in memory; every action is checked as by the daemon.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/import/otlp/otlp_trace.hpp"
#include "adapters/import/translate/tally.hpp"
#include "base/json/json.hpp"
#include "base/limits.hpp"
#include "support/imported.hpp"
#include "support/temporary_folder.hpp"

namespace muniment::cli {

struct Taken {
  std::string name;
  std::string sha256;
  ImportedRun head;
  bool understood = true;
  std::vector<RunAction> actions;
};

struct TakenFile {
  std::vector<Taken> traces;
  std::vector<std::string> problems;
  std::uint64_t duplicates = 0;
};

// Performs the daemon's checks of each event; checks that children start before they are used, and end.
inline void check_actions(const std::vector<RunAction>& actions) {
  std::set<std::string> open{""}, ids;
  std::map<std::string, std::set<std::string>> calls;
  for (const RunAction& action : actions) {
    if (action.kind == RunAction::Kind::start_child) {
      EXPECT_TRUE(open.contains(action.parent));
      EXPECT_TRUE(open.insert(action.child).second) << action.child;
      continue;
    }
    EXPECT_TRUE(open.contains(action.child)) << action.child;
    if (action.kind == RunAction::Kind::end_child) {
      open.erase(action.child);
      continue;
    }
    const ImportedEvent& event = action.event;
    EXPECT_TRUE(ids.insert(action.child + " " + event.kind).second) << "two events have the id of " << event.kind;
    expect_fits(event);
    const auto document = json::parse(event.body);
    ASSERT_TRUE(document.ok());
    const std::string call = document->root()["call_id"].string_or("");
    const bool begins = event.type == "tool.called" || event.type == "model.called",
               ends = event.type == "tool.returned" || event.type == "model.answered";
    EXPECT_TRUE(!begins || calls[action.child].insert(call).second) << call;
    EXPECT_TRUE(!ends || calls[action.child].contains(call)) << call;
  }
  EXPECT_EQ(open, std::set<std::string>{""});
}

inline TakenFile take_path(const std::string& path, std::size_t items_max = limits::otlp_items_max) {
  TakenFile taken;
  auto file = OtlpFile::open(
      path, [&](const std::string& problem) { taken.problems.push_back(problem); }, {}, items_max);
  if (!file) {
    taken.problems.push_back(file.error().message);
    return taken;
  }
  taken.duplicates = file->duplicates();
  for (const OtlpTraceItems& items : file->traces()) {
    OtlpTrace trace(*file, items);
    auto head = trace.head();
    auto sha256 = trace.sha256_of_all();
    EXPECT_TRUE(head.ok() && sha256.ok());
    Taken one{trace.name(), *sha256, *head, true, {}};
    const Status done = trace.each([&](std::vector<RunAction>& actions) {
      std::move(actions.begin(), actions.end(), std::back_inserter(one.actions));
      actions.clear();
      return success();
    });
    EXPECT_TRUE(done.ok());
    ImportTally tally;
    for (const RunAction& action : one.actions) tally.add(action.event);
    one.understood = tally.has_dialogue();
    check_actions(one.actions);
    taken.traces.push_back(std::move(one));
  }
  return taken;
}

inline TakenFile take_text(const std::string& text, std::size_t items_max = limits::otlp_items_max) {
  test::TemporaryFolder folder;
  const std::filesystem::path path = std::filesystem::path(folder.path()) / "traces.jsonl";
  std::ofstream(path, std::ios::binary) << text;
  return take_path(path, items_max);
}

}  // namespace muniment::cli
