#include "client/arguments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

namespace muniment::cli {

Result<std::string> json_line(std::string_view text) {
  // JSON does not allow a raw line feed inside a string, so every line feed is white space between tokens.
  RETURN_IF_ERROR(json::parse(text));
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

Result<std::string> labels_json(const std::vector<std::string>& words) {
  json::Writer writer;
  writer.begin_object();
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error(Errc::invalid_argument, fmt::format("a label has the form k=v, not \"{}\"", word));
    }
    writer.member(word.substr(0, equals), word.substr(equals + 1));
  }
  writer.end_object();
  return std::move(writer).text();
}

void add_asof(json::Writer& params, const std::string& asof) {
  if (const auto seq = parse_decimal(asof)) {
    params.member("asof", *seq);
  } else if (!asof.empty()) {
    params.member("asof", asof);
  }
}

Result<std::string> question_text(const std::string& text) {
  if (text != "-") return text;
  ASSIGN_OR_RETURN(std::string question, read_input(STDIN_FILENO, "standard input", limits::request_line_bytes_max));
  question.erase(question.find_last_not_of(" \t\r\n") + 1);
  if (question.empty()) return Error(Errc::invalid_argument, "standard input has no question");
  return question;
}

void say_there_are_more(std::string_view which, std::size_t limit, std::string_view things) {
  fmt::print(stderr, "muniment: {} {} {}; there are more: -n 0 shows all\n", which, grouped(limit), things);
}

Result<std::string> absolute_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed);
  if (failed) return Error(Errc::invalid_argument, path + ": " + failed.message());
  return whole.string();
}

}  // namespace muniment::cli
