// corpus.list, document.get, document.list, document.history, document.diff, document.retract, source.revoke,
// feedback.record: read and withdraw documents.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "evidence/pointer.hpp"
#include "gateway/access.hpp"
#include "gateway/append/first_receipts.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/corpora.hpp"
#include "gateway/services.hpp"
#include "retrieval/query/log_source.hpp"
#include "retrieval/service.hpp"
#include "retrieval/text/document_text.hpp"

namespace muniment::gateway::methods {
namespace {

constexpr std::size_t history_items_max = 1'000;

std::size_t limit_of(const json::Value& params) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(
      params["limit"].as_int().value_or(limits::page_items_default), 1, limits::page_items_max));
}

// Waits until the acknowledged documents are visible, then returns the corpus that the request names.
Result<store::CorpusRow> corpus_of(Call& call) {
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  return find_corpus(call, call.params["corpus"].string_or(""));
}

Error no_document(std::string_view corpus, std::string_view document) {
  return Error(Errc::not_found, fmt::format("no document {} in the corpus {}. See: muniment document list {}", document,
                                            corpus, corpus));
}

// Returns the error for a document without a current revision. If the document existed, the message names the event
// that ended it.
Error no_current_document(Call& call, const std::string& corpus, const std::string& document) {
  const auto rows = call.reader->document_history(corpus, document, std::nullopt, 1);
  if (!rows) return rows.error();
  const std::string how = rows->empty() ? std::string() : rows->front().ended_by.value_or("");
  if (how.empty() || how == "revised") return no_document(corpus, document);
  const std::optional<std::int64_t> at =
      how == "erased" ? std::nullopt : rows->front().valid_to;  // an erased one may have been retracted before
  return Error(
      Errc::not_found,
      fmt::format("the document {} of the corpus {} is {} already{}. Its revisions: muniment document history {} {}",
                  document, corpus, how, at ? fmt::format(", by event {}", *at) : "", corpus, document));
}

// Errors: corrupt if a row is not what its event recorded.
Status check_recorded(const std::vector<store::DocumentRow>& rows) {
  for (const store::DocumentRow& row : rows) {
    if (!row.differs.empty())
      return Error(Errc::corrupt, fmt::format("{}/{} (seq {}): {}", row.corpus, row.document, row.seq, row.differs));
  }
  return success();
}

// Returns the revision that the parameter `name` selects; without it, the revision that is (or was, `asof`) current.
Result<store::DocumentRow> revision_of(Call& call, std::string_view name) {
  ASSIGN_OR_RETURN(const store::CorpusRow corpus, corpus_of(call));
  const std::string document = call.params["document"].string_or("");
  std::optional<store::DocumentRow> row;
  if (const auto revision = call.params[name].as_string()) {
    ASSIGN_OR_RETURN(row, call.reader->document_revision(corpus.corpus, document, *revision));
  } else {
    ASSIGN_OR_RETURN(const auto as_of, asof_seq(call, *call.reader));
    ASSIGN_OR_RETURN(row, call.reader->document(corpus.corpus, document, as_of));
  }
  if (row) RETURN_IF_ERROR(check_recorded({*row}));
  if (row) return *std::move(row);
  const auto revision = call.params[name].as_string();
  return no_document(corpus.corpus, revision ? document + " with the revision " + *revision : document);
}

Uuid repeated_id(const Call& call, std::string_view method) {
  return idempotent_id(call.caller, method, call.idempotency_key);
}

// Returns the first reply to a repeated request, regardless of later changes to its targets: the members `kept` of its
// event's body. Returns nullopt if it was not recorded or has no key. `same` compares the request with the recorded
// body. Errors: conflict if they differ.
Result<std::optional<Reply>> first_answer(Call& call, std::string_view method,
                                          const std::function<bool(const json::Value& body)>& same,
                                          std::initializer_list<std::string_view> kept) {
  if (call.idempotency_key.empty()) return std::optional<Reply>();
  ASSIGN_OR_RETURN(const auto found, find_in_log_runs(call, repeated_id(call, method)));
  const std::optional<events::Event>& known = found.row;
  if (!known) return std::optional<Reply>();
  if (!known->body) return used_key(*known);
  ASSIGN_OR_RETURN(const json::Document document, json::parse(*known->body));
  if (!same(document.root())) return used_key(*known);
  note_log(call, *found.reader);
  json::Writer out;
  out.begin_object();
  for (const std::string_view name : kept)
    out.raw_member(name == "target" ? "pointer" : name, document.root()[name].source());
  out.member("seq", known->seq).member("duplicate", true).end_object();
  return std::optional(Reply{std::move(out).text(), {}});
}

// The events about documents to append.
struct Change {
  std::string_view method;
  std::string_view type;
  std::string body;
  // The change depends on the rows of these names, as of known_upto.
  std::vector<std::string> names{};
  std::int64_t known_upto = 0;
};

// Appends an event of the caller to `_log` about documents. The reply waits until the tables include the event. From
// then on no query returns a withdrawn document, because each hit is checked against the tables.
Answer append_change(Call& call, Change change, std::function<std::string(std::int64_t)> reply) {
  FAILPOINT("documents.looked_at");
  const std::shared_ptr<store::Run> log = call.services.runs.find(log_run_id);
  PendingAppend append;
  append.request.actor = call.caller.actor;
  events::NewEvent event = make_event(call, *log, change.type, std::move(change.body));
  if (!call.idempotency_key.empty()) {
    event.event_id = repeated_id(call, change.method);
    event.event_id_is_ours = false;
    append.request.ids_checked = call.check_ids;
  }
  append.request.events.push_back({log, std::move(event), false});
  append.request.names = std::move(change.names);
  append.request.names_known_upto = change.known_upto;
  append.refused = [](Services& services, Error error) -> Result<Reply> {
    note_moved_on(services, error);
    return error;
  };
  append.finish_on_worker = true;
  append.finish = [reply = std::move(reply), deadline = call.deadline](
                      Services& services, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    services.retrieval.documents().changed_at(receipts.front().seq);
    RETURN_IF_ERROR(services.retrieval.documents().wait_for_changes(deadline));
    return Reply{reply(receipts.front().seq), {}};
  };
  return append;
}

// Returns the documents that were carried over from closed logs, with the time of their first record; empty in a first
// log.
Result<std::map<std::int64_t, std::optional<Time>>> carried_of(Call& call,
                                                               const std::vector<store::DocumentRow>& rows) {
  if (call.reader->log_no() <= 1 || rows.empty()) return std::map<std::int64_t, std::optional<Time>>();
  std::vector<std::int64_t> seqs;
  for (const store::DocumentRow& row : rows) seqs.push_back(row.seq);
  return call.reader->carried(seqs);
}

// Returns the beginnings of the documents' texts, by seq, if the request wants them. A document without an intact first
// passage has none.
Result<std::map<std::int64_t, std::string>> summaries_of(Call& call, const std::vector<store::DocumentRow>& rows) {
  std::map<std::int64_t, std::string> out;
  if (!call.params["summaries"].as_bool().value_or(false) || rows.empty()) return out;
  std::vector<store::Citation> citations;
  for (const store::DocumentRow& row : rows) citations.push_back({row.corpus, row.document, row.revision, 0});
  ASSIGN_OR_RETURN(auto cited, call.services.retrieval.documents().chunk_rows().cited(*call.reader, citations));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!cited[i].chunk || cited[i].erased || cited[i].path.empty() || rows[i].of_run()) continue;
    const auto text =
        retrieval::read_passage({*cited[i].chunk, *cited[i].document, cited[i].path}, call.services.files);
    if (text) out.emplace(rows[i].seq, retrieval::snippet_of(*text, {}, limits::summary_bytes_max));
  }
  return out;
}

// Writes each row that fits into a page. Returns their number.
std::size_t write_documents(json::Writer& out, const std::vector<store::DocumentRow>& rows, std::size_t limit,
                            const std::map<std::int64_t, std::optional<Time>>& carried,
                            const std::map<std::int64_t, std::string>& summaries) {
  std::size_t count = 0;
  for (; count < rows.size() && count < limit && out.text().size() < limits::page_bytes_max; ++count) {
    const auto from = carried.find(rows[count].seq);
    const auto summary = summaries.find(rows[count].seq);
    write_document(out, rows[count], from == carried.end() ? nullptr : &from->second,
                   summary == summaries.end() ? nullptr : &summary->second);
  }
  return count;
}

void write_chunk(json::Writer& out, const store::DocumentRow& document, const store::ChunkRow& chunk) {
  out.begin_object().member("id", evidence::evidence_pointer(document.corpus, document.document,
                                                             "p" + std::to_string(chunk.number), document.revision));
  out.member("start", chunk.start_byte).member("end", chunk.end_byte).member("hash", to_hex(chunk.hash));
  if (!chunk.heading.empty()) out.member("heading", chunk.heading);
  out.end_object();
}

}  // namespace

Result<Answer> corpus_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  ASSIGN_OR_RETURN(const auto rows,
                   call.reader->corpora(call.caller.admin ? std::nullopt : std::optional(call.caller.actor), true));
  json::Writer out;
  out.begin_object().key("corpora").begin_array();
  for (const store::CorpusRow& row : rows) {
    out.begin_object()
        .member("corpus", row.corpus)
        .member("owner", row.owner)
        .member("documents", row.documents)
        .member("chunks", row.chunks);
    out.member("first_seq", row.first_seq).member("last_seq", row.last_seq).end_object();
  }
  return Answer(Reply{std::move(out.end_array().end_object()).text(), {}});
}

Result<Answer> document_get(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const store::DocumentRow row, revision_of(call, "revision"));
  ASSIGN_OR_RETURN(const auto chunks, call.reader->chunks_of(row));
  json::Writer out;
  out.begin_object().key("document");
  write_document(out, row);
  out.key("chunks").begin_array();
  std::size_t written = 0;
  for (; written < chunks.size() && out.text().size() < limits::page_bytes_max; ++written)
    write_chunk(out, row, chunks[written]);
  out.end_array();
  if (written < chunks.size()) out.member("more_chunks", chunks.size() - written);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

Result<Answer> document_list(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const store::CorpusRow corpus, corpus_of(call));
  const std::size_t limit = limit_of(call.params);
  ASSIGN_OR_RETURN(const auto rows,
                   call.reader->documents(corpus.corpus, call.params["cursor"].as_string(), limit + 1));
  RETURN_IF_ERROR(check_recorded(rows));
  ASSIGN_OR_RETURN(const auto carried, carried_of(call, rows));
  json::Writer out;
  out.begin_object().key("documents").begin_array();
  ASSIGN_OR_RETURN(const auto summaries, summaries_of(call, rows));
  const std::size_t count = write_documents(out, rows, limit, carried, summaries);
  out.end_array();
  if (count > 0 && count < rows.size()) out.member("cursor", rows[count - 1].document);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

Result<Answer> document_history(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const store::CorpusRow corpus, corpus_of(call));
  const std::string document = call.params["document"].string_or("");
  const std::size_t limit = limit_of(call.params);
  ASSIGN_OR_RETURN(const auto rows,
                   call.reader->document_history(corpus.corpus, document, call.params["before"].as_int(), limit + 1));
  RETURN_IF_ERROR(check_recorded(rows));
  if (rows.empty() && !call.params["before"]) return no_document(corpus.corpus, document);
  json::Writer out;
  out.begin_object().key("revisions").begin_array();
  ASSIGN_OR_RETURN(const auto summaries, summaries_of(call, rows));
  const std::size_t count = write_documents(out, rows, limit, {}, summaries);
  out.end_array();
  if (count > 0 && count < rows.size()) out.member("before", rows[count - 1].seq);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

// Matches chunks by hash, regardless of their position, to separate the common ones from those of one side.
Result<Answer> document_diff(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const store::DocumentRow right, revision_of(call, "to"));
  std::optional<store::DocumentRow> left;
  if (const auto from = call.params["from"].as_string()) {
    ASSIGN_OR_RETURN(left, call.reader->document_revision(right.corpus, right.document, *from));
    if (!left) return no_document(right.corpus, right.document + " with the revision " + *from);
    RETURN_IF_ERROR(check_recorded({*left}));
  } else {
    ASSIGN_OR_RETURN(const auto before, call.reader->document_history(right.corpus, right.document, right.seq, 1));
    RETURN_IF_ERROR(check_recorded(before));
    if (!before.empty()) left = before.front();
  }
  std::vector<store::ChunkRow> old_chunks;
  if (left) {
    ASSIGN_OR_RETURN(old_chunks, call.reader->chunks_of(*left));
  }
  ASSIGN_OR_RETURN(const auto new_chunks, call.reader->chunks_of(right));
  std::map<Hash, std::int64_t> surplus;  // number of surplus chunks on the left
  for (const store::ChunkRow& chunk : old_chunks) ++surplus[chunk.hash];
  json::Writer added;
  std::size_t added_count = 0, unchanged = 0;
  added.begin_array();
  for (const store::ChunkRow& chunk : new_chunks) {
    if (const auto there = surplus.find(chunk.hash); there != surplus.end() && there->second > 0) {
      --there->second;
      ++unchanged;
    } else if (added_count++ < history_items_max) {
      write_chunk(added, right, chunk);
    }
  }
  json::Writer out;
  out.begin_object().member("corpus", right.corpus).member("document", right.document).member("to", right.revision);
  if (left) out.member("from", left->revision);
  out.key("only_left").begin_array();
  std::size_t removed_count = 0;
  for (auto chunk = old_chunks.rbegin(); chunk != old_chunks.rend();
       ++chunk) {  // the last of equal chunks are the surplus
    const auto there = surplus.find(chunk->hash);
    if (there->second <= 0) continue;
    --there->second;
    if (removed_count++ < history_items_max) write_chunk(out, *left, *chunk);
  }
  out.end_array().raw_member("only_right", added.end_array().text());
  out.member("unchanged", unchanged).member("removed", removed_count).member("added", added_count);
  return Answer(Reply{std::move(out.end_object()).text(), {}});
}

Result<Answer> document_retract(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const std::int64_t known_upto, documents_known_upto(call));
  const json::Value& params = call.params;
  const auto same = [&params](const json::Value& body) {
    return body["corpus"].string_or("") == params["corpus"].string_or("") &&
           body["document"].string_or("") == params["document"].string_or("") &&
           body["reason"].string_or("") == params["reason"].string_or("") &&
           (!params["base"] || body["revision"].string_or("") == params["base"].string_or(""));
  };
  ASSIGN_OR_RETURN(auto first, first_answer(call, "document.retract", same, {"corpus", "document", "revision"}));
  if (first) return Answer(*std::move(first));
  ASSIGN_OR_RETURN(const store::CorpusRow corpus, corpus_of(call));
  const std::string document = params["document"].string_or("");
  if (params["erase"].as_bool().value_or(false)) return erase_document(call, corpus.corpus, document);
  ASSIGN_OR_RETURN(const auto current, call.reader->document(corpus.corpus, document, std::nullopt));
  if (!current) return no_current_document(call, corpus.corpus, document);
  RETURN_IF_ERROR(check_recorded({*current}));
  const store::DocumentRow& row = *current;
  if (const auto base = call.params["base"].as_string(); base && *base != row.revision) {
    return Error(Errc::conflict,
                 fmt::format("VERSION_MISMATCH: {}/{} is at revision {}, not at {}. Read it and try again.", row.corpus,
                             row.document, row.revision, *base));
  }
  std::string uri = evidence::evidence_pointer(row.corpus, row.document, "", "");
  uri.resize(uri.find('#'));
  json::Writer body;
  body.begin_object()
      .member("uri", uri)
      .member("corpus", row.corpus)
      .member("document", row.document)
      .member("revision", row.revision);
  body.member("reason", call.params["reason"].string_or("")).end_object();
  Change change{"document.retract",
                "document.retracted",
                std::move(body).text(),
                {name_of_document(row.corpus, row.document)},
                known_upto};
  return append_change(call, std::move(change), [row](std::int64_t seq) {
    json::Writer out;
    out.begin_object()
        .member("corpus", row.corpus)
        .member("document", row.document)
        .member("revision", row.revision)
        .member("seq", seq)
        .end_object();
    return std::move(out).text();
  });
}

namespace {

// Searches all logs, because a document that was not carried over (yet) must neither return nor be readable there.
Result<std::int64_t> documents_of_source(Call& call, const std::string& source,
                                         const std::optional<std::string>& owner) {
  ASSIGN_OR_RETURN(std::int64_t documents, call.reader->count_of_source(source, owner));
  const std::vector<store::Reader*> readers = readers_of_all(call);
  for (store::Reader* const reader : readers) {
    if (reader == call.reader) continue;
    ASSIGN_OR_RETURN(const auto revoked,
                     store::find_revocation(readers, reader->log_no(), {source}, owner.value_or("")));
    if (revoked) continue;
    ASSIGN_OR_RETURN(const std::int64_t left, reader->count_of_source(source, owner, call.reader->log_no()));
    documents += left;
  }
  return documents;
}

// Returns the error for a source without current documents: revoked already, or unknown. An owner does not learn of
// other users' revocations.
Error no_source(Call& call, const std::string& source, const std::optional<std::string>& owner) {
  const auto revoked = store::find_revocation_by(readers_of_all(call), source, owner);
  if (!revoked) return revoked.error();
  if (!*revoked)
    return Error(Errc::not_found, "no document comes from the source " + source + ". List the sources: document.list");
  return Error(Errc::not_found,
               fmt::format("the source {} is revoked already, by event {}, and it has no newer document.", source,
                           (*revoked)->seq));
}

}  // namespace

Result<Answer> source_revoke(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  ASSIGN_OR_RETURN(const std::int64_t known_upto, documents_known_upto(call));
  const std::string source = call.params["source"].string_or("");
  const auto same = [&](const json::Value& body) {
    return body["source"].string_or("") == source &&
           body["reason"].string_or("") == call.params["reason"].string_or("");
  };
  ASSIGN_OR_RETURN(auto first, first_answer(call, "source.revoke", same, {"source", "documents"}));
  if (first) return Answer(*std::move(first));
  const auto owner = call.caller.admin ? std::nullopt : std::optional(call.caller.actor);
  ASSIGN_OR_RETURN(const std::int64_t documents, documents_of_source(call, source, owner));
  if (documents == 0) return no_source(call, source, owner);
  json::Writer body;
  body.begin_object().member("source", source);
  if (owner) body.member("owner", *owner);
  body.member("reason", call.params["reason"].string_or("")).member("documents", documents).end_object();
  Change change{"source.revoke", "source.revoked", std::move(body).text(), {name_of_source(source)}, known_upto};
  return append_change(call, std::move(change), [source, documents](std::int64_t seq) {
    json::Writer out;
    out.begin_object().member("source", source).member("documents", documents).member("seq", seq).end_object();
    return std::move(out).text();
  });
}

Result<Answer> feedback_record(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  RETURN_IF_ERROR(call.services.retrieval.documents().wait_for_changes(call.deadline));
  const std::string target = call.params["pointer"].string_or("");
  json::Writer body;
  body.begin_object().member("target", target).member("name", call.params["name"].string_or("relevance"));
  body.raw_member("value", call.params["value"].source()).member("by", call.params["by"].string_or("model"));
  if (const auto comment = call.params["comment"].as_string()) body.member("comment", *comment);
  body.end_object();
  ASSIGN_OR_RETURN(auto first,
                   first_answer(call, "feedback.record",
                                [&](const json::Value& known) { return known.source() == body.text(); }, {"target"}));
  if (first) return Answer(*std::move(first));
  ASSIGN_OR_RETURN(const evidence::Pointer pointer, evidence::parse_pointer(target));
  if (pointer.kind != evidence::PointerKind::evidence || pointer.revision.empty()) {
    return Error(Errc::invalid_argument, "feedback is about a card: an ev:// pointer with its revision (?v=…).");
  }
  if (pointer.corpus == store::run_corpus) {
    ASSIGN_OR_RETURN(const auto run, find_run(call, pointer.run_id));
  } else {
    ASSIGN_OR_RETURN(const auto found,
                     call.reader->cited({{pointer.corpus, pointer.document, pointer.revision, pointer.seq}}));
    if (found.front().owner.empty() || !may_see_corpus(call.caller, found.front().owner) || !found.front().document) {
      return Error(Errc::not_found, "no such card: " + target);
    }
  }
  return append_change(call, {"feedback.record", "feedback.recorded", std::move(body).text()},
                       [target](std::int64_t seq) {
                         json::Writer out;
                         out.begin_object().member("pointer", target).member("seq", seq).end_object();
                         return std::move(out).text();
                       });
}

}  // namespace muniment::gateway::methods
