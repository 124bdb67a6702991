// Variants of the formats: members of the golden traces are dropped, renamed and given other types at random. The
// translation of a variant never fails, and each of its texts is in the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "adapters/import/format.hpp"
#include "adapters/import/translate/tally.hpp"
#include "adapters/import/translate/translation.hpp"
#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/json/json_tree.hpp"
#include "base/text.hpp"
#include "support/imported.hpp"

namespace muniment::cli {
namespace {

using json::Kind;
using json::Tree;

constexpr int variants = 300;  // for each golden trace

struct Golden {
  std::string_view format;
  std::string_view file;
  bool is_parts;  // its records are the parts of one run
};

constexpr Golden goldens[] = {
    {"swe-agent", "swe-agent.json", false},
    {"mini-swe-agent", "mini-swe-agent.json", false},
    {"tau-bench", "tau-bench.json", false},
    {"tau2", "tau2.json", false},
    {"openhands", "openhands.json", false},
    {"openhands", "openhands-events.json", true},
    {"openhands", "openhands-sdk.jsonl", true},
    {"messages", "messages.jsonl", true},
    {"messages", "messages-request.json", false},
    {"codex", "codex.jsonl", true},
    {"codex", "codex-exec.jsonl", true},
    {"gemini-cli", "gemini-cli.json", false},
    {"atif", "atif.json", false},
};

// Returns a JSON file, or the lines of a JSON Lines file as a list.
Tree golden_tree(std::string_view file) {
  std::ifstream in(std::filesystem::path(MUNIMENT_GOLDEN) / "imports" / file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (const auto whole = json::parse(std::string_view(text)); whole) return Tree(whole->root());
  Tree list = Tree::array();
  std::string_view rest(text);
  while (const auto line = take_line(rest)) {
    const auto document = json::parse(*line);
    EXPECT_TRUE(document.ok()) << file;
    if (document) list.push_back(Tree(document->root()));
  }
  return list;
}

// Changes one value inside a tree, selected by its number in depth-first order.
class Change {
 public:
  explicit Change(std::mt19937_64& random) : random_(random) {}

  Tree apply(const Tree& tree) {
    left_ = pick(values_in(tree));
    return inside(tree);
  }

 private:
  static std::size_t values_in(const Tree& tree) {
    std::size_t count = 0;
    for (const Tree& item : tree.items()) count += 1 + values_in(item);
    for (const auto& [name, member] : tree.members()) count += 1 + values_in(member);
    return count;
  }

  std::size_t pick(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(random_() % count); }

  bool is_next() { return !is_done_ && left_-- == 0 && (is_done_ = true); }

  Tree inside(const Tree& tree) {
    if (tree.is(Kind::array)) return inside_list(tree);
    if (!tree.is(Kind::object)) return tree;
    Tree changed = Tree::object();
    for (const auto& [name, member] : tree.members()) {
      if (!is_next()) {
        changed.set(name, inside(member));
        continue;
      }
      const std::size_t way = pick(4);
      if (way == 1) changed.set(name + "_v2", member);
      if (way > 1) changed.set(name, retyped(member));
    }
    return changed;
  }

  Tree inside_list(const Tree& list) {
    Tree changed = Tree::array();
    for (const Tree& item : list.items()) {
      if (!is_next()) {
        changed.push_back(inside(item));
      } else if (pick(3) > 0) {
        changed.push_back(retyped(item));
      }
    }
    return changed;
  }

  Tree retyped(const Tree& value) {
    Tree changed = Tree::object();
    switch (pick(6)) {
      case 0: return Tree::number(7);
      case 1: return Tree::boolean(true);
      case 2: return Tree::string(value.is(Kind::string) ? "another text" : value.canonical());
      case 3: changed = Tree::array(); break;
      case 4: changed.set("text", value); return changed;
      default: changed.set("0", value); return changed;
    }
    if (!value.is(Kind::object)) changed.push_back(value);
    for (const auto& [name, member] : value.members()) changed.push_back(member);
    return changed;
  }

  std::mt19937_64& random_;
  std::size_t left_ = 0;
  bool is_done_ = false;
};

// Adds the lines of a dialogue in one text ("role: …"): the events contain them without the names of the roles.
void add_display(std::string_view text, std::set<std::string>& texts) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    for (const std::string_view role : {"user: ", "assistant: ", "tool: "}) {
      if (line.starts_with(role)) line.remove_prefix(role.size());
    }
    texts.emplace(line);
  }
}

// Adds the texts of a record, except for words that the types of events express.
void add_texts(const Tree& value, std::string_view name, std::set<std::string>& texts) {
  const std::set<std::string_view> speakers{"system", "developer", "user", "assistant", "tool", "agent", "environment"};
  const bool is_speaker = (name == "role" || name == "source") && speakers.contains(value.text());
  const bool is_word = is_speaker || name == "type" || name == "object" || name == "kind" || name == "class_";
  if (name == "messages_display" && value.is(Kind::string)) return add_display(value.text(), texts);
  if (value.is(Kind::string) && !value.text().empty() && !is_word) texts.insert(value.text());
  for (const Tree& item : value.items()) add_texts(item, {}, texts);
  for (const auto& [key, member] : value.members()) add_texts(member, key, texts);
}

// The texts in the log after the import of the runs.
class Recorded {
 public:
  explicit Recorded(const std::vector<TranslatedRun>& runs, std::string_view format) {
    for (const TranslatedRun& translated : runs) {
      add_json(start_params(translated.run, translated.source, format));
      add(translated.run.submission);
      add(translated.run.end.summary);
      if (!translated.run.end.usage.empty()) add_json(translated.run.end.usage);
      for (const ImportedEvent& event : translated.run.events) {
        add_json(event.body);
        if (const auto time = parse_time(event.occurred_at)) times_.insert(time->micros);
        for (const ImportedBlob& blob : event.blobs) add(blob.bytes);
      }
    }
  }

  bool have(const std::string& text) const {
    if (all_.find(text) != std::string::npos) return true;
    for (const std::string& form : {text, text + "Z"}) {
      if (const auto time = parse_time(form); time && times_.contains(time->micros)) return true;
    }
    const auto inner = json::parse(std::string_view(text));  // a text that contains JSON arguments
    if (!inner || !(inner->root().is(Kind::object) || inner->root().is(Kind::array))) return false;
    std::set<std::string> texts;
    add_texts(Tree(inner->root()), {}, texts);
    return std::ranges::all_of(texts, [&](const std::string& one) { return have(one); });
  }

 private:
  void add(std::string_view text) { (all_ += text).push_back('\0'); }
  void add_json(const std::string& text) {
    const auto document = json::parse(std::string_view(text));
    ASSERT_TRUE(document.ok()) << text;
    add_all(document->root());
  }
  void add_all(const json::Value& value) {
    if (const auto text = value.as_string()) add(*text);
    for (const json::Value part : value) {
      if (value.is(Kind::object)) add(part.key());
      add_all(part);
    }
  }

  std::string all_;
  std::set<std::int64_t> times_;
};

void expect_whole(const TraceFormat& format, const Tree& record, bool is_parts) {
  const TraceSource source{"variant", record.canonical(), 0, is_parts};
  const auto runs = translate_source(format, source);
  ASSERT_TRUE(runs.ok()) << runs.error().message << "\n" << source.text;
  for (const TranslatedRun& translated : *runs) {
    std::set<std::string> kinds;
    for (const ImportedEvent& event : translated.run.events) {
      EXPECT_TRUE(kinds.insert(event.kind).second) << "two events have the id of " << event.kind;
      expect_fits(event);
    }
  }
  const Recorded recorded(*runs, format.name);
  std::set<std::string> texts;
  add_texts(record, {}, texts);
  for (const std::string& text : texts) EXPECT_TRUE(recorded.have(text)) << "lost: " << text << "\n" << source.text;
}

// Returns whether an import with this format would accept the record.
bool is_taken(const TraceFormat& format, const Tree& record, bool is_parts) {
  const std::string text = record.canonical();
  const auto document = json::parse(std::string_view(text));
  if (!is_parts) return format.recognises(document->root());
  bool any = false;
  for (const json::Value part : document->root()) any = any || format.recognises_part(part);
  return any;
}

class ImportVariants : public testing::TestWithParam<Golden> {};

TEST_P(ImportVariants, LoseNoTextAndNeverFail) {
  const auto& [name, file, is_parts] = GetParam();
  const TraceFormat& format = *find_format(name);
  const Tree whole = golden_tree(file);
  const std::vector<Tree> records = is_parts || !whole.is(Kind::array) ? std::vector<Tree>{whole} : whole.items();
  std::mt19937_64 random(30);
  int taken = 0;
  for (int number = 0; number < variants && !HasFailure(); ++number) {
    Tree record = records[static_cast<std::size_t>(number) % records.size()];
    for (int change = 0; change <= number % 4; ++change) record = Change(random).apply(record);
    if (!is_taken(format, record, is_parts)) continue;
    ++taken;
    expect_whole(format, record, is_parts);
  }
  EXPECT_GE(taken, variants / 2);
}

INSTANTIATE_TEST_SUITE_P(Goldens, ImportVariants, testing::ValuesIn(goldens), [](const auto& golden) {
  std::string name(golden.param.file);
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(ImportVariants, EveryFormatOfRecordsHasAGoldenTrace) {
  for (const TraceFormat& format : trace_formats()) {
    if (format.unit == FileUnit::stream) continue;
    EXPECT_NE(std::ranges::find(goldens, format.name, &Golden::format), std::end(goldens)) << format.name;
  }
}

}  // namespace
}  // namespace muniment::cli
