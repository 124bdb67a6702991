// Copies the documents of closed logs into the current log.
#include "daemon/document_carrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/log.hpp"
#include "gateway/read/corpora.hpp"
#include "store/append/own_event.hpp"
#include "store/files/artifact_row.hpp"

namespace muniment::daemon {
namespace {

constexpr std::size_t page_documents = 64;
constexpr std::chrono::seconds tables_at_most{30}, carried_at_most{60};
constexpr std::chrono::seconds retry_pause_of_carrier{2};

std::string done_mark(const std::string& folder) { return folder + "/carried"; }

// Returns whether to skip the document. A shortage of resources is temporary; any other error would recur and must not
// block the following documents.
bool stays_behind(const Error& error) {
  return !is_transient(error.code) && error.conflict != AppendConflict::moved_on;
}

bool names_bytes(std::string_view member) { return member.ends_with("artifact_id"); }

// Returns the document's document.revised with new places for its bytes (`placed`, by member) and with its origin.
std::string carried_body(const json::Document& old, const events::Event& event, std::int16_t log_no,
                         const store::DocumentRow& row, const std::map<std::string, Uuid, std::less<>>& placed) {
  json::Writer body;
  body.begin_object();
  for (const json::Value member : old.root()) {
    const std::string name(member.key());
    if (name == "previous" || name == "start_byte" || name == "timestamp" || name == "carried_from") continue;
    const auto at = placed.find(name);
    if (at != placed.end()) body.member(name, at->second.text());
    if (at == placed.end()) body.raw_member(name, member.source());
  }
  body.member("start_byte", 0).member("timestamp", format_time(row.document_time));
  body.key("carried_from")
      .begin_object()
      .member("log_no", int{log_no})
      .member("seq", row.seq)
      .member("actor", old.root()["carried_from"]["actor"].string_or(event.actor))
      .end_object();
  return std::move(body.end_object()).text();
}

Status check_size(std::string_view body) {
  return events::check_body_size(body.size(), "its event",
                                 "Ingest it again, with fewer or shorter sources, derived_from and tags");
}

}  // namespace

// The files written for one document until its event is committed.
struct DocumentCarrier::Copy {
  std::vector<store::StoredFile> files;
  std::vector<store::ArtifactRow> rows;

  Result<Uuid> put(const CarrierSurroundings& around, std::string_view bytes, const std::string& corpus,
                   const std::string& mime_type) {
    const Uuid id = make_uuid_v7(around.clock.now());
    const std::string step_id = "corpus:" + corpus;
    ASSIGN_OR_RETURN(store::StoredFile file, around.files.store(bytes, log_run_id, step_id, id, mime_type));
    rows.push_back(store::artifact_row(file, log_run_id, step_id, mime_type, "{}"));
    files.push_back(std::move(file));
    return id;
  }
};

DocumentCarrier::DocumentCarrier(store::LogPlace place, std::string folder, const store::EarlierLogs& logs,
                                 const CarrierSurroundings& around)
    : folder_(std::move(folder)), logs_(logs), around_(around), reader_(std::move(place)) {}

void DocumentCarrier::start() {
  if (logs_.empty() || read_file(done_mark(folder_), 64)) return;
  set_note("documents of the restored log are being carried over");
  worker_.start("carrier", [this] { work(); });
}

std::string DocumentCarrier::note() const {
  const auto lock = worker_.lock();
  return note_;
}

void DocumentCarrier::set_note(std::string text) {
  const auto lock = worker_.lock();
  note_ = std::move(text);
}

void DocumentCarrier::work() {
  while (!worker_.stopping()) {
    const Status done = carry_all();
    if (worker_.stopping()) return;
    if (done) {
      log_info("the documents of the restored log are carried over", {{"documents", carried_}, {"left", left_}});
      if (left_ == 0) {
        if (const Status marked = write_file_durably(done_mark(folder_), "all\n"); !marked)
          log_warning("carrying documents", {{"error", marked.error().message}});
      }
      return set_note(
          left_ == 0 ? std::string()
                     : fmt::format("{} documents of the restored log were not copied; the daemon's log has the reasons",
                                   left_));
    }
    set_note(fmt::format("documents of the restored log are being carried over, {} so far: {}", carried_,
                         done.error().message));
    auto lock = worker_.lock();
    worker_.pause(lock, retry_pause_of_carrier);
  }
}

Status DocumentCarrier::carry_all() {
  left_ = 0;
  for (std::size_t log = 0; log < logs_.size(); ++log) {
    RETURN_IF_ERROR(check_followed(*logs_[log]));
    ASSIGN_OR_RETURN(const auto corpora, reader_.of(logs_[log]->place).corpora(std::nullopt, false));
    for (const store::CorpusRow& corpus : corpora) {
      if (corpus.corpus != store::run_corpus) RETURN_IF_ERROR(carry_corpus(log, corpus));
    }
  }
  return success();
}

// Tables that are behind their log lack the last retractions, revocations and erasures.
Status DocumentCarrier::check_followed(const store::EarlierLog& log) {
  ASSIGN_OR_RETURN(const std::int64_t position, reader_.of(log.place).follower_position("document"));
  if (position >= log.size) return success();
  return Error(
      Errc::unavailable,
      fmt::format(
          "the tables of log {} include {} of its {} events. Documents are carried over once they include all; each start retries. "
          "The daemon's log has the reason",
          log.place.log_no, position, log.size));
}

// Reads the names of the documents that the current log has.
Status DocumentCarrier::look() {
  RETURN_IF_ERROR(around_.documents.wait_for_changes(std::chrono::steady_clock::now() + tables_at_most));
  known_upto_ = around_.documents.next_seq();
  return success();
}

Status DocumentCarrier::carry_corpus(std::size_t log, const store::CorpusRow& corpus) {
  std::optional<std::string> after;
  while (!worker_.stopping()) {
    ASSIGN_OR_RETURN(const auto page, reader_.of(logs_[log]->place).documents(corpus.corpus, after, page_documents));
    RETURN_IF_ERROR(look());
    for (const store::DocumentRow& row : page) {
      if (worker_.stopping()) return success();
      auto carried = carry(log, corpus, row);
      if (!carried && carried.error().conflict ==
                          // A concurrent request changed the document: decide again from its current state.
                          AppendConflict::moved_on) {
        around_.documents.changed_at(around_.appender.status().size - 1);
        RETURN_IF_ERROR(look());
        carried = carry(log, corpus, row);
      }
      if (!carried && stays_behind(carried.error())) {
        ++left_;
        log_warning("a document of the restored log was not copied", {{"log_no", logs_[log]->place.log_no},
                                                                      {"corpus", row.corpus},
                                                                      {"document", row.document},
                                                                      {"error", carried.error().message}});
        continue;
      }
      if (!carried) return std::move(carried).error();
      if (*carried)
        set_note(fmt::format("documents of the restored log are being carried over, {} so far", ++carried_));
    }
    if (page.size() < page_documents) return success();
    after = page.back().document;
  }
  return success();
}

// Returns true if no later log ever had the document and its source was not revoked. Errors: conflict if the corpus now
// belongs to another user.
Result<bool> DocumentCarrier::is_wanted(std::size_t log, const store::CorpusRow& corpus,
                                        const store::DocumentRow& row) {
  ASSIGN_OR_RETURN(const auto there, reader_.corpus(corpus.corpus));
  ASSIGN_OR_RETURN(auto history, reader_.document_history(row.corpus, row.document, std::nullopt, 1));
  for (std::size_t newer = 0; newer < log && history.empty(); ++newer) {
    ASSIGN_OR_RETURN(history,
                     reader_.of(logs_[newer]->place).document_history(row.corpus, row.document, std::nullopt, 1));
  }
  if (!history.empty()) return false;
  std::vector<std::string> sources = row.sources;
  sources.push_back(row.source);
  std::vector<store::Reader*> readers{&reader_};
  for (std::size_t newer = 0; newer < log; ++newer) readers.push_back(&reader_.of(logs_[newer]->place));
  ASSIGN_OR_RETURN(const auto revoked,
                   store::find_revocation(readers, logs_[log]->place.log_no, sources, corpus.owner));
  if (revoked) return false;
  if (there && there->owner != corpus.owner)
    return Error(Errc::conflict,
                 fmt::format("the corpus belongs to {} now, and belonged to {}", there->owner, corpus.owner));
  return true;
}

// Returns false if the document is not wanted. Errors: corrupt and not_found for bytes that differ from the log.
Result<bool> DocumentCarrier::carry(std::size_t log, const store::CorpusRow& corpus, const store::DocumentRow& row) {
  ASSIGN_OR_RETURN(const bool wanted, is_wanted(log, corpus, row));
  if (!wanted) return false;
  Copy copy;
  auto request = request_of(log, corpus, row, copy);
  Result<std::vector<events::Receipt>> receipts =
      request ? store::append_and_wait(around_.appender, *std::move(request), carried_at_most)
              : Result<std::vector<events::Receipt>>(std::move(request).error());
  if (!receipts) {
    // If the outcome is unknown, the next start determines whether the files are needed.
    if (receipts.error().outcome.empty())
      std::ranges::for_each(copy.files, [&](const store::StoredFile& file) { around_.files.abandon(file); });
    return std::move(receipts).error();
  }
  for (const store::ArtifactRow& artifact : copy.rows) around_.files.committed(artifact.artifact_id);
  around_.documents.changed_at(receipts->back().seq);
  return true;
}

Result<store::AppendRequest> DocumentCarrier::request_of(std::size_t log, const store::CorpusRow& corpus,
                                                         const store::DocumentRow& row, Copy& copy) {
  store::Reader& old = reader_.of(logs_[log]->place);
  ASSIGN_OR_RETURN(const auto event, old.event_at(row.seq));
  if (!event || !event->body) return Error(Errc::not_found, fmt::format("its event {} has no body", row.seq));
  ASSIGN_OR_RETURN(const json::Document parsed, json::parse(*event->body));
  std::map<std::string, Uuid, std::less<>> placed;
  for (const json::Value member : parsed.root()) {
    if (names_bytes(member.key())) placed[std::string(member.key())];
  }
  // This check precedes the writing of files; all ids have the same length, so the size is known.
  RETURN_IF_ERROR(check_size(carried_body(parsed, *event, logs_[log]->place.log_no, row, placed)));
  for (auto& [name, copied] : placed) {
    const auto id = parse_uuid(parsed.root()[name].string_or(""));
    if (!id) return Error(Errc::corrupt, fmt::format("its event names no {}", name));
    ASSIGN_OR_RETURN(const auto artifact, old.artifact(*id));
    if (!artifact) return Error(Errc::not_found, "no artifact " + id->text());
    const bool own = name == "artifact_id";  // other artifacts may also hold bytes of other documents
    ASSIGN_OR_RETURN(const std::string bytes, around_.files.read(store::file_of(*artifact), own ? row.start_byte : 0,
                                                                 own ? row.size_bytes : artifact->size_bytes));
    ASSIGN_OR_RETURN(copied, copy.put(around_, bytes, row.corpus, own ? row.mime_type : artifact->mime_type));
  }
  store::AppendRequest request;
  request.actor = corpus.owner;
  const auto log_run = around_.runs.find(log_run_id);
  for (const store::ArtifactRow& artifact : copy.rows) {
    request.rows.push_back({request.events.size(), artifact});
    request.events.push_back(
        {log_run, store::own_event("artifact.stored", store::artifact_stored_body(artifact), around_.clock.now()),
         false});
    request.events.back().event.step_id = artifact.step_id;
  }
  request.events.push_back(
      {log_run,
       store::own_event("document.revised", carried_body(parsed, *event, logs_[log]->place.log_no, row, placed),
                        around_.clock.now()),
       false});
  request.events.back().event.origin = events::Origin::imported;
  request.names = {gateway::name_of_document(row.corpus, row.document), gateway::name_of_corpus(row.corpus),
                   gateway::name_of_source(row.source)};
  for (const std::string& source : row.sources) request.names.push_back(gateway::name_of_source(source));
  request.names_known_upto = known_upto_;
  return request;
}

}  // namespace muniment::daemon
