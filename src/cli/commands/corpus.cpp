// Implements the commands corpus list; document list, get, history, diff and retract; source revoke; and feedback.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/connect/download.hpp"
#include "cli/time_option.hpp"
#include "client/arguments.hpp"
#include "evidence/pointer.hpp"

namespace muniment::cli {
namespace {

std::uint64_t count_of(const json::Value& object, std::string_view name) {
  return static_cast<std::uint64_t>(object[name].as_int().value_or(0));
}

Status list_corpora(Session& session, const NoOptions&) {
  ASSIGN_OR_RETURN(const Message answer, session.call("corpus.list", "{}"));
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  Table table({"corpus", "documents", "passages", "last event", "owner"});
  for (const json::Value corpus : answer.result()["corpora"]) {
    table.add({out.one_line(corpus["corpus"].string_or("")), grouped(count_of(corpus, "documents")),
               grouped(count_of(corpus, "chunks")), std::to_string(count_of(corpus, "last_seq")),
               out.one_line(corpus["owner"].string_or(""))});
  }
  table.print(out);
  return success();
}

struct DocumentOptions {
  std::string corpus;
  std::string document;
  std::string revision;
  std::string from;
  std::string to;
  std::string asof;
  std::string output;
  std::string reason;
  std::string base;
};

void declare_corpus(CLI::App& command, DocumentOptions& options) {
  command.add_option("CORPUS", options.corpus, "Name of the corpus")->required();
}

void declare_document(CLI::App& command, DocumentOptions& options) {
  declare_corpus(command, options);
  command.add_option("DOCUMENT", options.document, "Document id (CORPUS may be aether://CORPUS/DOCUMENT instead)");
}

void declare_get(CLI::App& command, DocumentOptions& options) {
  declare_document(command, options);
  command.add_option("--revision", options.revision, "Revision (default: the current one)");
  add_asof_option(command, options.asof, "Use the revision that was current at this event or time");
  command.add_option("-o,--output", options.output, "Write the original bytes to this file; - is standard output");
}

void declare_diff(CLI::App& command, DocumentOptions& options) {
  declare_document(command, options);
  command.add_option("--from", options.from, "Older revision (default: the previous one)");
  command.add_option("--to", options.to, "Newer revision (default: the current one)");
}

void declare_retract(CLI::App& command, DocumentOptions& options) {
  declare_document(command, options);
  command.add_option("--reason", options.reason, "Why")->required();
  command.add_option("--base", options.base, "Retract only if this revision is the current one");
}

// A document is named by its corpus and its id, or by its URI in a capsule.
Result<std::string> params_of(const DocumentOptions& options) {
  evidence::DocumentName named{options.corpus, options.document};
  if (options.document.empty()) {
    ASSIGN_OR_RETURN(named, evidence::parse_document_uri(options.corpus));
  }
  json::Writer out;
  out.begin_object().member("corpus", named.corpus).member("document", named.document);
  const std::pair<std::string_view, const std::string&> given[] = {{"revision", options.revision},
                                                                   {"from", options.from},
                                                                   {"to", options.to},
                                                                   {"reason", options.reason},
                                                                   {"base", options.base}};
  for (const auto& [name, value] : given) {
    if (!value.empty()) out.member(name, value);
  }
  add_asof(out, options.asof);
  return std::move(out.end_object()).text();
}

// Requests pages of `method` until a reply has no `next`; prints each item of result[list] as JSON or as a table row.
Status print_pages(Session& session, const std::string& method, std::string params, std::string_view list,
                   const char* next, Table& table,
                   const std::function<std::vector<std::string>(const json::Value&)>& row) {
  params.pop_back();  // removes the closing brace
  std::string more;
  do {
    ASSIGN_OR_RETURN(const Message page, session.call(method, params + more + "}"));
    for (const json::Value item : page.result()[list]) {
      if (session.options.json) {
        session.out().json_line(item.source());
      } else {
        table.add(row(item));
      }
    }
    const json::Value cursor = page.result()[next];
    more = cursor ? fmt::format(",\"{}\":{}", next, cursor.source()) : "";
  } while (!more.empty());
  if (!session.options.json) table.print(session.out());
  return success();
}

// Returns a text such as "retracted at 44". An erased revision may have been retracted before; its row does not name
// the event of the erasure.
std::string end_text(const json::Value& row) {
  const std::string ended = row["ended_by"].string_or("");
  if (ended != "erased") return fmt::format("{} at {}", ended, count_of(row, "valid_to"));
  return row["removed_at"] ? fmt::format("erased at {}", count_of(row, "removed_at"))
                           : fmt::format("erased, not current since {}", count_of(row, "valid_to"));
}

// A revision carried over from a closed log keeps its original age.
std::string ingested_ago(const json::Value& row, Time now) {
  if (!row["carried_over"]) return ago(row["recorded_at"].string_or(""), now);
  return row["first_recorded_at"] ? ago(row["first_recorded_at"].string_or(""), now) : "carried over";
}

Status list_documents(Session& session, const DocumentOptions& options) {
  const Output& out = session.out();
  const Time now = Clock().now();
  Table table({"document", "revision", "size", "passages", "format", "trust", "ingested", "title"});
  json::Writer params;
  params.begin_object().member("corpus", options.corpus).member("limit", limits::page_items_max).end_object();
  return print_pages(session, "document.list", std::move(params).text(), "documents", "cursor", table,
                     [&](const json::Value& row) -> std::vector<std::string> {
                       return {out.one_line(row["document"].string_or("")),
                               out.one_line(row["revision"].string_or("")),
                               human_size(count_of(row, "size_bytes")),
                               grouped(count_of(row, "chunks")),
                               out.one_line(row["format"].string_or("")),
                               out.one_line(row["trust"].string_or("")),
                               ingested_ago(row, now),
                               fit(out.one_line(row["title"].string_or("")), 60)};
                     });
}

Status document_history(Session& session, const DocumentOptions& options) {
  const Output& out = session.out();
  Table table({"seq", "revision", "size", "passages", "ingested", "until"});
  ASSIGN_OR_RETURN(std::string params, params_of(options));
  return print_pages(session, "document.history", std::move(params), "revisions", "before", table,
                     [&](const json::Value& row) -> std::vector<std::string> {
                       return {std::to_string(count_of(row, "seq")),
                               out.one_line(row["revision"].string_or("")),
                               human_size(count_of(row, "size_bytes")),
                               grouped(count_of(row, "chunks")),
                               row["recorded_at"].string_or(""),
                               row["ended_by"] ? end_text(row) : out.tone(Tone::green, "current")};
                     });
}

Status get_document(Session& session, const DocumentOptions& options) {
  ASSIGN_OR_RETURN(const std::string params, params_of(options));
  ASSIGN_OR_RETURN(const Message answer, session.call("document.get", params));
  const json::Value row = answer.result()["document"];
  const Output& out = session.out();
  if (!options.output.empty()) {
    ASSIGN_OR_RETURN(Client* const client, session.client());
    return save_artifact(*client, out, row["artifact_id"].string_or(""), row["start_byte"].as_int().value_or(0),
                         row["size_bytes"].as_int().value_or(0), options.output);
  }
  if (session.printed_json(answer)) return success();
  out.line(out.tone(Tone::bold, out.one_line(row["title"].string_or(""))));
  out.line(fmt::format("{}/{}  {}  {}  {}  {}", out.one_line(row["corpus"].string_or("")),
                       out.one_line(row["document"].string_or("")), out.one_line(row["format"].string_or("")),
                       out.one_line(row["language"].string_or("")), human_size(count_of(row, "size_bytes")),
                       out.one_line(row["trust"].string_or(""))));
  std::string tags;
  for (const json::Value tag : row["tags"]) tags += "  #" + out.one_line(tag.string_or(""));
  out.line(fmt::format("revision {} of event {}, {}{}", out.one_line(row["revision"].string_or("")),
                       count_of(row, "seq"), row["recorded_at"].string_or(""),
                       row["ended_by"] ? "; " + end_text(row) : ""));
  out.line("from " + out.one_line(row["source"].string_or("")) + tags);
  out.line("");
  Table table({"passage", "bytes", "hash", "heading"});
  for (const json::Value chunk : answer.result()["chunks"]) {
    table.add({out.one_line(chunk["id"].string_or("")),
               fmt::format("{}–{}", count_of(chunk, "start"), count_of(chunk, "end")),
               chunk["hash"].string_or("").substr(0, 16), fit(out.one_line(chunk["heading"].string_or("")), 60)});
  }
  table.print(out);
  if (const std::uint64_t more = count_of(answer.result(), "more_chunks"); more > 0)
    out.line(fmt::format("… and {} more", grouped(more)));
  return success();
}

Status diff_document(Session& session, const DocumentOptions& options) {
  ASSIGN_OR_RETURN(const std::string params, params_of(options));
  ASSIGN_OR_RETURN(const Message answer, session.call("document.diff", params));
  if (session.printed_json(answer)) return success();
  const Output& out = session.out();
  const json::Value result = answer.result();
  out.line(fmt::format("{} → {}: {} passages unchanged, {} removed, {} added",
                       result["from"] ? out.one_line(result["from"].string_or("")) : "nothing",
                       out.one_line(result["to"].string_or("")), grouped(count_of(result, "unchanged")),
                       grouped(count_of(result, "removed")), grouped(count_of(result, "added"))));
  const auto print_side = [&](const json::Value& chunks, Tone tone, char sign) {
    for (const json::Value chunk : chunks) {
      out.line(out.tone(
          tone, fmt::format("{} {}  {}–{}  {}", sign, out.one_line(chunk["id"].string_or("")), count_of(chunk, "start"),
                            count_of(chunk, "end"), fit(out.one_line(chunk["heading"].string_or("")), 60))));
    }
  };
  print_side(result["only_left"], Tone::red, '-');
  print_side(result["only_right"], Tone::green, '+');
  return success();
}

Status retract_document(Session& session, const DocumentOptions& options) {
  ASSIGN_OR_RETURN(const std::string params, params_of(options));
  ASSIGN_OR_RETURN(const Message answer, session.call("document.retract", params));
  if (session.printed_json(answer)) return success();
  const json::Value result = answer.result();
  session.out().line(fmt::format("{}/{} at {} retracted  seq {}",
                                 session.out().one_line(result["corpus"].string_or("")),
                                 session.out().one_line(result["document"].string_or("")),
                                 session.out().one_line(result["revision"].string_or("")), count_of(result, "seq")));
  return success();
}

struct RevokeOptions {
  std::string source;
  std::string reason;
};

void declare_revoke(CLI::App& command, RevokeOptions& options) {
  command.add_option("SOURCE", options.source, "Source as document get shows it: a URL, file://FOLDER, …")->required();
  command.add_option("--reason", options.reason, "Why")->required();
}

Status revoke_source(Session& session, const RevokeOptions& options) {
  json::Writer params;
  params.begin_object().member("source", options.source).member("reason", options.reason).end_object();
  Result<Message> answered = session.call("source.revoke", params.text());
  // Replaces the daemon's advice, because `document list` does not print sources.
  if (!answered && answered.error().message.find("no document comes from") != std::string::npos) {
    return Error(
        Errc::not_found,
        fmt::format(
            "not_found: no document comes from the source {}. A document's is shown by: muniment document get CORPUS DOCUMENT",
            options.source));
  }
  ASSIGN_OR_RETURN(const Message answer, std::move(answered));
  if (session.printed_json(answer)) return success();
  session.out().line(fmt::format("revoked with {} revisions  seq {}", grouped(count_of(answer.result(), "documents")),
                                 count_of(answer.result(), "seq")));
  return success();
}

struct FeedbackOptions {
  std::string pointer;
  double score = 0;
  std::string by = "human";
  std::string name;
  std::string comment;
};

void declare_feedback(CLI::App& command, FeedbackOptions& options) {
  command.add_option("POINTER", options.pointer, "Pointer of the card")->required();
  command.add_option("SCORE", options.score, "Score from -1 (misleading) to 1 (fully relevant)")
      ->required()
      ->check(CLI::Range(-1.0, 1.0));
  command.add_option("--by", options.by, "Kind of judge: human, model or code")
      ->check(CLI::IsMember({"human", "model", "code"}))
      ->capture_default_str();
  command.add_option("--name", options.name, "Judged property (default: relevance)");
  command.add_option("--comment", options.comment, "Comment");
}

Status give_feedback(Session& session, const FeedbackOptions& options) {
  json::Writer params;
  params.begin_object().member("pointer", options.pointer).member("value", options.score).member("by", options.by);
  if (!options.name.empty()) params.member("name", options.name);
  if (!options.comment.empty()) params.member("comment", options.comment);
  params.end_object();
  ASSIGN_OR_RETURN(const Message answer, session.call("feedback.record", params.text()));
  if (session.printed_json(answer)) return success();
  session.out().line(fmt::format("recorded  seq {}", count_of(answer.result(), "seq")));
  return success();
}

}  // namespace

void add_corpus_commands(CLI::App& app, Session& session) {
  CLI::App& corpus = add_group(app, "corpus", "List collections of documents");
  add_command<NoOptions>(session, corpus, "list", "List the corpora that you may read", nullptr, list_corpora);
  CLI::App& document = add_group(app, "document", "List, read, compare and retract documents");
  add_command<DocumentOptions>(session, document, "list", "List the current documents of a corpus", declare_corpus,
                               list_documents);
  add_command<DocumentOptions>(session, document, "get", "Show a revision and its passages, or write its bytes",
                               declare_get, get_document);
  add_command<DocumentOptions>(session, document, "history", "List the revisions of a document, newest first",
                               declare_document, document_history);
  add_command<DocumentOptions>(session, document, "diff", "Compare the passages of two revisions", declare_diff,
                               diff_document);
  add_command<DocumentOptions>(session, document, "retract", "Remove a document from new queries; its history remains",
                               declare_retract, retract_document);
  CLI::App& source = add_group(app, "source", "Revoke sources of documents");
  add_command<RevokeOptions>(session, source, "revoke",
                             "Retract all documents from a source and those derived from them", declare_revoke,
                             revoke_source);
  add_command<FeedbackOptions>(session, app, "feedback", "Record how relevant a card was", declare_feedback,
                               give_feedback);
}

}  // namespace muniment::cli
