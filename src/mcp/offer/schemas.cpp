// Converts native schemas for hosts: without references to other files and without custom formats.
#include <algorithm>
#include <array>

#include "base/json/schema.hpp"
#include "mcp/offer/tools.hpp"

namespace muniment::mcp {
namespace {

constexpr std::array<std::string_view, 2> known_formats{"uuid", "date-time"};

std::string_view text_of(std::string_view path) {
  for (const SchemaText& schema : embedded_schema_texts()) {
    if (schema.path == path) return schema.text;
  }
  return {};
}

// Writes a schema with each reference replaced by its target. `file` is the base of "#/…".
class Plain {
 public:
  Plain(json::Writer& out, bool run_filled_in) : out_(out), run_filled_in_(run_filled_in) {}

  void write(const json::Value& value, std::string_view file) {
    if (value.is(json::Kind::array)) {
      out_.begin_array();
      for (const json::Value item : value) write(item, file);
      out_.end_array();
    } else if (!value.is(json::Kind::object)) {
      out_.raw(value.source());
    } else if (const auto reference = value["$ref"].as_string()) {
      write_referred(*reference, file);
    } else {
      write_object(value, file);
    }
  }

 private:
  void write_object(const json::Value& value, std::string_view file) {
    ++depth_;
    out_.begin_object();
    for (const json::Value member : value) {
      const std::string key = member.key();
      if (key == "_meta" || key.starts_with("x-") || key == "$schema") continue;
      if (key == "format" && member.is(json::Kind::string) && !is_known(member.string_or(""))) continue;
      if (key == "required" && member.is(json::Kind::array)) {
        write_required(member);
        continue;
      }
      out_.key(key);
      write(member, file);
    }
    out_.end_object();
    --depth_;
  }

  // A session supplies the method's run itself.
  void write_required(const json::Value& names) {
    std::vector<std::string> left;
    for (const json::Value name : names) {
      if (name.string_or("") != "run_id" || !run_filled_in_ || depth_ > 1) left.push_back(name.string_or(""));
    }
    if (!left.empty()) out_.member("required", left);
  }

  // "#/$defs/x" or "rpc/common.json#/$defs/x"
  void write_referred(std::string_view reference, std::string_view file) {
    const std::size_t hash = reference.find('#');
    std::string target(reference.substr(0, hash));
    if (target.empty()) target = file;
    if (target.ends_with(".json")) target.resize(target.size() - 5);
    const std::string_view name = reference.substr(reference.rfind('/') + 1);
    const auto document = json::parse(text_of(target));
    if (!document || !document->root()["$defs"][name]) {
      out_.begin_object().end_object();
      return;
    }
    write(document->root()["$defs"][name], target);
  }

  static bool is_known(std::string_view format) {
    return std::find(known_formats.begin(), known_formats.end(), format) != known_formats.end();
  }

  json::Writer& out_;
  const bool run_filled_in_;
  int depth_ = 0;  // nesting depth of the objects being written
};

}  // namespace

std::string plain_schema(std::string_view method, std::string_view part) {
  const std::string path = "rpc/" + std::string(method);
  json::Writer out;
  const auto document = json::parse(text_of(path));
  if (!document) return R"({"type":"object"})";
  Plain(out, part == "params").write(document->root()[part], path);
  return std::move(out).text();
}

}  // namespace muniment::mcp
