// Tests of the limit for dotted keys of TOML texts.
#include "base/config/toml_depth.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muniment {
namespace {

std::string dotted(int parts) {
  std::string key = "a";
  for (int i = 1; i < parts; ++i) key += ".a";
  return key;
}

TEST(TomlDepth, LimitsTheParts) {
  for (const char* form : {"{} = 1\n", "[{}]\n", "[[{}]]\n", "x = { {} = 1 }\n", "x = [{ a = 1, {} = 1}]\n"}) {
    const auto text = [&](int parts) {
      std::string made(form);
      return made.replace(made.find("{}"), 2, dotted(parts));
    };
    EXPECT_TRUE(check_toml_depth(text(toml_key_parts_max)).ok()) << form;
    const Status deep = check_toml_depth("first = 1\n" + text(toml_key_parts_max + 1));
    ASSERT_FALSE(deep.ok()) << form;
    EXPECT_EQ(deep.error().message, "line 2: the key has more than 16 parts");
  }
}

TEST(TomlDepth, IgnoresDotsInStringsAndComments) {
  const std::string dots(100, '.');
  for (const std::string& text :
       {"a = \"" + dots + "\"", "a = '" + dots + "'", "# " + dots, "a = \"\"\"\n" + dots + "\n\"\"\"\nb.c = 1",
        "a = \"\\\"" + dots + "\"", "a = '''" + dots + "'" + dots + "'''", "\"" + dots + "\".b = 1"})
    EXPECT_TRUE(check_toml_depth(text).ok()) << text;
  EXPECT_FALSE(check_toml_depth("a = '''x'''\n[" + dotted(17) + "]").ok());
  for (const std::string string : {"\"\"\"x\"\"\"\"", "\"\"\"x\"\"\"\"\"", "'''x''''", "'''x'''''"})
    EXPECT_FALSE(check_toml_depth("a = [" + string + ", {" + dotted(17) + " = 1}]").ok()) << string;
}

TEST(TomlDepth, ReadsUnclosedStrings) {
  for (const char* text : {"\"", "'", "\"\"\"", "a = \"\\", "'''''", "a = \"x\n[b]"})
    EXPECT_TRUE(check_toml_depth(text).ok()) << text;
  EXPECT_FALSE(check_toml_depth("a = \"x\n[" + dotted(17) + "]").ok()) << "a line break ends a string of one line";
}

}  // namespace
}  // namespace muniment
