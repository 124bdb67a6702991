// Support for tests of the agents' formats: a parsed file, the events of a run, and the folder of cases.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/import/events.hpp"
#include "base/crypto/sha256.hpp"
#include "base/json/json.hpp"
#include "base/json/readable_characters.hpp"
#include "base/text.hpp"
#include "support/imported.hpp"

namespace muniment::cli {

// A file of the cases, parsed; a list or lines of JSON are several records.
class ParsedTrace {
 public:
  explicit ParsedTrace(std::string text) : text_(with_readable_characters(text).text) {
    if (auto whole = json::parse(std::string_view(text_))) {
      documents_.push_back(std::move(*whole));
    } else {
      std::string_view rest(text_);
      while (const auto line = take_line(rest)) {
        if (!line->empty()) documents_.push_back(*json::parse(*line));
      }
      if (!rest.empty()) documents_.push_back(*json::parse(rest));
    }
    for (const json::Document& document : documents_) {
      const json::Value root = document.root();
      if (!root.is(json::Kind::array)) records_.push_back(root);
      if (root.is(json::Kind::array)) {
        for (const json::Value record : root) records_.push_back(record);
      }
    }
  }
  ParsedTrace(const ParsedTrace&) = delete;
  ParsedTrace& operator=(const ParsedTrace&) = delete;

  const std::vector<json::Value>& records() const { return records_; }
  json::Value first() const { return records_.front(); }

 private:
  const std::string text_;
  std::vector<json::Document> documents_;
  std::vector<json::Value> records_;
};

inline std::filesystem::path case_file(const std::string& name) {
  const char* shared = std::getenv("MUNIMENT_SHARED");
  return std::filesystem::path(shared == nullptr ? "../shared" : shared) / "cases" / name;
}

inline std::string text_of_case(const std::string& name) {
  std::ifstream file(case_file(name), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// One line for each event: its type and the members that a test is about.
struct RunEvents {
  explicit RunEvents(const ImportedRun& run) {
    std::set<std::string> kinds;
    for (const ImportedEvent& event : run.events) {
      EXPECT_TRUE(kinds.insert(event.kind).second) << "two events have the id of " << event.kind;
      expect_fits(event);
      bodies.push_back(event.body);
      events.push_back(&event);
    }
  }

  std::size_t count(std::string_view type) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [&](const ImportedEvent* event) { return event->type == type; }));
  }

  // A member of each event of a type: its text, or the JSON of any other value; "-" if it is absent.
  std::vector<std::string> all(std::string_view type, std::string_view name) const {
    std::vector<std::string> found;
    for (const ImportedEvent* event : events) {
      if (event->type != type) continue;
      const auto document = json::parse(std::string_view(event->body));
      const json::Value value = document->root()[name];
      found.push_back(!value ? "-" : value.string_or(value.source()));
    }
    return found;
  }

  // The texts of the content of each event of a type.
  std::vector<std::string> texts(std::string_view type) const {
    std::vector<std::string> found;
    for (const ImportedEvent* event : events) {
      if (event->type != type) continue;
      const auto document = json::parse(std::string_view(event->body));
      std::string text;
      for (const json::Value part : document->root()["content"]) {
        if (part["type"].string_or("") == "text") text += part["content"].string_or("");
      }
      found.push_back(std::move(text));
    }
    return found;
  }

  std::vector<std::string> times(std::string_view type) const {
    std::vector<std::string> found;
    for (const ImportedEvent* event : events) {
      if (event->type == type) found.push_back(event->occurred_at);
    }
    return found;
  }

  bool hold(std::string_view text) const {
    return std::any_of(bodies.begin(), bodies.end(),
                       [&](const std::string& body) { return body.find(text) != std::string::npos; });
  }

  std::vector<const ImportedEvent*> events;
  std::vector<std::string> bodies;
};

using Texts = std::vector<std::string>;

inline std::string label(const ImportedRun& run, std::string_view name) {
  for (const auto& [key, value] : run.labels) {
    if (key == name) return value;
  }
  return {};
}

// The start, the events and the end of a run, one a line.
inline std::string shown(const ImportedRun& run, std::string_view format) {
  std::string text = start_params(run, {std::string(format), std::string(64, 'a'), {}}, format) + "\n";
  for (const ImportedEvent& event : run.events) {
    json::Writer line;
    line.begin_object().member("kind", event.kind).member("type", event.type);
    if (!event.step_id.empty()) line.member("step_id", event.step_id);
    if (!event.occurred_at.empty()) line.member("occurred_at", event.occurred_at);
    text += line.raw_member("body", event.body).end_object().text() + "\n";
  }
  json::Writer end;
  end.begin_object().member("outcome", run.end.outcome).member("summary", run.end.summary);
  if (!run.end.usage.empty()) end.raw_member("usage", run.end.usage);
  if (!run.submission.empty()) end.member("submission", run.submission);
  return text + end.end_object().text() + "\n";
}

// The runs of a golden trace are those that are written beside it.
inline void expect_golden(const std::string& name, std::string_view format, const std::vector<ImportedRun>& runs) {
  std::string text;
  for (const ImportedRun& run : runs) text += shown(run, format);
  const std::filesystem::path path = std::filesystem::path(MUNIMENT_GOLDEN) / "imports" / (name + ".events.jsonl");
  if (std::getenv("MUNIMENT_ACCEPT") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(file), {})) << "run with MUNIMENT_ACCEPT=1 to accept";
}

inline std::string golden_trace(const std::string& name) {
  std::ifstream file(std::filesystem::path(MUNIMENT_GOLDEN) / "imports" / name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace muniment::cli

#define REQUIRE_CASE(name)                                      \
  if (!std::filesystem::exists(muniment::cli::case_file(name))) \
  GTEST_SKIP() << "no cases at " << muniment::cli::case_file(name)
