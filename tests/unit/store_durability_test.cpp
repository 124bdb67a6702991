// Tests of the settings that durability requires: refused values and their messages.
#include <gtest/gtest.h>

#include "store/postgres/durability.hpp"

namespace muniment::store {
namespace {

TEST(Durability, SynchronousStandbyNamesAreCountedAsPostgresReadsThem) {
  for (const auto& [names, count] : std::vector<std::pair<std::string, std::int64_t>>{{"", 0},
                                                                                      {"  ", 0},
                                                                                      {"*", 1},
                                                                                      {"s1", 1},
                                                                                      {"s1, s2", 1},
                                                                                      {"2 (s1, s2, s3)", 2},
                                                                                      {"FIRST 3 (a, b, c, d)", 3},
                                                                                      {"any 2 (s1,s2)", 2},
                                                                                      {"ANY 10(*)", 10},
                                                                                      {"anybody", 1},
                                                                                      {"first", 1},
                                                                                      {"\"a(b\", c", 1},
                                                                                      {" ANY  2  (\"x\")", 2}}) {
    EXPECT_EQ(standbys_asked_for(names), count) << names;
  }
}

std::string judged(const std::string& name, const std::string& value, std::int64_t required = 0,
                   const std::string& standbys = "0") {
  return unsafe_setting({{name, value, "configuration file"}, {"standbys", standbys, ""}}, {required, {}},
                        "postgresql://u:secret@h/d", "d", "u");
}

TEST(Durability, ASettingThatLosesWhatIsAcknowledgedIsNamedAndNoPasswordIs) {
  for (const std::string setting : {"fsync", "full_page_writes", "synchronous_commit"}) {
    EXPECT_EQ(judged(setting, "on"), "");
    const std::string said = judged(setting, "off");
    EXPECT_TRUE(said.starts_with(setting + " is off")) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  }
}

TEST(Durability, AReadOnlyConnectionIsRefusedWithTheRemedyForItsSource) {
  const auto fix = [](const std::string& source) {
    const auto unsafe =
        find_unsafe({{"default_transaction_read_only", "on", source}}, {}, "postgresql://u:secret@h/d", "d", "u");
    return unsafe ? unsafe->fix : "";
  };
  EXPECT_TRUE(fix("configuration file")
                  .ends_with("-c 'ALTER SYSTEM SET default_transaction_read_only = off' -c 'SELECT pg_reload_conf()'"));
  EXPECT_TRUE(
      fix("database user").ends_with("-c 'ALTER ROLE \"u\" IN DATABASE \"d\" RESET default_transaction_read_only'"));
  EXPECT_TRUE(fix("client").starts_with("remove default_transaction_read_only from PGOPTIONS")) << fix("client");
  EXPECT_EQ(judged("default_transaction_read_only", "off"), "");
}

TEST(Durability, WhatActsOnWhatIsAppendedIsNamedAndRemovedByACommandThatAShellTakesAsItIs) {
  const std::string uri = "postgresql://u:secret@h/d";
  const auto trigger = find_unsafe({{"fsync", "on", ""},
                                    {"insert_trigger", "zz on event_1_0", "DROP TRIGGER zz ON event_1_0"},
                                    {"standbys", "0", ""}},
                                   {}, uri, "d", "u");
  ASSERT_TRUE(trigger);
  EXPECT_EQ(trigger->why,
            "the trigger zz on event_1_0 acts on appended rows: stored events may differ from acknowledged ones");
  EXPECT_TRUE(trigger->fix.ends_with(" -c 'DROP TRIGGER zz ON event_1_0'")) << trigger->fix;
  EXPECT_EQ(trigger->fix.find("secret"), std::string::npos) << trigger->fix;
  const auto rule =
      find_unsafe({{"insert_rule", "\"a'; b\" on event", "DROP RULE \"a'; b\" ON event"}}, {}, uri, "d", "u");
  ASSERT_TRUE(rule);
  EXPECT_TRUE(rule->why.starts_with("the rule \"a'; b\" on event acts")) << rule->why;
  EXPECT_TRUE(rule->fix.ends_with(" -c 'DROP RULE \"a'\\''; b\" ON event'")) << rule->fix;
}

TEST(Durability, StandbysAreAskedForAndThere) {
  EXPECT_EQ(judged("synchronous_standby_names", "", 0), "");
  EXPECT_NE(judged("synchronous_standby_names", "s1", 2, "5").find("waits for 1"), std::string::npos);
  EXPECT_NE(judged("synchronous_standby_names", "ANY 2 (*)", 2, "1").find("only 1 synchronous standbys are connected"),
            std::string::npos);
  EXPECT_EQ(judged("synchronous_standby_names", "ANY 2 (*)", 2, "2"), "");
}

TEST(Durability, NamedStandbysMustBeConnectedUnderTheirNames) {
  const auto judged = [](const std::vector<std::string>& connected, std::int64_t required,
                         const std::string& sees = "true") {
    std::vector<ServerSetting> settings = {{"sees_standbys", sees, ""},
                                           {"standbys", "5", ""},
                                           {"synchronous_standby_names", "ANY 2 (*)", "configuration file"}};
    for (const std::string& name : connected) settings.push_back({"standby", name, ""});
    return unsafe_setting(settings, {required, {"pg2", "pg3"}}, "postgresql://u:secret@h/d", "d", "u");
  };
  EXPECT_EQ(judged({"pg2"}, 1), "");
  EXPECT_EQ(judged({"archive", "pg3", "pg2"}, 2), "");
  EXPECT_NE(judged({"archive", "PG2"}, 1).find("requires 1 of pg2, pg3, but none is connected"), std::string::npos);
  EXPECT_NE(judged({"pg2", "pg2"}, 2).find("requires 2 of pg2, pg3, but only pg2 is connected"), std::string::npos);
  EXPECT_NE(judged({}, 1, "false").find("GRANT pg_read_all_stats TO \"u\""), std::string::npos);
}

}  // namespace
}  // namespace muniment::store
