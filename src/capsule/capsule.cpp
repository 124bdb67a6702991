// Writes to a capsule.
#include "capsule/capsule.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/child/tool_child.hpp"

namespace muniment::capsule {
namespace {

constexpr std::chrono::minutes reading_patience{2};

Result<retrieval::DocumentText> text_of_document(std::string_view bytes, std::string_view name,
                                                 std::string_view mime_type) {
  if (retrieval::looks_plain(bytes, name, mime_type)) return retrieval::read_document(bytes, name, mime_type);
  return retrieval::read_document_apart(bytes, name, mime_type, std::chrono::steady_clock::now() + reading_patience);
}

// Returns true if bytes and description are equal.
bool is_same(const store::DocumentRow& row, const retrieval::PreparedDocument& prepared) {
  const retrieval::DocumentToIngest& about = prepared.about;
  return row.hash == prepared.hash && row.revision == prepared.revision && row.title == about.title &&
         row.tags == about.tags && row.source == about.source && row.trust == about.trust &&
         row.expires_at == about.expires_at && row.review_at == about.review_at &&
         (about.language.empty() || row.language == about.language) &&
         row.source_url.value_or("") == about.source_url && (!about.timestamp || row.document_time == *about.timestamp);
}

}  // namespace

Status check_relative(std::string_view document) {
  const Error bad(Errc::invalid_argument,
                  "a document's id is a relative path without empty parts, \".\" and \"..\", such as notes/a.md.");
  for (std::size_t at = 0; at <= document.size();) {
    const std::size_t end = std::min(document.find('/', at), document.size());
    const std::string_view part = document.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return bad;
    at = end + 1;
  }
  return success();
}

Result<std::unique_ptr<Capsule>> Capsule::open(const std::string& path) {
  std::unique_ptr<Capsule> capsule(new Capsule(path));
  RETURN_IF_ERROR(capsule->reopen(Access::read));
  return capsule;
}

Result<std::unique_ptr<Capsule>> Capsule::open_or_create(const std::string& path) {
  auto capsule = open(path);
  if (!capsule && capsule.error().code == Errc::not_found) return std::unique_ptr<Capsule>(new Capsule(path));
  return capsule;
}

Status Capsule::reopen(Access access) {
  index_.reset();
  file_.reset();
  pending_.clear();
  pending_known_ = false;
  ASSIGN_OR_RETURN(file_, CapsuleFile::open(path_, access));
  ASSIGN_OR_RETURN(index_, Index::open(*file_));
  writes_ = access == Access::write;
  return success();
}

bool Capsule::is_stale() const {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) return !is_new();
  struct stat opened {};
  if (is_new() || writes_ || ::fstat(file_->descriptor(), &opened) != 0) return true;
  return now.st_dev != opened.st_dev || now.st_ino != opened.st_ino ||
         static_cast<std::uint64_t>(now.st_size) != file_->end() + file_->torn_bytes();
}

Status Capsule::want_writer() {
  if (writes_) return success();
  if (is_new()) RETURN_IF_ERROR(CapsuleFile::create(path_, CapsuleFile::new_header()));
  return reopen(Access::write);
}

Result<std::vector<Revision>> Capsule::history(const std::string& corpus, const std::string& document) {
  const std::string uri = uri_of(corpus, document);
  std::vector<Revision> out;
  for (const std::int64_t number : index_->revisions(uri)) {
    ASSIGN_OR_RETURN(Revision revision, index_->revision(number));
    if (revision.row.corpus == corpus && revision.row.document == document) out.push_back(std::move(revision));
  }
  for (std::int64_t number = index_->indexed(); number < index_->frames(); ++number) {
    const auto type = static_cast<FrameType>(index_->row(number).type);
    if (type != FrameType::document && type != FrameType::retraction) continue;
    ASSIGN_OR_RETURN(const Frame frame, index_->frame(number));
    if (type == FrameType::document) {
      ASSIGN_OR_RETURN(Revision revision, revision_of(frame));
      if (revision.row.corpus != corpus || revision.row.document != document) continue;
      if (!out.empty() && out.back().row.current()) {
        out.back().row.valid_to = number;
        out.back().row.ended_by = "revised";
      }
      out.push_back(std::move(revision));
    } else if (const auto about = json::parse(frame.about);
               about && about->root()["uri"].string_or("") == uri && !out.empty() && out.back().row.current()) {
      out.back().row.valid_to = number;
      out.back().row.ended_by = "retracted";
    }
  }
  return out;
}

// Keeps the changes of the frames after the indexed ones in memory, since many documents are ingested in a row.
Status Capsule::read_pending() {
  if (pending_known_) return success();
  for (std::int64_t number = index_->indexed(); number < index_->frames(); ++number) {
    const auto type = static_cast<FrameType>(index_->row(number).type);
    if (type != FrameType::document && type != FrameType::retraction) continue;
    ASSIGN_OR_RETURN(const Frame frame, index_->frame(number));
    RETURN_IF_ERROR(note_change(frame));
  }
  pending_known_ = true;
  return success();
}

Status Capsule::note_change(const Frame& frame) {
  if (frame.header.type == FrameType::document) {
    ASSIGN_OR_RETURN(Revision revision, revision_of(frame));
    const std::string uri = uri_of(revision.row.corpus, revision.row.document);
    pending_[uri] = std::move(revision.row);
  } else if (const auto about = json::parse(frame.about)) {
    pending_[about->root()["uri"].string_or("")].reset();
  }
  return success();
}

Result<std::optional<store::DocumentRow>> Capsule::current(const std::string& corpus, const std::string& document) {
  RETURN_IF_ERROR(read_pending());
  const std::string uri = uri_of(corpus, document);
  if (const auto known = pending_.find(uri); known != pending_.end()) return known->second;
  for (const std::int64_t number : index_->revisions(uri)) {
    if (index_->row(number).valid_to != retrieval::still_valid) continue;
    ASSIGN_OR_RETURN(Revision revision, index_->revision(number));
    if (revision.row.corpus == corpus && revision.row.document == document)
      return std::optional(std::move(revision.row));
  }
  return std::optional<store::DocumentRow>();
}

Result<Frame> Capsule::append(FrameType type, std::string_view about, std::string_view body) {
  ASSIGN_OR_RETURN(Frame frame, file_->append_now(type, about, body));
  index_->note_appended(frame);
  frame.about = about;
  frame.body = body;
  if (type == FrameType::document || type == FrameType::retraction) RETURN_IF_ERROR(note_change(frame));
  return frame;
}

// After a failure, the frames of this request are forgotten.
Status Capsule::commit() {
  Status done = file_->commit();
  if (!done) RETURN_IF_ERROR(reopen(Access::write));
  return done;
}

Status Capsule::each_current(std::int64_t from, const std::function<Result<bool>(const Revision&)>& visit) {
  for (std::int64_t number = std::max<std::int64_t>(from, 0); number < index_->indexed(); ++number) {
    const FrameRow& row = index_->row(number);
    if (row.type != static_cast<std::uint32_t>(FrameType::document) || row.valid_to != retrieval::still_valid) continue;
    ASSIGN_OR_RETURN(const Revision revision, index_->revision(number));
    ASSIGN_OR_RETURN(const bool more, visit(revision));
    if (!more) return success();
  }
  return success();
}

Result<Ingested> Capsule::ingest_one(retrieval::DocumentToIngest about, std::string_view bytes, bool known) {
  RETURN_IF_ERROR(check_relative(about.id));
  RETURN_IF_ERROR(retrieval::check_corpus_name(about.corpus));
  if (static_cast<std::int64_t>(bytes.size()) > limits::document_bytes_max)
    return Error(Errc::too_large, fmt::format("{} is {} bytes, limit {}. Ingest it in parts.", about.id, bytes.size(),
                                              limits::document_bytes_max));
  ASSIGN_OR_RETURN(retrieval::DocumentText text, text_of_document(bytes, about.id, about.mime_type));
  if (about.mime_type.empty()) about.mime_type = mime_type_of(text.format);
  ASSIGN_OR_RETURN(const auto before, current(about.corpus, about.id));
  if (before) about.previous = before->revision;
  about.sources = {about.source};
  ASSIGN_OR_RETURN(const retrieval::PreparedDocument prepared,
                   retrieval::prepare_document(std::move(about), bytes, std::move(text)));
  Ingested out;
  if (known && prepared.text.chunks.empty())
    return Error(Errc::invalid_argument, "the fact has no text. To remove a fact: muniment forget SUBJECT");
  if (const auto search = known ? search_of_fact(prepared, bytes) : std::nullopt) {
    ASSIGN_OR_RETURN(const retrieval::Answer found, answer(search->question));
    out.known = equal_facts(*search, found.cards);
  }
  out.id = prepared.about.id;
  out.revision = prepared.revision;
  out.trust = prepared.about.trust;
  out.chunks = std::ssize(prepared.text.chunks);
  out.unchanged = before && is_same(*before, prepared);
  if (out.unchanged) return out;
  out.replaced = prepared.about.previous;
  const std::string body = prepared.text.as_is ? std::string() : std::string(bytes) + prepared.text.text;
  retrieval::DocumentPlace place;
  place.in_frame = true;
  ASSIGN_OR_RETURN(const Frame frame, append(FrameType::document, retrieval::revised_body(prepared, place),
                                             prepared.text.as_is ? bytes : std::string_view(body)));
  out.seq = static_cast<std::int64_t>(frame.header.number);
  return out;
}

Result<std::vector<Ingested>> Capsule::ingest(std::vector<retrieval::DocumentToIngest> documents,
                                              const std::vector<std::string>& bytes, bool known) {
  RETURN_IF_ERROR(want_writer());
  std::vector<Ingested> out;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string id = documents[i].id;
    auto done = ingest_one(std::move(documents[i]), bytes[i], known && documents.size() == 1);
    if (!done && done.error().code != Errc::invalid_argument && done.error().code != Errc::too_large &&
        done.error().code != Errc::corrupt && done.error().code != Errc::denied) {
      RETURN_IF_ERROR(reopen(Access::write));  // without the frames of this request
      return std::move(done).error();
    }
    if (done) {
      out.push_back(*std::move(done));
    } else {
      out.emplace_back().id = id;
      out.back().error = std::move(done).error();
    }
  }
  const bool changed = std::ranges::any_of(out, [](const Ingested& one) { return one.seq >= 0; });
  if (changed) RETURN_IF_ERROR(commit());
  return out;
}

Result<store::DocumentRow> Capsule::retract(const std::string& corpus, const std::string& document,
                                            const std::string& base, const std::string& reason) {
  RETURN_IF_ERROR(want_writer());
  ASSIGN_OR_RETURN(auto found, current(corpus, document));
  if (!found) return Error(Errc::not_found, fmt::format("no current document {} in the corpus {}", document, corpus));
  if (!base.empty() && found->revision != base)
    return Error(Errc::conflict,
                 fmt::format("VERSION_MISMATCH: {}/{} is at revision {}, not at {}. Read it and try again.", corpus,
                             document, found->revision, base));
  json::Writer about;
  about.begin_object().member("uri", uri_of(corpus, document)).member("corpus", corpus).member("document", document);
  about.member("revision", found->revision).member("reason", reason).end_object();
  ASSIGN_OR_RETURN(const Frame frame, append(FrameType::retraction, about.text(), {}));
  RETURN_IF_ERROR(commit());
  found->valid_to = static_cast<std::int64_t>(frame.header.number);
  return *std::move(found);
}

Status Capsule::settle() {
  if (is_new() || index_->unindexed_documents() == 0) return success();
  return compact(Anew::nothing);
}

Status Capsule::compact(Anew anew) {
  RETURN_IF_ERROR(want_writer());
  index_.reset();
  auto done = catch_up(*file_, anew);
  RETURN_IF_ERROR(reopen(Access::write));
  return done ? success() : Status(std::move(done).error());
}

Result<std::int64_t> Capsule::add_frame(FrameType type, std::string_view about, std::string_view body) {
  RETURN_IF_ERROR(want_writer());
  ASSIGN_OR_RETURN(const Frame frame, append(type, about, body));
  RETURN_IF_ERROR(commit());
  return static_cast<std::int64_t>(frame.header.number);
}

Result<std::int64_t> Capsule::give_feedback(std::string_view pointer, double value, std::string_view about) {
  ASSIGN_OR_RETURN(const evidence::Pointer parsed, evidence::parse_pointer(pointer));
  if (is_new() || parsed.kind != evidence::PointerKind::evidence)
    return Error(Errc::not_found, fmt::format("the capsule has no {}", pointer));
  ASSIGN_OR_RETURN(const auto revisions, history(parsed.corpus, parsed.document));
  const bool known = std::ranges::any_of(revisions, [&](const Revision& one) {
    return one.row.revision == parsed.revision && parsed.seq < one.row.chunks;
  });
  if (!known) return Error(Errc::not_found, fmt::format("the capsule has no {}", pointer));
  if (!(value >= -1 && value <= 1)) return Error(Errc::invalid_argument, "value: feedback is from -1 to 1.");
  return add_frame(FrameType::feedback, about, {});
}

std::optional<std::int64_t> Capsule::record_query(const retrieval::Question& question, const retrieval::Answer& answer,
                                                  const std::function<void(json::Writer&)>& drafted,
                                                  std::string_view body) {
  json::Writer about;
  about.begin_object().member("query", question.text.substr(0, limits::logged_query_bytes_max));
  about.member("corpora", answer.corpora).member("profile", answer.profile).member("plan_hash", answer.plan_hash);
  about.member("watermark", answer.watermark).key("cards").begin_array();
  for (const retrieval::Card& card : answer.cards) about.string(card.id);
  about.end_array();
  if (drafted) drafted(about);
  about.end_object();
  // A question repairs nothing: what an interrupted writer left is cut off by one that is asked to write.
  if (!writes_ && (file_->torn_bytes() > 0 || file_->lost_bytes() > 0)) return std::nullopt;
  // A question leaves what was signed as it is, also if it was signed after this process opened it.
  if (index_->ends_signed()) return std::nullopt;
  // Only the file is opened again, since no index changes.
  const auto opened = writes_ ? nullptr : CapsuleFile::open(path_, Access::write_at_once);
  if (!writes_ && !opened) return std::nullopt;
  CapsuleFile& file = writes_ ? *file_ : **opened;
  if (file.chain() != file_->chain()) {
    const auto now = Index::open(file);
    if (!now || (*now)->ends_signed()) return std::nullopt;
  }
  const auto frame = file.append_now(FrameType::query, about.text(), body);
  if (!frame || !file.commit(static_cast<bool>(drafted))) return std::nullopt;
  if (writes_) index_->note_appended(*frame);
  return static_cast<std::int64_t>(frame->header.number);
}

Result<std::int64_t> Capsule::seq_as_of(Time time) const {
  if (time > Clock().now())
    return Error(Errc::invalid_argument,
                 "asof: " + format_time(time) + " is in the future. Omit it to search the current state");
  return index_->frames_until(time.micros) - 1;
}

Result<std::optional<StoredConfig>> Capsule::config() {
  if (is_new()) return std::optional<StoredConfig>();
  for (std::int64_t number = index_->frames(); number-- > 0;) {
    if (index_->row(number).type != static_cast<std::uint32_t>(FrameType::config)) continue;
    ASSIGN_OR_RETURN(const Frame frame, index_->frame(number));
    // Copied before they are hashed again: another process may write to the mapped bytes.
    const std::string description(frame.about);
    StoredConfig found{number, to_hex(frame.header.payload), std::string(frame.body), false};
    if (sha256({description, found.body}) != frame.header.payload)
      return Error(Errc::corrupt, "the config of the capsule changed while it was read");
    const auto about = json::parse(std::string_view(description));
    if (!about || about->root()["uri"].string_or("") != config_uri) continue;
    ASSIGN_OR_RETURN(found.trusted, is_trusted(found.hash));
    return std::optional(std::move(found));
  }
  return std::optional<StoredConfig>();
}

Result<StoredConfig> Capsule::set_config(std::string_view body) {
  RETURN_IF_ERROR(parse_config(body));
  json::Writer about;
  about.begin_object().member("uri", config_uri).end_object();
  RETURN_IF_ERROR(add_frame(FrameType::config, about.text(), body));
  ASSIGN_OR_RETURN(auto stored, config());
  if (!stored) return Error(Errc::corrupt, "the config that was written cannot be read");
  RETURN_IF_ERROR(trust(stored->hash, path_));
  stored->trusted = true;
  return *std::move(stored);
}

// The hooks of a config that this user does not trust do not run.
Result<retrieval::HookOptions> Capsule::hook_options(std::vector<std::string>& degraded) {
  ASSIGN_OR_RETURN(const auto stored, config());
  if (!stored) return retrieval::HookOptions{};
  const auto parsed = parse_config(stored->body);
  if (!parsed) {
    degraded.push_back(parsed.error().message);
    return retrieval::HookOptions{};
  }
  if (parsed->expansion.empty() && parsed->rerank.empty()) return retrieval::HookOptions{};
  if (!stored->trusted) {
    degraded.emplace_back(
        "the hooks of the capsule do not run, because you do not trust its config: muniment capsule trust FILE");
    return retrieval::HookOptions{};
  }
  retrieval::HookOptions options;
  options.expansion = parsed->expansion;
  options.rerank = parsed->rerank;
  options.hook_ms = parsed->hook_ms;
  options.expansions_max = parsed->max_expansions;
  return options;
}

}  // namespace muniment::capsule
