// Tests the lines of all event types in a timeline, and the table in docs/events.md. MUNIMENT_ACCEPT=1 rewrites the
// table.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/show/describe.hpp"
#include "events/catalogue.hpp"

namespace muniment::cli {
namespace {

constexpr std::string_view table_begins = "<!-- catalogue -->\n";
constexpr std::string_view table_ends = "<!-- end of catalogue -->\n";
constexpr const char* events_document = "docs/events.md";

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Returns the line of the golden body of a type.
Description golden_line(std::string_view type) {
  const std::string text = text_of("tests/golden/events/" + std::string(type) + ".json");
  const auto golden = json::parse(text);
  const std::string event =
      R"({"type":")" + std::string(type) + R"(","body":)" + std::string(golden->root()["body"].source()) + "}";
  const auto parsed = json::parse(event);
  return describe(parsed->root());
}

std::string name_of(events::Names names) {
  switch (names) {
    case events::Names::artifact: return "artifact";
    case events::Names::pointer: return "pointer";
    case events::Names::evidence: return "evidence";
    case events::Names::manifest: return "manifest";
    case events::Names::entries: return "entries of the manifest";
  }
  return "";
}

std::string name_of(events::Replay replay) {
  switch (replay) {
    case events::Replay::appended: return "appended";
    case events::Replay::recorded: return "recorded anew";
    case events::Replay::by_run: return "with the run";
    case events::Replay::omitted: return "omitted";
  }
  return "";
}

std::string name_of(Weight weight) {
  constexpr const char* names[] = {"quiet", "normal", "error", "loud"};
  return names[static_cast<std::size_t>(weight)];
}

std::string code_list(std::string_view words) {
  std::istringstream in{std::string(words)};
  std::string list;
  for (std::string word; in >> word;) list += (list.empty() ? "`" : " `") + word + "`";
  return list;
}

std::string rests_cell(const events::TypeInfo& type) {
  std::string cell;
  for (const events::Rest& rest : type.rests_on)
    cell += (cell.empty() ? "" : ", ") + name_of(rest.names) + " `" + std::string(rest.at) + "`";
  if (!cell.empty() && !type.critical_for.empty()) cell += "; critical";
  return cell;
}

std::string matrix() {
  std::string table =
      "| type | rests on | timeline | views | import | tables | reasons for empty cells |\n|---|---|---|---|---|---|---|\n";
  for (const events::TypeInfo& type : events::catalogue()) {
    table += "| `" + std::string(type.name) + "` | " + rests_cell(type) + " | " + name_of(type.line.weight) + " " +
             std::string(type.line.glyph) + " | " + code_list(type.views) + " | " + name_of(type.replay) + " | " +
             code_list(type.tables) + " | " + std::string(type.because) + " |\n";
  }
  return table;
}

TEST(TimelineLines, EveryTypeHasTextsOrAFunctionOfItsOwn) {
  for (const events::TypeInfo& type : events::catalogue()) {
    SCOPED_TRACE(type.name);
    EXPECT_NE(type.line.head.empty(), !has_own_line(type.type));
    const Description line = golden_line(type.name);
    EXPECT_FALSE(line.glyph.empty());
    EXPECT_FALSE(line.head.empty() && line.tail.empty());
    EXPECT_EQ(line.head.find('{'), std::string::npos) << line.head;
  }
}

TEST(TimelineLines, ARecallShowsItsQuestionAndItsPassages) {
  const auto event = json::parse(
      R"({"type":"context.built","body":{"manifest_id":"m","queries":[{"query":"where does Kim live"},{"query":"b"}],)"
      R"("passages":3,"left_out":2,"budget":500,"used":120,"unit":"tokens"}})");
  const Description line = describe(event->root());
  EXPECT_EQ(line.head, "recalled: where does Kim live (+1)");
  EXPECT_EQ(line.tail, "3 passages, 2 left out, 120 of 500 tokens");
  EXPECT_EQ(line.weight, Weight::normal);
}

TEST(TimelineLines, TextsOfTheCatalogueTakeTheMembersOfTheBody) {
  const auto claim =
      json::parse(R"({"type":"claim.recorded","body":{"claim_id":"c","text":"it {works}","pointers":["a","b"]}})");
  EXPECT_EQ(describe(claim->root()).head, "claim: it {works}");
  EXPECT_EQ(describe(claim->root()).tail, "a b");
  const auto plan = json::parse(R"({"type":"plan.updated","body":{"items":[{"id":"1"},{"id":"2"}]}})");
  EXPECT_EQ(describe(plan->root()).head, "plan: 2 items");
}

TEST(TimelineLines, TheDocumentShowsTheCatalogue) {
  const std::string text = text_of(events_document);
  const std::size_t first = text.find(table_begins);
  const std::size_t last = text.find(table_ends);
  ASSERT_TRUE(first != std::string::npos && last != std::string::npos)
      << events_document << " has no place for the table";
  const std::string wanted = text.substr(0, first + table_begins.size()) + "\n" + matrix() + "\n" + text.substr(last);
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) {
    std::ofstream(events_document) << wanted;
    return;
  }
  EXPECT_EQ(text, wanted) << "run again with MUNIMENT_ACCEPT=1 if the catalogue is right";
}

}  // namespace
}  // namespace muniment::cli
