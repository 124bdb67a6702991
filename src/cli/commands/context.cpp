// Implements the commands context and recall, one command under two names, which print a context pack that is ready to
// be pasted into a prompt.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/show/empty_answer.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

struct ContextOptions {
  std::vector<std::string> words;
  std::string corpus;
  std::optional<std::int64_t> budget;
  std::optional<double> min_confidence;
  std::string run;
  std::string asof;
};

void declare_context(CLI::App& command, ContextOptions& options) {
  command.add_option("TEXT", options.words, "Question with query markup: in: tag: \"words\"; - reads stdin")
      ->required();
  command.add_option("--corpus", options.corpus, "Search only this corpus");
  command.add_option("--budget", options.budget, "Token budget (default 4,000)")->check(CLI::Range(0, 131'072));
  command.add_option("--min-confidence", options.min_confidence, "Print nothing below this probability of an answer")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--run", options.run, "Run that receives the context and its manifest");
  add_asof_option(command, options.asof, "State as of this event or time");
}

Result<std::string> params_of(Session& session, const ContextOptions& options, const std::string& question) {
  json::Writer params;
  params.begin_object().member("query", question);
  if (!options.corpus.empty()) params.member("corpus", options.corpus);
  if (options.budget) params.member("budget_tokens", *options.budget);
  if (options.min_confidence) params.member("min_confidence", *options.min_confidence);
  if (!options.run.empty()) {
    ASSIGN_OR_RETURN(const std::string run_id, session.run_id(options.run));
    params.member("run_id", run_id);
  }
  add_asof(params, options.asof);
  params.end_object();
  return std::move(params).text();
}

Status build_context(Session& session, const ContextOptions& options) {
  ASSIGN_OR_RETURN(const std::string question, question_text(joined(options.words, " ")));
  ASSIGN_OR_RETURN(const std::string params, params_of(session, options, question));
  ASSIGN_OR_RETURN(const Message answer, session.call("context.build", params));
  const json::Value result = answer.result();
  if (result["reason"].string_or("").starts_with("unknown_")) session.exit_code = exit_refused;
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  const std::string text = result["text"].string_or("");
  out.print(out.safe(text));
  std::string summary;
  if (text.empty()) {
    ASSIGN_OR_RETURN(summary, empty_answer(result, question, options.corpus));
    summary = out.one_line(out.advised(summary));
  } else {
    summary = fmt::format("{} passage{}, {} of {} tokens, {} left out", result["citations"].size(),
                          result["citations"].size() == 1 ? "" : "s", result["used"].source(),
                          result["budget"].source(), result["left_out"].size());
    if (result["manifest_id"]) summary += ", manifest://" + result["manifest_id"].string_or("");
  }
  // Printed to standard error, since standard output may be passed directly into a prompt.
  fmt::print(stderr, "{}\n", summary);
  for (const json::Value words : result["degraded"])
    fmt::print(stderr, "degraded: {}\n", out.one_line(words.string_or("")));
  return success();
}

}  // namespace

void add_context_commands(CLI::App& app, Session& session) {
  add_command<ContextOptions>(session, app, "context", "Pack passages for a prompt, numbered for citation",
                              declare_context, build_context);
  add_command<ContextOptions>(session, app, "recall", "Recall the facts and passages that answer a question",
                              declare_context, build_context);
}

}  // namespace muniment::cli
