// Compiles the built-in rules for Vectorscan during the build, so that no program has to:
//
//   compile_rules RULES.json OUTPUT.hs OUTBOUND.hs SPLIT.hs REVERSED.hs WIDTHS.hpp
//
// The databases require no more of a processor than Vectorscan itself.
#include <hs/hs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bridge/rule.hpp"

namespace {

using namespace muniment;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "compile_rules: %s\n", what.c_str());
  std::exit(1);
}

void write(const char* path, const char* bytes, std::size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes, static_cast<std::streamsize>(size));
  if (!file.flush()) fail(std::string("cannot write ") + path);
}

// A set of patterns with the numbers of their rules.
struct Patterns {
  std::vector<std::string> texts;
  std::vector<unsigned> ids;

  void add(unsigned id, const std::string& pattern) {
    texts.push_back(pattern);
    ids.push_back(id);
  }

  void compile(const char* path) const {
    std::vector<const char*> expressions;
    for (const std::string& text : texts) expressions.push_back(text.c_str());
    const std::vector<unsigned> flags(texts.size(), 0);
    const hs_platform_info_t any_processor{};
    hs_database_t* database = nullptr;
    hs_compile_error_t* error = nullptr;
    if (hs_compile_multi(expressions.data(), flags.data(), ids.data(), static_cast<unsigned>(texts.size()),
                         HS_MODE_BLOCK, &any_processor, &database, &error) != HS_SUCCESS)
      fail((error->expression >= 0 ? texts[static_cast<std::size_t>(error->expression)] + ": " : "") + error->message);
    char* bytes = nullptr;
    std::size_t size = 0;
    if (hs_serialize_database(database, &bytes, &size) != HS_SUCCESS) fail("cannot serialise the database");
    write(path, bytes, size);
    std::free(bytes);
    hs_free_database(database);
  }
};

// Vectorscan only has to report one end of each match, which RE2 then determines: a repetition at the end of the
// pattern, also inside a group, becomes its least number.
std::string with_short_end(const std::string& pattern) {
  if (pattern.ends_with("})")) return with_short_end(pattern.substr(0, pattern.size() - 1)) + ")";
  if (!pattern.ends_with("}")) return pattern;
  const std::size_t brace = pattern.rfind('{');
  const std::size_t comma = pattern.find(',', brace);
  if (comma == std::string::npos || (pattern[brace - 1] != ']' && pattern[brace - 1] != ')')) return pattern;
  const std::string least = pattern.substr(brace + 1, comma - brace - 1);
  const std::string repeated = pattern.substr(0, brace);
  if (least == "0") return repeated + "?";
  if (least == "1") return repeated.ends_with("})") ? with_short_end(repeated) : repeated;
  return repeated + "{" + least + "}";
}

// A repetition at the beginning becomes its class, if the rest distinguishes the rule.
std::string with_short_begin(std::string pattern) {
  const std::size_t begin = pattern.starts_with("(?i)") ? 4 : 0;
  const std::size_t end = pattern.find(']', begin + 2);
  if (pattern[begin] != '[' || pattern.substr(end, 2) != "]{") return pattern;
  const std::size_t last = pattern.find('}', end);
  if (last + 8 <= pattern.size() && pattern[last + 1] != '?') pattern.erase(end + 1, last - end);
  return pattern;
}

std::uint32_t width_of(const std::string& pattern) {
  hs_expr_info_t* info = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_expression_info(pattern.c_str(), 0, &info, &error) != HS_SUCCESS) fail(pattern + ": " + error->message);
  const std::uint32_t width = info->max_width;
  std::free(info);
  return width;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) fail("usage: compile_rules RULES.json OUTPUT.hs OUTBOUND.hs SPLIT.hs REVERSED.hs WIDTHS.hpp");
  std::ifstream file(arguments[1]);
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  const auto rules = bridge::read_rules(json);
  if (!rules) fail(rules.error().message);
  Patterns output, outbound, split, reversed;
  std::string header =
      "// Greatest distance of the reported end of a match from its begin, by rule.\ninline constexpr unsigned rule_widths[] = {";
  unsigned id = 0;
  for (const bridge::Rule& rule : rules->rules) {
    const std::string searched = with_short_end(rule.pattern());
    header += std::to_string(width_of(searched)) + "U,";
    const std::string pattern = with_short_begin(searched);
    if (rule.category == "secret" || rule.category == "announced") output.add(id, pattern);
    if (rule.category != "announced") outbound.add(id, pattern);
    if (rule.has("split")) split.add(id, pattern);
    if (!rule.has("forward")) reversed.add(id, pattern);
    ++id;
  }
  output.compile(arguments[2]);
  outbound.compile(arguments[3]);
  split.compile(arguments[4]);
  reversed.compile(arguments[5]);
  header += "};\n";
  write(arguments[6], header.data(), header.size());
}
