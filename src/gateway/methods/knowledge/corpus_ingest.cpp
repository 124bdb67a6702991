// corpus.ingest: adds documents to a corpus. Their bytes are stored as artifacts of the run _log (the texts of one
// request form one artifact, and each document is a span of it). Each new revision is one document.revised event; the
// whole request is one commit. An unchanged document is not written again.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/json/json_lists.hpp"
#include "base/limits.hpp"
#include "base/process/failpoint.hpp"
#include "evidence/pointer.hpp"
#include "gateway/access.hpp"
#include "gateway/methods/knowledge/artifact_rows.hpp"
#include "gateway/methods/knowledge/cloud.hpp"
#include "gateway/methods/knowledge/questions.hpp"
#include "gateway/methods/methods.hpp"
#include "gateway/read/corpora.hpp"
#include "gateway/read/index_wait.hpp"
#include "gateway/read/pointing.hpp"
#include "gateway/services.hpp"
#include "retrieval/corpus/ingest.hpp"
#include "retrieval/plan/markup.hpp"
#include "retrieval/service.hpp"
#include "store/logs/revocations.hpp"

namespace muniment::gateway::methods {
namespace {

using retrieval::PreparedDocument;

// The progress of one document of the request.
struct Item {
  std::string id;
  std::string bytes;  // empty if they are already an artifact
  std::optional<store::ArtifactRow> artifact;
  std::optional<PreparedDocument> prepared;
  retrieval::DocumentPlace place;
  std::optional<Error> error;
  bool unchanged = false;
  std::string revision;
  std::string replaced;  // revision that it replaces; empty: none
  std::string trust;
  std::vector<std::string> known;  // pointers of other documents that state the same
  std::int64_t chunks = 0;
};

// A client of the native protocol that may have the daemon read files could read them itself. A client of MCP acts for
// a model, which reads only below the folders that its operator named.
Result<std::string> read_path(const Call& call, const std::string& path) {
  constexpr auto bytes_max = static_cast<std::size_t>(limits::document_bytes_max);
  constexpr std::string_view remedy =
      "Send the document as text. The operator can name folders to read: muniment mcp --files FOLDER, or mcp_files.";
  if (call.caller.folders && call.caller.folders->empty())
    return Error(Errc::denied, fmt::format("path: this session reads no files. {}", remedy));
  if (call.caller.folders) {
    auto bytes = read_within(*call.caller.folders, call.services.data_dir, path, bytes_max);
    if (!bytes && bytes.error().code == Errc::denied)
      return Error(Errc::denied, fmt::format("path: {}. {}", bytes.error().message, remedy));
    return bytes;
  }
  if (!call.caller.admin) {
    return Error(
        Errc::denied,
        "path: the daemon reads files only for its own user. Send text, or the artifact_id of an artifact.put.");
  }
  return read_named(path, bytes_max);
}

// Reads a document's bytes from the source that the request names.
Status read_bytes(Call& call, const json::Value& document, Item& item) {
  const int ways = (document["text"] ? 1 : 0) + (document["artifact_id"] ? 1 : 0) + (document["path"] ? 1 : 0);
  if (ways != 1)
    return Error(Errc::invalid_argument, "a document has its bytes in one place: text, artifact_id or path.");
  if (document["text"]) {
    item.bytes = document["text"].string_or("");
    return success();
  }
  if (document["path"]) {
    ASSIGN_OR_RETURN(item.bytes, read_path(call, document["path"].string_or("")));
    return success();
  }
  const auto id = parse_uuid(document["artifact_id"].string_or(""));
  if (!id) return Error(Errc::invalid_argument, "artifact_id: expected a UUID");
  ASSIGN_OR_RETURN(item.artifact, call.reader->artifact(*id));
  const Error none(Errc::not_found, "no artifact " + id->text());
  if (!item.artifact) return none;
  if (item.artifact->run_id == log_run_id ? !call.caller.admin : !find_run(call, item.artifact->run_id).ok())
    return none;
  if (item.artifact->size_bytes > limits::document_bytes_max) {
    return Error(Errc::too_large, fmt::format("the artifact is {} bytes, limit {}. Ingest it in parts.",
                                              item.artifact->size_bytes, limits::document_bytes_max));
  }
  auto bytes = call.services.files.read(store::file_of(*item.artifact), 0, item.artifact->size_bytes);
  if (!bytes) return artifact_damage(*item.artifact, std::move(bytes).error());
  item.bytes = *std::move(bytes);
  return success();
}

constexpr std::string_view trust_order[] = {"trusted", "untrusted", "quarantined"};

std::size_t trust_rank(std::string_view trust) {
  return static_cast<std::size_t>(std::ranges::find(trust_order, trust) - std::begin(trust_order));
}

// A derived document inherits the sources and the trust of the documents it is derived from.
Status inherit(Call& call, retrieval::DocumentToIngest& about) {
  RETURN_IF_ERROR(check_usable(call, about.derived_from));
  std::set<std::string> sources{about.source};
  std::vector<store::Citation> citations;
  for (const std::string& text : about.derived_from) {
    ASSIGN_OR_RETURN(const evidence::Pointer pointer, evidence::parse_pointer(text));
    if (pointer.kind == evidence::PointerKind::evidence && pointer.corpus != "run") {
      citations.push_back({pointer.corpus, pointer.document, pointer.revision, -1});
    } else {
      // A document derived from a run is withdrawn together with the run's passages when run://<run> is revoked.
      const bool of_run = pointer.kind == evidence::PointerKind::evidence;
      sources.insert(of_run ? "run://" + pointer.run_id : std::string(pointer.whole()));
      if (trust_rank(about.trust) < trust_rank("untrusted"))
        about.trust = "untrusted";  // the content of a run is untrusted
    }
  }
  if (!citations.empty()) {
    ASSIGN_OR_RETURN(const auto parents, call.reader->cited(citations));
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (!parents[i].document || !may_see_corpus(call.caller, parents[i].owner)) {
        return Error(Errc::not_found, "derived_from: no document " + citations[i].corpus + "/" + citations[i].document +
                                          " with the revision " + citations[i].revision);
      }
      const store::DocumentRow& parent = *parents[i].document;
      sources.insert(parent.sources.begin(), parent.sources.end());
      sources.insert(parent.source);
      if (trust_rank(parent.trust) > trust_rank(about.trust)) about.trust = parent.trust;
    }
  }
  if (sources.size() > limits::document_sources_max) {
    return Error(Errc::too_large,
                 fmt::format("it has {} sources, limit {}.", sources.size(), limits::document_sources_max));
  }
  about.sources.assign(sources.begin(), sources.end());
  return success();
}

// Returns a time limit: an RFC 3339 time, or a day, which it includes. Errors: invalid_argument if it is over.
Result<std::optional<Time>> limit_of(const Call& call, const json::Value& document, std::string_view name) {
  const auto text = document[name].as_string();
  if (!text) return std::optional<Time>();
  const auto date = retrieval::parse_date(*text);
  if (!date)
    return Error(Errc::invalid_argument,
                 fmt::format("{}: \"{}\" is not a date of the years 1 to 9999. Write 2026-01-31 or an RFC 3339 time.",
                             name, text->substr(0, 60)));
  if (date->end <= call.services.clock.now())
    return Error(Errc::invalid_argument,
                 fmt::format("{}: {} is over. Give a later time, or omit it.", name, text->substr(0, 60)));
  return std::optional(date->end);
}

Result<retrieval::DocumentToIngest> about_of(Call& call, const std::string& corpus, const json::Value& document) {
  retrieval::DocumentToIngest about;
  about.corpus = corpus;
  about.id = document["id"].string_or("");
  about.title = document["title"].string_or("");
  about.mime_type = document["mime_type"].string_or("");
  if (!about.mime_type.empty()) RETURN_IF_ERROR(check_mime_type(about.mime_type));
  about.language = document["language"].string_or(call.params["language"].string_or(""));
  about.tags = strings_of(document["tags"]);
  std::ranges::sort(about.tags);
  about.tags.erase(std::unique(about.tags.begin(), about.tags.end()), about.tags.end());
  about.source_url = document["source_url"].string_or("");
  about.source = document["source"].string_or(about.source_url.empty() ? call.caller.actor : about.source_url);
  about.derived_from = strings_of(document["derived_from"]);
  if (const auto time = document["timestamp"].as_string()) {
    about.timestamp = parse_time(*time);  // the schema guarantees the format
  }
  ASSIGN_OR_RETURN(about.expires_at, limit_of(call, document, "expires_at"));
  ASSIGN_OR_RETURN(about.review_at, limit_of(call, document, "review_at"));
  about.trust = document["trust"].string_or("untrusted");
  about.label = document["revision"].string_or("");
  RETURN_IF_ERROR(inherit(call, about));
  return about;
}

// Returns true if bytes and description are equal.
bool is_same(const store::DocumentRow& row, const PreparedDocument& prepared) {
  const retrieval::DocumentToIngest& about = prepared.about;
  return row.hash == prepared.hash && row.revision == prepared.revision && row.title == about.title &&
         row.tags == about.tags && row.source == about.source && row.sources == about.sources &&
         row.trust == about.trust && row.expires_at == about.expires_at && row.review_at == about.review_at &&
         (about.language.empty() || row.language == about.language) &&
         row.source_url.value_or("") == about.source_url && (!about.timestamp || row.document_time == *about.timestamp);
}

// Checks that the revision on which the sender based its change is the current one.
Status check_base(const std::string& base, const std::string& corpus, const std::string& id,
                  const store::DocumentRow* current) {
  if (current && current->revision == base) return success();
  Error error(Errc::conflict,
              current ? fmt::format("VERSION_MISMATCH: {}/{} is at revision {}, not at {}. Read it and try again.",
                                    corpus, id, current->revision, base)
                      : fmt::format("VERSION_MISMATCH: {}/{} was retracted; the request expected revision {}.", corpus,
                                    id, base));
  if (current) error.pointer = evidence::evidence_pointer(corpus, id, "p0", current->revision);
  return error;
}

// Returns the current documents under the ids of the request, with one statement.
Result<std::map<std::string, store::DocumentRow>> current_of(Call& call, const std::string& corpus) {
  std::vector<std::string> ids;
  for (const json::Value document : call.params["documents"]) {
    std::string id = document["id"].string_or("");
    if (id.find('\0') == std::string::npos) ids.push_back(std::move(id));  // an id with NUL is refused below
  }
  return call.reader->current_documents(corpus, ids);
}

// Checks that the document's event fits its size limit wherever the bytes are stored.
Status check_event_size(const PreparedDocument& prepared) {
  retrieval::DocumentPlace widest;
  widest.start_byte = std::numeric_limits<std::int64_t>::max();
  widest.text_artifact_id = Uuid{};
  if (prepared.chunk_list.size() > retrieval::inline_chunk_list_bytes_max) widest.chunks_artifact_id = Uuid{};
  return events::check_body_size(retrieval::revised_body(prepared, widest).size(), "its event",
                                 "Name fewer or shorter sources, derived_from and tags.");
}

Status prepare(Call& call, const std::string& corpus, const json::Value& document, const store::DocumentRow* current,
               Item& item) {
  ASSIGN_OR_RETURN(retrieval::DocumentToIngest about, about_of(call, corpus, document));
  RETURN_IF_ERROR(read_bytes(call, document, item));
  if (const auto base = document["base"].as_string()) RETURN_IF_ERROR(check_base(*base, corpus, about.id, current));
  const std::string_view named_type = about.mime_type.empty() && item.artifact
                                          ? std::string_view(item.artifact->mime_type)
                                          : std::string_view(about.mime_type);
  ASSIGN_OR_RETURN(retrieval::DocumentText text, read_text(call, item.bytes, about.id, named_type));
  if (about.mime_type.empty()) about.mime_type = item.artifact ? item.artifact->mime_type : mime_type_of(text.format);
  if (current) about.previous = current->revision;
  ASSIGN_OR_RETURN(item.prepared, retrieval::prepare_document(std::move(about), item.bytes, std::move(text)));
  RETURN_IF_ERROR(check_event_size(*item.prepared));
  item.unchanged = current && is_same(*current, *item.prepared);
  item.revision = item.prepared->revision;
  item.trust = item.prepared->about.trust;
  if (item.revision != item.prepared->about.previous) item.replaced = item.prepared->about.previous;
  item.chunks = static_cast<std::int64_t>(item.prepared->text.chunks.size());
  return success();
}

// The files that were written for the request; removed if the request is refused.
struct Written {
  std::vector<store::StoredFile> files;
  std::vector<store::ArtifactRow> rows;

  Result<Uuid> put(Call& call, std::string_view bytes, const std::string& step_id, const std::string& mime_type) {
    const Uuid id = make_uuid_v7(call.services.clock.now());
    ASSIGN_OR_RETURN(store::StoredFile file, call.services.files.store(bytes, log_run_id, step_id, id, mime_type));
    rows.push_back(store::artifact_row(file, log_run_id, step_id, mime_type, "{}"));
    files.push_back(std::move(file));
    return id;
  }
};

// The texts of a request become one artifact; extracted texts and long lists of chunks become separate artifacts.
Status write_files(Call& call, const std::string& corpus, std::vector<Item>& items, Written& written) {
  const std::string step_id = "corpus:" + corpus;
  std::string pack;
  std::vector<Item*> packed;
  for (Item& item : items) {
    if (item.error || item.unchanged) continue;
    if (item.artifact) {
      item.place.artifact_id = item.artifact->artifact_id;
    } else {
      item.place.start_byte = static_cast<std::int64_t>(pack.size());
      pack += item.bytes;
      packed.push_back(&item);
    }
    if (!item.prepared->text.as_is) {
      ASSIGN_OR_RETURN(item.place.text_artifact_id, written.put(call, item.prepared->text.text, step_id, "text/plain"));
    }
    if (item.prepared->chunk_list.size() > retrieval::inline_chunk_list_bytes_max) {
      ASSIGN_OR_RETURN(item.place.chunks_artifact_id,
                       written.put(call, item.prepared->chunk_list, step_id, "application/json"));
    }
  }
  if (packed.empty()) return success();
  const std::string mime_type =
      packed.size() == 1 ? packed.front()->prepared->about.mime_type : "application/octet-stream";
  ASSIGN_OR_RETURN(const Uuid id, written.put(call, pack, step_id, mime_type));
  for (Item* item : packed) item->place.artifact_id = id;
  return success();
}

std::string reply_of(const std::string& corpus, const std::vector<Item>& items, std::int64_t seq) {
  json::Writer out;
  out.begin_object().key("documents").begin_array();
  for (const Item& item : items) {
    if (item.error) continue;
    out.begin_object()
        .member("id", item.id)
        .member("uri", evidence::evidence_pointer(corpus, item.id, "p0", item.revision));
    out.member("revision", item.revision).member("chunks", item.chunks);
    out.member("trust", item.trust);
    if (item.unchanged) out.member("unchanged", true);
    if (!item.replaced.empty())
      out.member("replaces", evidence::evidence_pointer(corpus, item.id, "p0", item.replaced));
    if (!item.known.empty()) out.member("known", item.known);
    out.end_object();
  }
  out.end_array().key("errors").begin_array();
  for (const Item& item : items) {
    if (!item.error) continue;
    out.begin_object()
        .member("id", item.id)
        .member("code", name_of(item.error->code))
        .member("message", item.error->message);
    if (!item.error->pointer.empty())
      out.member(item.error->code == Errc::conflict ? "current" : "pointer", item.error->pointer);
    out.end_object();
  }
  out.end_array().member("seq", seq);
  return std::move(out.end_object()).text();
}

// Resolves the unreadable artifacts again: if a critical pointer depends on one, its run stops and the request fails.
// Returns the events to record for the others. Adds the artifacts that are intact at the second read to `again`.
Result<evidence::Outcome> resolve_damage(Call& call, const std::vector<Item>& items, std::set<std::string>& again) {
  std::set<std::string> pointers;
  for (const Item& item : items) {
    if (item.error && is_halting(item.error->code) && !item.error->pointer.empty())
      pointers.insert(item.error->pointer);
  }
  if (pointers.empty()) return evidence::Outcome();
  ASSIGN_OR_RETURN(evidence::Outcome outcome,
                   resolve_pointers(call, {pointers.begin(), pointers.end()}, {.depth = evidence::Depth::whole}));
  for (const evidence::Outcome::Item& item : outcome.items) {
    if (!item.resolution.damaged()) again.insert(item.resolution.pointer);
  }
  return outcome;
}

// Appends the artifacts and then the document events in one commit.
Answer append(Call& call, const std::string& corpus, std::vector<Item> items, Written written,
              const evidence::Outcome& met, std::vector<std::string> names, std::int64_t known_upto) {
  const std::shared_ptr<store::Run> log = call.services.runs.find(log_run_id);
  PendingAppend append;
  append.request.actor = call.caller.actor;
  for (const store::ArtifactRow& row : written.rows) {
    append.request.rows.push_back({append.request.events.size(), row});
    append.request.events.push_back(
        {log, make_event(call, *log, "artifact.stored", store::artifact_stored_body(row), row.step_id), false});
  }
  append.request.names = std::move(names);
  append.request.names_known_upto = known_upto;
  for (const Item& item : items) {
    if (item.error || item.unchanged) continue;
    append.request.names.push_back(name_of_document(corpus, item.id));
    for (const std::string& source : item.prepared->about.sources)
      append.request.names_relied_on.push_back(name_of_source(source));
    for (const std::string& parent : item.prepared->about.derived_from) {
      const auto pointer = evidence::parse_pointer(parent);
      if (pointer) append.request.names_relied_on.push_back(name_of_document(pointer->corpus, pointer->document));
    }
    append.request.events.push_back(
        {log, make_event(call, *log, "document.revised", retrieval::revised_body(*item.prepared, item.place)), false});
  }
  const std::size_t last = append.request.events.size() - 1;
  append.request.events.insert(append.request.events.end(), met.events.begin(),
                               met.events.end());  // the names belong to the run of the first event
  for (Item& item : items) {                       // the reply needs only a few members
    item.bytes.clear();
    item.prepared.reset();
  }
  const bool wait = call.params["wait"].as_bool().value_or(false);
  append.finish_on_worker = wait;
  append.finish = [corpus, items = std::move(items), rows = written.rows, wait, last, deadline = call.deadline](
                      Services& services, const std::vector<events::Receipt>& receipts) -> Result<Reply> {
    for (const store::ArtifactRow& row : rows) services.files.committed(row.artifact_id);
    const std::int64_t seq = receipts[last].seq;
    services.retrieval.documents().changed_at(seq);
    if (wait) RETURN_IF_ERROR(wait_until_searchable(services, seq, deadline));
    return Reply{reply_of(corpus, items, seq), {}};
  };
  append.refused = [files = std::move(written.files)](Services& services, Error error) -> Result<Reply> {
    note_moved_on(services, error);
    for (const store::StoredFile& file : files) services.files.abandon(file);
    return error;
  };
  return append;
}

// Refuses documents of a source that was revoked for this owner, in this log or an earlier one. Errors: unavailable.
Status refuse_revoked(Call& call, std::string_view owner, std::vector<Item>& items) {
  const std::vector<store::Reader*> readers = readers_of_all(call);
  const auto revoked_of = [&](const std::vector<std::string>& sources) {
    return store::find_revocation(readers, 0, sources, owner);
  };
  std::set<std::string> all;
  for (const Item& item : items) {
    if (!item.error) all.insert(item.prepared->about.sources.begin(), item.prepared->about.sources.end());
  }
  ASSIGN_OR_RETURN(const auto any, revoked_of({all.begin(), all.end()}));
  if (!any) return success();
  for (Item& item : items) {
    if (item.error) continue;
    ASSIGN_OR_RETURN(const auto revoked, revoked_of(item.prepared->about.sources));
    if (!revoked) continue;
    item.error = Error(Errc::not_found, fmt::format("NOT_FOUND, its source {} was revoked (seq {} of log {}). Omit it.",
                                                    revoked->source, revoked->seq, revoked->log_no));
  }
  return success();
}

// Finds other documents of the corpus that state the same as the request's only document, if the request asks for them
// and the document is a fact.
Status find_known(Call& call, std::vector<Item>& items) {
  if (!call.params["known"].as_bool().value_or(false) || items.size() != 1 || items.front().error) return success();
  Item& item = items.front();
  if (item.chunks == 0) {
    item.error = Error(Errc::invalid_argument, "the fact has no text. To remove a fact: muniment forget SUBJECT");
    return success();
  }
  const auto search = retrieval::search_of_fact(*item.prepared, item.bytes);
  if (!search) return success();
  ASSIGN_OR_RETURN(const retrieval::Scope scope, scope_of(call));
  const retrieval::Retriever& retriever = call.services.retrieval.retriever();
  ASSIGN_OR_RETURN(const auto plan,
                   retriever.plan(search->question, scope, *call.reader, call.services.tail, call.deadline));
  const auto found = retriever.answer(plan, *call.reader, call.deadline);
  if (!found) return success();  // such as too many queries: the fact is stored without this note
  item.known = equal_facts(*search, found->cards);
  return success();
}

// An id may occur once, because the order of two revisions in one request would be undefined.
void refuse_repeated(std::vector<Item>& items) {
  std::set<std::string> seen;
  for (Item& item : items) {
    if (!item.error && !seen.insert(item.id).second)
      item.error = Error(Errc::invalid_argument, "the id occurs twice in this request.");
  }
}

}  // namespace

Result<Answer> corpus_ingest(Call& call) {
  // Otherwise a client could present a text as the reply of a service.
  if (call.params["corpus"].string_or("") == cloud_corpus)
    return Error(Errc::denied,
                 fmt::format("the corpus {} holds replies of cloud services. Choose another name.", cloud_corpus));
  return ingest_documents(call);
}

Result<Answer> ingest_documents(Call& call) {
  if (!call.reader) return Answer(NeedsWorker{});
  const std::string corpus = call.params["corpus"].string_or("");
  RETURN_IF_ERROR(retrieval::check_corpus_name(corpus));
  RETURN_IF_ERROR(begin_referring(call));
  ASSIGN_OR_RETURN(const std::int64_t known_upto, documents_known_upto(call));
  ASSIGN_OR_RETURN(const auto known, call.reader->corpus(corpus));
  if (known && !may_see_corpus(call.caller, known->owner)) return taken("corpus", corpus);
  // A corpus that is carried over from a closed log keeps its owner even before its first document is copied.
  for (std::size_t i = 0; i < call.services.earlier.size() && !known; ++i) {
    ASSIGN_OR_RETURN(const auto before, call.reader->of(call.services.earlier[i]->place).corpus(corpus));
    if (before && before->owner != call.caller.actor) return taken("corpus", corpus);
  }
  const std::string owner = known ? known->owner : call.caller.actor;
  ASSIGN_OR_RETURN(const auto current, current_of(call, corpus));
  std::vector<Item> items;
  const auto prepare_one = [&](const json::Value& document, Item& item) -> Status {
    const auto found = current.find(item.id);
    Status prepared = prepare(call, corpus, document, found == current.end() ? nullptr : &found->second, item);
    if (!prepared && is_transient(prepared.error().code)) return prepared;
    if (!prepared) item.error = std::move(prepared).error();
    return success();
  };
  for (const json::Value document : call.params["documents"]) {
    Item& item = items.emplace_back();
    item.id = document["id"].string_or("");
    RETURN_IF_ERROR(prepare_one(document, item));
  }
  std::set<std::string> again;
  ASSIGN_OR_RETURN(const evidence::Outcome met, resolve_damage(call, items, again));
  if (!met.halts.empty()) return stop(met, nullptr);
  std::size_t place = 0;
  for (const json::Value document : call.params["documents"]) {
    Item& item = items[place++];
    if (!item.error || !again.contains(item.error->pointer)) continue;
    item.error.reset();
    RETURN_IF_ERROR(prepare_one(document, item));
  }
  RETURN_IF_ERROR(refuse_revoked(call, owner, items));
  refuse_repeated(items);
  RETURN_IF_ERROR(find_known(call, items));
  const bool nothing_new = std::ranges::all_of(items, [](const Item& item) { return item.error || item.unchanged; });
  if (nothing_new) {
    Reply reply{reply_of(corpus, items, known ? known->last_seq : -1), {}};
    if (met.events.empty()) return Answer(std::move(reply));
    return Answer(append_outcome(met, [reply = std::move(reply)]() -> Result<Reply> { return reply; }));
  }
  Written written;
  if (Status files = write_files(call, corpus, items, written); !files) {
    for (const store::StoredFile& file : written.files) call.services.files.abandon(file);
    return std::move(files).error();
  }
  FAILPOINT("documents.looked_at");
  std::vector<std::string> names;
  if (!known) names.push_back(name_of_corpus(corpus));
  return append(call, corpus, std::move(items), std::move(written), met, std::move(names), known_upto);
}

}  // namespace muniment::gateway::methods
