// Whatever bytes arrive: parse never crashes, and what it accepts keeps its promises. The walk and
// simdjson must agree on what JSON is, or a body could mean two things to two readers.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/json_tree.hpp"
#include "base/json_walk.hpp"
#include "base/utf8.hpp"

namespace {

using namespace muniment;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void visit(const json::Value& value) {
  value.as_bool();
  value.as_int();
  if (value.is(json::Kind::number)) require(value.as_double().has_value(), "a number has no value");
  if (const auto text = value.as_string()) {
    require(first_invalid_utf8(*text) == std::string::npos, "a string is not UTF-8");
    require(text->find('\0') == std::string::npos, "a string holds NUL");
  }
  for (json::Value part : value) visit(part);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = json::parse(text);
  if (!document) {
    std::vector<json::Node> nodes;
    const bool only_simdjson_refuses = json::walk(text, nodes).ok() &&
                                       first_invalid_utf8(text) == std::string::npos &&
                                       document.error().message.find("1.797e308") == std::string::npos;
    require(!only_simdjson_refuses, "simdjson refuses what the walk accepts");
    return 0;
  }
  visit(document->root());
  const std::string canonical = json::canonical(document->root());
  const auto again = json::parse(canonical);
  require(again.ok(), "the canonical text is not accepted");
  require(json::canonical(again->root()) == canonical, "the canonical text is not canonical");
  const json::Tree tree(document->root());
  require(tree.canonical() == canonical, "the tree writes another text");
  require(tree.bytes() == canonical.size(), "the tree counts other bytes");
  json::Tree patched = tree;
  json::merge_patch(patched, document->root());
  require(patched.bytes() == patched.canonical().size(), "the merged tree counts other bytes");
  return 0;
}
