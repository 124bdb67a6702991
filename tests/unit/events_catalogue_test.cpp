// Tests that the catalogue and schema/event/ agree in every detail.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json/schema.hpp"
#include "base/process/failpoint.hpp"
#include "events/catalogue.hpp"
#include "events/catalogue_types.hpp"

namespace muniment::events {
namespace {

std::map<std::string, std::string_view> schema_texts() {
  std::map<std::string, std::string_view> texts;
  for (const SchemaText& schema : embedded_schema_texts()) {
    const std::string path(schema.path);
    if (path.starts_with("event/") && path != "event/common") texts.emplace(path.substr(6), schema.text);
  }
  return texts;
}

std::vector<std::string> texts_of(const json::Value& list) {
  std::vector<std::string> texts;
  for (json::Value item : list) texts.push_back(item.string_or(""));
  return texts;
}

std::string message_of(const Status& status) { return status ? "" : status.error().message; }

Status check(std::string_view type, std::string_view body) {
  auto document = json::parse(body);
  if (!document) return std::move(document).error();
  return check_body(type, document->root());
}

TEST(Catalogue, HasARowForEverySchemaAndASchemaForEveryRow) {
  std::vector<std::string> from_schemas;
  for (const auto& [name, text] : schema_texts()) from_schemas.push_back(name);
  std::vector<std::string> from_rows;
  for (const TypeInfo& row : catalogue()) from_rows.emplace_back(row.name);
  EXPECT_EQ(from_schemas, from_rows);
}

TEST(Catalogue, AnEventOfTheDaemonsOwnThatDoesNotFitItsSchemaEndsATestedDaemon) {
  NewEvent event;
  event.type = "event.redacted";
  event.body = R"({"seq":1,"reason":"r","by":"uid:0"})";
  seal_own(event);
  EXPECT_NE(event.body_hash, Hash{});
  event.body = R"({"seq":1,"reason":"r","who":"uid:0"})";
  if (failpoint::present) {
    EXPECT_DEATH(seal_own(event), "");
  }
}

TEST(Catalogue, SaysWhatTheSchemasSay) {
  const auto texts = schema_texts();
  for (const TypeInfo& row : catalogue()) {
    SCOPED_TRACE(row.name);
    ASSERT_TRUE(texts.contains(std::string(row.name)));
    const auto schema = json::parse(texts.at(std::string(row.name)));
    ASSERT_TRUE(schema) << schema.error().message;
    const json::Value root = schema->root();
    EXPECT_FALSE(root["title"].string_or("").empty());
    EXPECT_EQ(root["x-version"].as_int(), row.schema_version);
    const std::string writer = row.writer == Writer::client ? "client" : std::string(row.written_by);
    EXPECT_EQ(root["x-written-by"].string_or(""), writer);
    std::vector<std::string> states;
    if (admits_open(row.admits)) states.emplace_back("open");
    if (admits_ended(row.admits)) states.emplace_back("ended");
    if (admits_halted(row.admits)) states.emplace_back("halted");
    std::vector<std::string> said = texts_of(root["x-admits"]);
    std::sort(said.begin(), said.end(), std::greater<>());
    std::sort(states.begin(), states.end(), std::greater<>());
    EXPECT_EQ(said, states);
    for (json::Value property : root["properties"]) {
      EXPECT_TRUE(property["description"].present() || property["$ref"].present()) << property.key();
    }
  }
}

// Collects the members of a schema that name stored content, as "path kind".
void collect_names(const json::Value& schema, const std::string& path, std::set<std::string>& out) {
  const std::string ref = schema["$ref"].string_or("");
  if (ref.ends_with("/ref")) out.insert(path + "/artifact_id artifact");
  if (ref.ends_with("/content")) out.insert(path + "/*/artifact_id artifact");
  const std::string name = path.substr(path.rfind('/') + 1);
  if (schema["format"].string_or("") == "pointer") out.insert(path + " pointer");
  if (name.ends_with("artifact_id") || path == "/artifacts/*") out.insert(path + " artifact");
  if (name == "evidence_id" || path == "/evidence_ids/*" || path == "/depends_on/*") out.insert(path + " evidence");
  if (name == "manifest_id" || path == "/base") out.insert(path + " manifest");
  for (const json::Value property : schema["properties"]) collect_names(property, path + "/" + property.key(), out);
  if (schema["items"].is(json::Kind::object)) collect_names(schema["items"], path + "/*", out);
}

TEST(Catalogue, EveryCellIsFilledOrHasAReason) {
  for (const TypeInfo& row : catalogue()) {
    SCOPED_TRACE(row.name);
    EXPECT_NE(row.rests_on.empty(), row.reason_for("rests").empty());
    EXPECT_TRUE(row.rests_on.empty() || !row.critical_for.empty() || !row.reason_for("critical").empty());
    EXPECT_TRUE(row.critical_for.empty() || row.reason_for("critical").empty());
    EXPECT_FALSE(row.line.glyph.empty());
    EXPECT_NE(row.views.empty(), row.reason_for("view").empty());
    EXPECT_NE(row.replay == Replay::omitted, row.reason_for("import").empty());
    EXPECT_NE(row.tables.empty(), row.reason_for("table").empty());
    EXPECT_EQ(row.replay == Replay::appended, row.writer == Writer::client && row.name.substr(0, 6) != "child.");
  }
}

TEST(Catalogue, RestsOnWhatItsSchemaNames) {
  const auto texts = schema_texts();
  static const std::map<Names, std::string> kinds = {{Names::artifact, "artifact"},
                                                     {Names::pointer, "pointer"},
                                                     {Names::evidence, "evidence"},
                                                     {Names::manifest, "manifest"},
                                                     {Names::entries, "manifest"}};
  for (const TypeInfo& row : catalogue()) {
    SCOPED_TRACE(row.name);
    const auto schema = json::parse(texts.at(std::string(row.name)));
    ASSERT_TRUE(schema);
    std::set<std::string> named;
    collect_names(schema->root(), "", named);
    for (const Rest& rest : row.rests_on) named.erase(std::string(rest.at) + " " + kinds.at(rest.names));
    if (!row.critical_for.empty())
      named.erase("/" + std::string(row.critical_for) + "_id " + std::string(row.critical_for));
    EXPECT_TRUE(named.empty() || !row.reason_for("rests").empty()) << *named.begin();
  }
}

TEST(Catalogue, FindsTheTextsThatNameStoredContent) {
  const auto body = json::parse(
      R"({"pointer":"p","artifacts":["a","b"],"depends_on":["e"],"content":{"artifacts":["no"]},"stdout":{"artifact_id":"s"}})");
  const auto named = [&](std::string_view type) {
    std::string all;
    each_named(*find_type(type), body->root(), [&](Names, const std::string& text) { all += text + " "; });
    return all;
  };
  EXPECT_EQ(named("evidence.recorded"), "p a b e ");
  EXPECT_EQ(named("command.ended"), "s ");
  EXPECT_EQ(named("message.added"), "");
}

TEST(Catalogue, FindsEachTypeByItsName) {
  std::size_t index = 0;
  for (const TypeInfo& row : catalogue()) {
    EXPECT_EQ(find_type(row.name), &row);
    EXPECT_EQ(static_cast<std::size_t>(row.type), index++) << row.name;
  }
  EXPECT_EQ(index, static_cast<std::size_t>(Type::foreign));
  EXPECT_EQ(find_type("tool.call"), nullptr);
  EXPECT_EQ(type_named("x.acme.thing"), Type::foreign);
}

TEST(Catalogue, AnUnknownTypeNamesTheNearest) {
  EXPECT_EQ(message_of(check_client_may_write("tool.call")),
            "unknown event type \"tool.call\". Did you mean \"tool.called\"? Own types start with \"x.\".");
  EXPECT_EQ(message_of(check_client_may_write("zzzzzzzzzzzz")),
            "unknown event type \"zzzzzzzzzzzz\". Own types start with \"x.\".");
  EXPECT_EQ(check_client_may_write("tool.call").error().code, Errc::invalid_argument);
}

TEST(Catalogue, TheDaemonsTypesAreDeniedAndTheirMethodNamed) {
  EXPECT_EQ(message_of(check_client_may_write("run.started")),
            "\"run.started\" is written by the daemon. Call run.start.");
  EXPECT_EQ(message_of(check_client_may_write("log.started")),
            "\"log.started\" is written by the daemon itself; no method writes it.");
  EXPECT_EQ(check_client_may_write("run.started").error().code, Errc::denied);
  // The families in events.md, "Who may write which type", and two more types.
  for (const TypeInfo& row : catalogue()) {
    const std::string family(row.name.substr(0, row.name.find('.')));
    static const std::vector<std::string> daemons = {
        "run",      "artifact", "manifest", "snapshot",  "pointer",  "claim",   "evidence", "task",
        "document", "source",   "embedder", "retrieval", "feedback", "command", "event",    "log",
        "key",      "clock",    "access",   "violation", "budget",   "cloud"};
    const bool ours = std::find(daemons.begin(), daemons.end(), family) != daemons.end() ||
                      row.name == "context.built" || row.name == "child.halted" || row.name == "question.answered";
    EXPECT_EQ(check_client_may_write(row.name).ok(), !ours) << row.name;
  }
}

TEST(Catalogue, OwnTypesNeedAVendorAndAName) {
  for (std::string_view good : {"x.acme.thing", "x.a.b", "x.Acme-1.some_thing.more"}) {
    EXPECT_TRUE(check_client_may_write(good).ok()) << good;
  }
  const std::string long_name = "x.acme." + std::string(94, 'a');
  for (std::string_view bad : std::initializer_list<std::string_view>{
           "x.", "x.acme", "x.acme.", "x..thing", "x.ac me.thing", "x.acme.thing.", "x.acme.\xc3\xa9", long_name}) {
    EXPECT_EQ(check_client_may_write(bad).error().code, Errc::invalid_argument) << bad;
  }
  EXPECT_TRUE(is_foreign(long_name.substr(0, 100)));
}

TEST(Catalogue, ABodyIsHeldAgainstItsSchema) {
  EXPECT_TRUE(check("error.raised", R"({"error_type":"E","message":"m","x_mine":{"a":[1]}})").ok());
  EXPECT_EQ(message_of(check("error.raised", R"({"error_type":"E"})")), "body: missing field \"message\"");
  EXPECT_EQ(message_of(check("error.raised", R"({"error_type":"E","message":"m","retryable":"yes"})")),
            "body.retryable: expected boolean, got string \"yes\"");
  EXPECT_EQ(check("error.raised", R"({"error_type":"E","message":"m","mine":1})").error().code, Errc::invalid_argument);
  EXPECT_TRUE(check("x.acme.thing", R"({"anything":[null]})").ok());
  EXPECT_FALSE(check("x.acme.thing", R"([1])").ok());
  EXPECT_FALSE(check("no.such", R"({})").ok());
}

TEST(Catalogue, APartMayBeAReference) {
  const std::string ref = R"({"artifact_id":"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001","hash":")" + std::string(64, 'a') +
                          R"(","size_bytes":9000,"mime_type":"text/plain","preview":"start","type":"text"})";
  EXPECT_EQ(message_of(check("thought.recorded", R"({"content":[)" + ref + R"(,{"type":"text","content":"more"}]})")),
            "");
  EXPECT_FALSE(check("thought.recorded", R"({"content":[{"type":"text"}]})").ok());
  EXPECT_FALSE(check("thought.recorded", R"({"content":"text"})").ok());
}

}  // namespace
}  // namespace muniment::events
