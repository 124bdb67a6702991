// Implements the command ask, which answers a question with cited sentences of the documents.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/show/empty_answer.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

struct AskOptions {
  std::vector<std::string> words;
  bool from_stdin = false;
  std::optional<std::int64_t> passages;
  std::string corpus;
  std::vector<std::string> tags;
  std::vector<std::string> files;
  std::string run;
  std::string asof;
  bool cloud = false;
  bool cloud_always = false;
};

void declare_ask(CLI::App& command, AskOptions& options) {
  command.add_option("QUESTION", options.words, "Question with query markup; - or none reads stdin");
  command.add_flag("--stdin", options.from_stdin, "Read the question from standard input");
  command.add_option("-k", options.passages, "Largest number of passages (default 5)")
      ->check(CLI::Range(std::size_t{1}, limits::ask_passages_max));
  command.add_option("--corpus", options.corpus, "Search only this corpus");
  command.add_option("--tag", options.tags, "Use only documents with this tag")->allow_extra_args(false);
  command.add_option("--file", options.files, "Use only this document (CORPUS/ID) or source (URI)")
      ->allow_extra_args(false);
  command.add_option("--run", options.run, "Run that records the answer");
  command.add_flag("--cloud", options.cloud, "Permit a question to the cloud service (cloud_url)");
  command.add_flag("--cloud-always", options.cloud_always, "Ask it whatever the confidence is");
  add_asof_option(command, options.asof, "State as of this event or time");
}

Result<std::string> ask_params(Session& session, const AskOptions& options, const std::string& question) {
  json::Writer params;
  params.begin_object().member("query", question);
  if (!options.corpus.empty()) params.member("corpus", options.corpus);
  params.key("context").begin_object().member("tags", options.tags).member("files", options.files).end_object();
  params.key("settings").begin_object();
  if (options.passages) params.member("k", *options.passages);
  if (options.cloud || options.cloud_always) params.member("cloud_allowed", true);
  if (options.cloud_always) params.member("cloud_mode", "always");
  params.end_object();
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  add_asof(params, options.asof);
  return std::move(params.end_object()).text();
}

void print_provenance(const Output& out, const json::Value& local, const json::Value& cloud) {
  Table table({"n", "document", "bytes", "trust", "pointer"}, {4, 1});
  for (const json::Value item : local) {
    const std::int64_t offset = item["span"]["offset"].as_int().value_or(0);
    const std::int64_t length = item["span"]["length"].as_int().value_or(0);
    table.add({fmt::format("[{}]", item["n"].source()),
               out.one_line(item["corpus"].string_or("") + "/" + item["document"].string_or("")),
               fmt::format("{}-{}", offset, offset + length), out.one_line(item["trust"].string_or("")),
               out.one_line(item["pointer"].string_or(""))});
  }
  for (const json::Value item : cloud) {
    table.add({fmt::format("[cloud {}]", item["n"].source()), out.one_line(item["provider"].string_or("")), "",
               out.one_line(item["trust"].string_or("")), out.one_line(item["pointer"].string_or(""))});
  }
  table.print(out);
}

Status ask_question(Session& session, const AskOptions& options) {
  ASSIGN_OR_RETURN(const std::string question,
                   question_text(options.from_stdin || options.words.empty() ? "-" : joined(options.words, " ")));
  ASSIGN_OR_RETURN(const std::string params, ask_params(session, options, question));
  ASSIGN_OR_RETURN(const Message answer, session.call("ask", params));
  const json::Value result = answer.result();
  const std::string reason = result["reason"].string_or("");
  if (reason.starts_with("unknown_")) session.exit_code = exit_refused;
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  out.line(out.safe(result["answer"].string_or("")));
  const json::Value provenance = result["provenance"];
  if (provenance["local"].size() + provenance["cloud"].size() > 0) {
    out.line("");
    print_provenance(out, provenance["local"], provenance["cloud"]);
  }
  std::string summary = fmt::format("confidence {:.2f}, {}", result["confidence"]["local"].as_double().value_or(0),
                                    result["drafter"].string_or(""));
  if (const std::string record = result["logs_ref"].string_or(""); !record.empty()) summary += ", " + record;
  if (!reason.empty()) {
    ASSIGN_OR_RETURN(const std::string why, empty_answer(result, question, options.corpus));
    summary = out.advised(why) + "; " + summary;
  }
  fmt::print(stderr, "{}\n", out.one_line(summary));
  if (const auto why = provenance["cloud_reason"].as_string())
    fmt::print(stderr, "cloud: {}: {}\n", *why, out.one_line(provenance["cloud_message"].string_or("")));
  for (const json::Value words : result["degraded"])
    fmt::print(stderr, "degraded: {}\n", out.one_line(words.string_or("")));
  return success();
}

}  // namespace

void add_ask_command(CLI::App& app, Session& session) {
  add_command<AskOptions>(session, app, "ask", "Answer a question with cited sentences", declare_ask, ask_question);
}

}  // namespace muniment::cli
