// Implements the commands remember, forget, memories, history, and memory review: an agent's memory as one document for
// each subject. `recall` is `context` (context.cpp).
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <functional>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "base/memory_names.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "client/arguments.hpp"

namespace muniment::cli {
namespace {

constexpr std::size_t shown_bytes = 160;

struct MemoryOptions {
  std::string subject;
  std::string text;
  std::string corpus{memory_corpus};
  std::string source;
  std::string expires;
  std::string review;
  std::string reason;
  std::vector<std::string> tags;
  bool erase = false;
  bool accept = false;
  bool reject = false;
};

void declare_corpus_of_memory(CLI::App& command, MemoryOptions& options) {
  command.add_option("--corpus", options.corpus, "The corpus")->capture_default_str();
}

void declare_subject(CLI::App& command, MemoryOptions& options) {
  command.add_option("SUBJECT", options.subject, "Subject of the fact, such as home")->required();
  declare_corpus_of_memory(command, options);
}

void declare_remember(CLI::App& command, MemoryOptions& options) {
  declare_subject(command, options);
  command.add_option("TEXT", options.text, "The fact; - reads stdin")->required();
  command.add_option("--source", options.source, "Name by which it can be revoked, or a pointer it was derived from");
  command.add_option("--expires", options.expires, "Last day, or time, at which it is recalled");
  command.add_option("--review", options.review, "Day or time at which it is to be checked");
  command.add_option("--tag", options.tags, "Tag (may be repeated)")->allow_extra_args(false);
}

void declare_forget(CLI::App& command, MemoryOptions& options) {
  declare_subject(command, options);
  command.add_option("--reason", options.reason, "Reason (default: forgotten on request)");
  command.add_flag("--erase", options.erase, "Erase its texts from all copies; the proofs of the log stay valid");
}

void declare_review(CLI::App& command, MemoryOptions& options) {
  command.add_option("SUBJECT", options.subject, "Subject of a pending fact (default: list all)");
  declare_corpus_of_memory(command, options);
  CLI::Option* const accept = command.add_flag("--accept", options.accept, "Recall it from now on");
  command.add_flag("--reject", options.reject, "Forget it")->excludes(accept);
}

// The parameters of corpus.ingest with one document, begun.
json::Writer ingest_begun(const std::string& corpus) {
  json::Writer out;
  out.begin_object().member("corpus", corpus).member("wait", true).member("known", true);
  out.key("documents").begin_array().begin_object();
  return out;
}

Status print_stored(Session& session, json::Writer params) {
  params.end_object().end_array().end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("corpus.ingest", std::move(params).text()));
  for (const json::Value error : answer.result()["errors"]) {
    session.exit_code = exit_refused;
    if (!session.options.json)
      return Error(Errc::invalid_argument, error["code"].string_or("") + ": " + error["message"].string_or(""));
  }
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  for (const json::Value stored : answer.result()["documents"]) {
    out.line(fmt::format("{}  {}", stored["unchanged"].as_bool().value_or(false) ? "unchanged" : "stored",
                         out.one_line(stored["uri"].string_or(""))));
    if (stored["replaces"]) out.line("  replaces  " + out.one_line(stored["replaces"].string_or("")));
    for (const json::Value known : stored["known"])
      out.line("  known already as  " + out.one_line(known.string_or("")));
    if (const std::string trust = stored["trust"].string_or(""); trust == "quarantined")
      out.line("  quarantined: it is not recalled, because what it was derived from is quarantined");
  }
  return success();
}

Status remember(Session& session, const MemoryOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, question_text(options.text));
  json::Writer params = ingest_begun(options.corpus);
  params.member("id", options.subject).member("text", text);
  if (options.source.starts_with("ev://")) {
    params.key("derived_from").begin_array().string(options.source).end_array();
  } else if (!options.source.empty()) {
    params.member("source", options.source);
  }
  if (!options.expires.empty()) params.member("expires_at", options.expires);
  if (!options.review.empty()) params.member("review_at", options.review);
  if (!options.tags.empty()) params.member("tags", options.tags);
  return print_stored(session, std::move(params));
}

Status forget_as(Session& session, const MemoryOptions& options, const std::string& reason) {
  json::Writer params;
  params.begin_object().member("corpus", options.corpus).member("document", options.subject).member("reason", reason);
  if (options.erase) params.member("erase", true);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("document.retract", std::move(params).text()));
  if (session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  session.out().line(fmt::format("{}  {}/{}  seq {}", result["erased_files"] ? "erased" : "forgotten",
                                 session.out().one_line(result["corpus"].string_or("")),
                                 session.out().one_line(result["document"].string_or("")), result["seq"].source()));
  for (const json::Value quoting : result["answers"]) {
    session.out().line(session.out().advised(fmt::format(
        "  the answer {0} in {1} quotes it and keeps its text. To erase it too: muniment audit redact {0} --reason REASON",
        quoting["seq"].source(), session.out().one_line(quoting["run_id"].string_or("")))));
  }
  return success();
}

Status forget(Session& session, const MemoryOptions& options) {
  return forget_as(session, options, options.reason.empty() ? "forgotten on request" : options.reason);
}

// Calls `take` with each item of all pages of a list.
Status for_each_item(Session& session, const std::string& method, const MemoryOptions& options, std::string_view list,
                     std::string_view next, const std::function<void(const json::Value&)>& take) {
  std::string more;
  do {
    json::Writer params;
    params.begin_object().member("corpus", options.corpus).member("summaries", true);
    params.member("limit", limits::page_items_max);
    if (!options.subject.empty()) params.member("document", options.subject);
    if (!more.empty()) params.raw_member(next, more);
    params.end_object();
    ASSIGN_OR_RETURN(const Message page, session.call(method, std::move(params).text()));
    for (const json::Value item : page.result()[list]) take(item);
    more = std::string(page.result()[next] ? page.result()[next].source() : std::string_view());
  } while (!more.empty());
  return success();
}

std::string day_of(const json::Value& time) { return time.string_or("").substr(0, 10); }

Status print_list(Session& session, const MemoryOptions& options, const std::string& method, std::string_view list,
                  std::string_view next, Table table,
                  const std::function<std::vector<std::string>(const json::Value&)>& row) {
  RETURN_IF_ERROR(for_each_item(session, method, options, list, next, [&](const json::Value& item) {
    if (session.options.json) {
      session.out().json_line(item.source());
    } else if (auto cells = row(item); !cells.empty()) {
      table.add(std::move(cells));
    }
  }));
  if (!session.options.json) table.print(session.out());
  return success();
}

std::string text_of(const Output& out, const json::Value& row) {
  return fit(out.one_line(row["summary"].string_or("")), shown_bytes);
}

Status memories(Session& session, const MemoryOptions& options) {
  const Output& out = session.out();
  return print_list(session, options, "document.list", "documents", "cursor",
                    Table({"subject", "date", "trust", "source", "until", "text"}, {3}),
                    [&](const json::Value& row) -> std::vector<std::string> {
                      return {out.one_line(row["document"].string_or("")),
                              day_of(row["timestamp"]),
                              out.one_line(row["trust"].string_or("")),
                              out.one_line(row["source"].string_or("")),
                              day_of(row["expires_at"]),
                              text_of(out, row)};
                    });
}

Status history(Session& session, const MemoryOptions& options) {
  const Output& out = session.out();
  return print_list(
      session, options, "document.history", "revisions", "before",
      Table({"seq", "date", "until", "source", "text"}, {3}), [&](const json::Value& row) -> std::vector<std::string> {
        const std::string ended = row["ended_by"].string_or("");
        return {std::string(row["seq"].source()), day_of(row["recorded_at"]),
                ended.empty()
                    ? out.tone(Tone::green, "current")
                    : fmt::format("{} at {}", ended, row[ended == "erased" ? "removed_at" : "valid_to"].source()),
                out.one_line(row["source"].string_or("")), text_of(out, row)};
      });
}

// Why a fact waits for a decision; empty: it does not.
std::string waits_for(const json::Value& row, const std::string& now) {
  if (row["trust"].string_or("") == "quarantined") return "not recalled";
  const std::string review = row["review_at"].string_or("");
  return !review.empty() && review <= now ? "to check since " + day_of(row["review_at"]) : "";
}

// Returns the corpus of the fact to decide on: that of the facts that wait, if it has the subject.
std::string corpus_to_review(Session& session, const MemoryOptions& options) {
  const std::string pending = options.corpus + std::string(review_ending);
  json::Writer which;
  which.begin_object().member("corpus", pending).member("document", options.subject).end_object();
  return session.call("document.get", std::move(which).text()) ? pending : options.corpus;
}

// Stores the fact again: trusted as little as any text, and without a time of review.
Status accept(Session& session, const MemoryOptions& options) {
  const std::string corpus = corpus_to_review(session, options);
  json::Writer which;
  which.begin_object().member("corpus", corpus).member("document", options.subject).end_object();
  ASSIGN_OR_RETURN(const Message found, session.call("document.get", std::move(which).text()));
  const json::Value row = found.result()["document"];
  json::Writer slice;
  slice.begin_object().raw_member("artifact_id", row["artifact_id"].source());
  slice.raw_member("offset", row["start_byte"].source()).raw_member("length", row["size_bytes"].source());
  slice.member("encoding", "text").end_object();
  ASSIGN_OR_RETURN(const Message text, session.call("artifact.get", std::move(slice).text()));
  if (text.result()["text"].string_or("").size() != static_cast<std::size_t>(row["size_bytes"].as_int().value_or(0)))
    return Error(Errc::too_large, "the document is too long to be accepted here. Ingest it again: muniment ingest");
  json::Writer params = ingest_begun(options.corpus);
  params.raw_member("id", row["document"].source()).raw_member("text", text.result()["text"].source());
  for (const char* name :
       {"title", "mime_type", "language", "tags", "source", "source_url", "derived_from", "timestamp", "expires_at"}) {
    if (row[name]) params.raw_member(name, row[name].source());
  }
  if (corpus == options.corpus) params.raw_member("base", row["revision"].source());
  const std::string trust = row["trust"].string_or("");
  params.member("trust", trust == "quarantined" ? "untrusted" : trust);
  RETURN_IF_ERROR(print_stored(session, std::move(params)));
  if (corpus == options.corpus || session.exit_code != 0) return success();
  json::Writer taken;
  taken.begin_object().member("corpus", corpus).member("document", options.subject);
  taken.member("reason", "accepted at review").end_object();
  ASSIGN_OR_RETURN(const Message gone, session.call("document.retract", std::move(taken).text()));
  return success();
}

Status review(Session& session, const MemoryOptions& options) {
  if (options.subject.empty() && (options.accept || options.reject))
    return Error(Errc::invalid_argument, "name the fact: muniment memory review SUBJECT --accept");
  if (options.accept) return accept(session, options);
  if (options.reject) {
    MemoryOptions rejected = options;
    rejected.corpus = corpus_to_review(session, options);
    return forget_as(session, rejected, "rejected at review");
  }
  const Output& out = session.out();
  const std::string now = format_time(Clock().now());
  Table table({"subject", "date", "waits", "source", "text"}, {3});
  const auto add = [&](const json::Value& row) {
    const std::string why = waits_for(row, now);
    if (why.empty() || (!options.subject.empty() && row["document"].string_or("") != options.subject)) return;
    if (session.options.json) return out.json_line(row.source());
    table.add({out.one_line(row["document"].string_or("")), day_of(row["timestamp"]), why,
               out.one_line(row["source"].string_or("")), text_of(out, row)});
  };
  for (const std::string_view ending : {std::string_view(), review_ending}) {
    MemoryOptions all = options;
    all.subject.clear();
    all.corpus += ending;
    const Status listed = for_each_item(session, "document.list", all, "documents", "cursor", add);
    if (!listed && listed.error().code != Errc::not_found) return listed;
  }
  if (!session.options.json) table.print(out);
  return success();
}

}  // namespace

void add_memory_commands(CLI::App& app, Session& session) {
  add_command<MemoryOptions>(session, app, "remember", "Store a fact under its subject, or correct it",
                             declare_remember, remember);
  add_command<MemoryOptions>(session, app, "forget", "Remove a fact from recall, or erase it", declare_forget, forget);
  add_command<MemoryOptions>(session, app, "memories", "List the stored facts", declare_corpus_of_memory, memories);
  add_command<MemoryOptions>(session, app, "history", "List the texts of a subject, newest first", declare_subject,
                             history);
  CLI::App& memory = add_group(app, "memory", "Review what agents remembered");
  add_command<MemoryOptions>(session, memory, "review", "List facts that wait for a decision, accept or reject one",
                             declare_review, review);
}

}  // namespace muniment::cli
