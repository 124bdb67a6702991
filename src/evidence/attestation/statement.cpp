#include "evidence/attestation/statement.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "evidence/reports/report.hpp"

namespace muniment::evidence::attestation {
namespace {

constexpr std::string_view statement_type = "https://in-toto.io/Statement/v1";
constexpr std::string_view tree_digest_separator = " sha256:";
constexpr std::string_view report_format = "in-toto";
constexpr std::size_t text_bytes_max = 4 * 1024;  // of the output and of names of tests
constexpr std::size_t payload_bytes_max = 20 * 1024;
constexpr std::size_t sha256_digits = 64;

Error refused(std::string_view problem) {
  return {Errc::invalid_argument,
          fmt::format("the payload is not an in-toto statement of the type {}: {}", predicate_type, problem)};
}

bool is_sha256(std::string_view digest) {
  return digest.size() == sha256_digits &&
         std::ranges::all_of(digest, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Returns the digest in "git:COMMIT v3 root:ROOT sha256:DIGEST"; empty for another form.
std::string sha256_of_tree(std::string_view tree) {
  const std::size_t at = tree.rfind(tree_digest_separator);
  const std::string_view digest = at == std::string_view::npos ? "" : tree.substr(at + tree_digest_separator.size());
  return is_sha256(digest) ? std::string(digest) : std::string();
}

// Copies the object with a shorter text.
std::string with_short_text(const json::Value& content) {
  json::Writer out;
  out.begin_object();
  for (const json::Value member : content) {
    if (member.key() == "text") {
      const std::string text = member.string_or("");
      out.member("text", text.size() > text_bytes_max ? text.substr(text.size() - text_bytes_max) : text);
    } else {
      out.raw_member(member.key(), member.source());
    }
  }
  return std::move(out.end_object()).text();
}

Status read_names(const json::Value& list, std::vector<std::string>& names) {
  if (!list) return success();
  if (!list.is(json::Kind::array)) return refused("passedTests, warnedTests and failedTests are lists of names");
  for (const json::Value name : list) {
    auto text = name.as_string();
    if (!text) return refused("passedTests, warnedTests and failedTests are lists of names");
    names.push_back(*std::move(text));
  }
  return success();
}

Status read_subjects(const json::Value& list, TestStatement& statement) {
  if (!list.is(json::Kind::array)) return refused("subject is not a list");
  for (const json::Value subject : list) {
    const json::Value digest = subject["digest"];
    if (!digest.is(json::Kind::object) || digest.size() == 0) return refused("a subject has no digest");
    const std::string sha256 = digest["sha256"].string_or("");
    if (digest["sha256"] && !is_sha256(sha256)) return refused("a sha256 digest is not 64 lower-case hex digits");
    statement.subjects.push_back({subject["name"].string_or(""), sha256});
  }
  return statement.subjects.empty() ? Status(refused("it has no subject")) : success();
}

// The content must be that of a recorded command, and agree with the members that every consumer reads.
Status read_content(const json::Value& extension, TestStatement& statement) {
  if (!extension) return success();
  const json::Value content = extension["content"];
  const json::Value command = content["command"];
  const auto command_id = parse_uuid(command["command_id"].string_or(""));
  if (extension["type"].string_or("") != "test_output" || !command_id || !content["text"].is(json::Kind::string))
    return refused("the extension is not evidence of a recorded command");
  const auto started = parse_time(command["started_at"].string_or(""));
  const auto ended = parse_time(command["ended_at"].string_or(""));
  if (!started || !ended || *ended < *started || !command["argv"].is(json::Kind::array))
    return refused("the command has no argv, or its times are not valid");
  if (content["report"]["format"].string_or("") == reports::golden_format || content["workflow"])
    return refused("the comparison of a blind workflow is not a test result");
  const std::string tree = sha256_of_tree(command["tree_after"].string_or(""));
  const bool covered = std::ranges::any_of(statement.subjects, [&](const Subject& one) { return one.sha256 == tree; });
  if (!tree.empty() && !covered) return refused("the working tree of the command is not its subject");
  const bool passed = command["exit_code"].as_int() == 0 && content["report"]["failed"].as_int().value_or(0) == 0;
  if (statement.outcome != (passed ? TestOutcome::passed : TestOutcome::failed))
    return refused("the command contradicts the result");
  statement.content = content.source();
  statement.command_id = command_id->text();
  return success();
}

}  // namespace

bool is_statement_type(std::string_view type) {
  return type == payload_type || type == "application/vnd.in-toto.test-result+json";
}

Result<std::string> write_statement(std::string_view content, std::string_view evidence_id, std::string_view hash) {
  ASSIGN_OR_RETURN(const json::Document document, json::parse(content));
  const json::Value root = document.root();
  const json::Value command = root["command"];
  const json::Value report = root["report"];
  if (!command.is(json::Kind::object))
    return Error(Errc::conflict,
                 "the evidence has no recorded command. Record one: muniment exec --evidence test_output");
  const bool passed = command["exit_code"].as_int() == 0 && report["failed"].as_int().value_or(0) == 0;
  const std::string tree = command["tree_after"].string_or("");
  json::Writer out;
  out.begin_object().member("_type", statement_type).key("subject").begin_array().begin_object();
  if (const std::string sha256 = sha256_of_tree(tree); !sha256.empty()) {
    out.member("name", tree).key("digest").begin_object().member("sha256", sha256).end_object();
  } else {
    out.member("name", fmt::format("evidence/{}", evidence_id));
    out.key("digest").begin_object().member("sha256", hash).end_object();
  }
  out.end_object().end_array().member("predicateType", predicate_type).key("predicate").begin_object();
  out.member("result", passed ? "PASSED" : "FAILED");
  out.key("configuration").begin_array().begin_object();
  std::string line;
  for (const json::Value word : command["argv"]) line += (line.empty() ? "" : " ") + shell_word(word.string_or(""));
  out.member("name", "command").member("uri", "muniment:command/" + command["suite"].string_or(""));
  out.key("annotations").begin_object().member("commandLine", line).end_object().end_object().end_array();
  if (report["failures"]) out.raw_member("failedTests", report["failures"].source());
  out.key("muniment").begin_object().member("evidence_id", evidence_id).member("type", "test_output");
  out.raw_member("content", with_short_text(root)).end_object().end_object().end_object();
  if (out.text().size() > payload_bytes_max)
    return Error(Errc::too_large, fmt::format("the test result has {}, an attestation at most {}",
                                              human_size(out.text().size()), human_size(payload_bytes_max)));
  return std::move(out).text();
}

Result<TestStatement> parse_statement(std::string_view payload) {
  const auto document = json::parse(payload);
  if (!document) return refused(document.error().message);
  const json::Value root = document->root();
  const json::Value predicate = root["predicate"];
  if (root["_type"].string_or("") != statement_type) return refused("_type is not " + std::string(statement_type));
  if (root["predicateType"].string_or("") != predicate_type)
    return refused("predicateType is " + json::quote(preview(root["predicateType"].string_or(""), 200)));
  TestStatement statement;
  RETURN_IF_ERROR(read_subjects(root["subject"], statement));
  const std::string result = predicate["result"].string_or("");
  if (result != "PASSED" && result != "WARNED" && result != "FAILED")
    return refused("the result is not PASSED, WARNED or FAILED");
  statement.outcome = result == "PASSED"   ? TestOutcome::passed
                      : result == "WARNED" ? TestOutcome::warned
                                           : TestOutcome::failed;
  if (!predicate["configuration"].is(json::Kind::array)) return refused("configuration is not a list");
  RETURN_IF_ERROR(read_names(predicate["passedTests"], statement.passed));
  RETURN_IF_ERROR(read_names(predicate["warnedTests"], statement.warned));
  RETURN_IF_ERROR(read_names(predicate["failedTests"], statement.failed));
  if (statement.outcome != TestOutcome::failed && !statement.failed.empty())
    return refused("failedTests contradicts the result " + result);
  RETURN_IF_ERROR(read_content(predicate["muniment"], statement));
  return statement;
}

std::string content_of(const TestStatement& statement, std::string_view now) {
  if (!statement.content.empty()) return statement.content;
  const bool failed = statement.outcome == TestOutcome::failed;
  const std::size_t passed = statement.passed.size() + statement.warned.size();
  std::string text = fmt::format("{} passed, {} failed", passed, statement.failed.size());
  for (const auto* names : {&statement.failed, &statement.warned, &statement.passed}) {
    for (const std::string& name : *names) {
      if (text.size() + name.size() < text_bytes_max) text += "\n" + name;
    }
  }
  json::Writer out;
  out.begin_object().member("text", text).key("command").begin_object();
  out.member("argv", std::vector<std::string>()).member("cwd", "").member("exit_code", failed ? 1 : 0);
  out.member("started_at", now).member("ended_at", now).end_object();
  // Without a report, a result with warnings is not strong.
  if (passed + statement.failed.size() > 0 && statement.outcome != TestOutcome::warned) {
    out.key("report").begin_object().member("format", report_format);
    out.member("total", passed + statement.failed.size()).member("passed", passed);
    out.member("failed", statement.failed.size()).member("skipped", 0);
    out.member("listed", true).member("complete", true).end_object();
  }
  return std::move(out.end_object()).text();
}

}  // namespace muniment::evidence::attestation
