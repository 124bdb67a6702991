// The methods of a capsule.
#include "capsule/rpc.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/ids.hpp"
#include "base/json/json_lists.hpp"
#include "base/limits.hpp"
#include "evidence/pointer.hpp"
#include "retrieval/answer/asked_question.hpp"
#include "retrieval/plan/markup.hpp"
#include "retrieval/query/pack_building.hpp"

namespace muniment::capsule {
namespace {

constexpr std::size_t uploads_bytes_max = 512 << 20;
constexpr std::chrono::seconds pack_patience{60};

std::string pointer_to(const store::DocumentRow& row) {
  return evidence::evidence_pointer(row.corpus, row.document, "p0", row.revision);
}

// A reply is a line. White space is the only place of a raw line feed in a text of JSON.
std::string on_one_line(std::string_view json) {
  std::string out(json);
  for (char& c : out) c = c == '\n' || c == '\r' ? ' ' : c;
  return out;
}

std::size_t limit_of(const json::Value& params) {
  return static_cast<std::size_t>(params["limit"].as_int().value_or(std::int64_t{limits::page_items_default}));
}

void write_row(json::Writer& out, const Revision& revision, bool summary) {
  const store::DocumentRow& row = revision.row;
  out.begin_object().member("corpus", row.corpus).member("document", row.document).member("revision", row.revision);
  out.member("uri", uri_of(row.corpus, row.document)).member("pointer", pointer_to(row)).member("seq", row.seq);
  out.member("hash", to_hex(row.hash)).member("size_bytes", row.size_bytes).member("mime_type", row.mime_type);
  out.member("format", row.format).member("language", row.language).member("title", row.title);
  out.member("tags", row.tags).member("source", row.source);
  if (row.source_url) out.member("source_url", *row.source_url);
  out.member("trust", row.trust).member("timestamp", format_time(row.document_time));
  out.member("recorded_at", format_time(row.recorded_at));
  if (row.expires_at) out.member("expires_at", format_time(*row.expires_at));
  if (row.review_at) out.member("review_at", format_time(*row.review_at));
  if (summary && !revision.chunks.empty()) {
    if (const auto text = text_of(revision, revision.chunks.front()))
      out.member("summary", retrieval::snippet_of(*text, {}, limits::summary_bytes_max));
  }
  out.member("chunker", row.chunker).member("chunks", row.chunks);
  if (row.valid_to) out.member("valid_to", *row.valid_to).member("ended_by", row.ended_by.value_or(""));
  out.end_object();
}

Result<std::optional<Time>> limit_of(const json::Value& document, std::string_view name) {
  const auto text = document[name].as_string();
  if (!text) return std::optional<Time>();
  const auto date = retrieval::parse_date(*text);
  if (!date)
    return Error(Errc::invalid_argument, fmt::format("{}: \"{}\" is not a date. Write 2026-01-31 or an RFC 3339 time.",
                                                     name, text->substr(0, 60)));
  return std::optional(date->end);
}

Result<retrieval::DocumentToIngest> about_of(const std::string& corpus, const json::Value& document) {
  retrieval::DocumentToIngest about;
  about.corpus = corpus;
  about.id = document["id"].string_or("");
  about.title = document["title"].string_or("");
  about.mime_type = document["mime_type"].string_or("");
  about.language = document["language"].string_or("");
  about.tags = strings_of(document["tags"]);
  std::ranges::sort(about.tags);
  about.tags.erase(std::unique(about.tags.begin(), about.tags.end()), about.tags.end());
  about.source_url = document["source_url"].string_or("");
  about.source = document["source"].string_or(about.source_url.empty() ? "capsule" : about.source_url);
  if (const auto time = document["timestamp"].as_string()) about.timestamp = parse_time(*time);
  ASSIGN_OR_RETURN(about.expires_at, limit_of(document, "expires_at"));
  ASSIGN_OR_RETURN(about.review_at, limit_of(document, "review_at"));
  about.trust = document["trust"].string_or("untrusted");
  about.label = document["revision"].string_or("");
  return about;
}

// ev://… or aether://<collection>/<relative_path>, which names the current revision; with the fragment and the revision
// of an ev:// pointer, it names the same.
struct Named {
  std::string corpus, document, revision;
  std::int64_t number = -1;
};

Result<Named> named_by(std::string_view pointer) {
  constexpr std::string_view scheme = evidence::document_scheme;
  std::string text(pointer);
  if (pointer.starts_with(scheme)) {
    if (pointer.find('#') == std::string_view::npos) {
      ASSIGN_OR_RETURN(evidence::DocumentName name, evidence::parse_document_uri(pointer));
      return Named{std::move(name.corpus), std::move(name.document), {}};
    }
    text.replace(0, scheme.size(), "ev://");
  }
  ASSIGN_OR_RETURN(const evidence::Pointer parsed, evidence::parse_pointer(text));
  if (parsed.kind != evidence::PointerKind::evidence)
    return Error(Errc::invalid_argument, "PARSE_ERROR: a capsule has documents (ev://, aether://)");
  return Named{parsed.corpus, parsed.document, parsed.revision, parsed.fragment.starts_with('p') ? parsed.seq : -1};
}

bool is_current(const store::DocumentRow& row, const std::optional<std::int64_t>& as_of) {
  return as_of ? row.seq <= *as_of && (!row.valid_to || *row.valid_to > *as_of) : row.current();
}

}  // namespace

Status Server::need_file() const {
  return capsule_->is_new() ? Status(Error(Errc::not_found,
                                           "no such capsule. Its first document creates it: muniment --capsule FILE "
                                           "ingest FOLDER --corpus NAME"))
                            : success();
}

Result<std::optional<std::int64_t>> Server::asof_of(Params params) const {
  if (const auto seq = params["asof"].as_int()) {
    if (*seq >= 0 && *seq < capsule_->index().frames()) return seq;
    return Error(Errc::invalid_argument,
                 fmt::format("asof: the newest frame is {}. Omit asof to read the current state.",
                             capsule_->index().frames() - 1));
  }
  const auto text = params["asof"].as_string();
  if (!text) return std::optional<std::int64_t>();
  const auto time = parse_time(*text);
  if (!time) return Error(Errc::invalid_argument, "asof: expected a frame's number or an RFC 3339 time.");
  ASSIGN_OR_RETURN(const std::int64_t seq, capsule_->seq_as_of(*time));
  return std::optional(seq);
}

// A capsule that cannot be written, or is cut short, is read as far as it is indexed.
Status Server::settle() {
  RETURN_IF_ERROR(need_file());
  const Status settled = capsule_->file().lost_bytes() > 0 ? success() : capsule_->settle();
  return !settled && is_halting(settled.error().code) ? settled : success();
}

Result<retrieval::Question> Server::common_question(Params params) {
  RETURN_IF_ERROR(settle());
  ASSIGN_OR_RETURN(retrieval::Question question, retrieval::question_of(params));
  ASSIGN_OR_RETURN(question.as_of, asof_of(params));
  return question;
}

Result<std::string> Server::retrieve(Params params) {
  ASSIGN_OR_RETURN(const retrieval::Question common, common_question(params));
  json::Writer out;
  out.begin_object().key("results").begin_array();
  for (const json::Value item : params["queries"]) {
    retrieval::Question question = common;
    question.text = item["query"].string_or("");
    if (const auto corpus = item["corpus"].as_string()) question.corpora = {*corpus};
    if (const auto cursor = item["cursor"].as_string()) question.cursor = *cursor;
    ASSIGN_OR_RETURN(const retrieval::Answer answer, capsule_->answer(question));
    out.raw(retrieval::result_json(question.text, answer));
    capsule_->record_query(question, answer);
  }
  return std::move(out.end_array().end_object()).text();
}

Result<std::string> Server::build_context(Params params) {
  ASSIGN_OR_RETURN(const retrieval::Question common, common_question(params));
  ASSIGN_OR_RETURN(retrieval::PackBuilding building, retrieval::pack_of(params, common));
  std::vector<retrieval::Answer> answers;
  for (const retrieval::Question& question : building.questions) {
    ASSIGN_OR_RETURN(retrieval::Answer answer, capsule_->answer(question));
    capsule_->record_query(question, answer);
    answers.push_back(std::move(answer));
  }
  take_answers(building, std::move(answers));
  RETURN_IF_ERROR(fill_pack(building, params, std::chrono::steady_clock::now() + pack_patience));
  json::Writer out = pack_reply(building);
  return std::move(out.end_object()).text();
}

Result<std::string> Server::ask(Params params) {
  if (params["settings"]["cloud_allowed"].as_bool().value_or(false))
    return Error(Errc::invalid_argument, "cloud_allowed: a capsule asks no cloud service. Omit --cloud.");
  ASSIGN_OR_RETURN(retrieval::Question common, common_question(params));
  ASSIGN_OR_RETURN(retrieval::AskedQuestion asked,
                   retrieval::asked_question_of(params, std::move(common), Clock().now()));
  const retrieval::Question& question = asked.building.questions.front();
  ASSIGN_OR_RETURN(const retrieval::Answer answer, capsule_->answer(question));
  take_answers(asked.building, {answer});
  RETURN_IF_ERROR(draft_answer(asked, nullptr, std::chrono::steady_clock::now() + pack_patience));
  const auto seq = capsule_->record_query(
      question, answer,
      [&](json::Writer& about) {
        about.member("id", asked.id.text()).member("drafter", asked.drafter).member("prompt_hash", asked.prompt_hash);
        write_answer(about, asked);
        about.member("confidence", asked.confidence);
      },
      answer_manifest(asked));
  if (!seq)
    asked.building.degraded.emplace_back(
        "the answer is not recorded: the capsule is signed, damaged, or written by another process");
  json::Writer out = answer_reply(asked, seq ? fmt::format("frame://{}", *seq) : std::string());
  if (seq) out.member("seq", *seq);
  return std::move(out.end_object()).text();
}

Result<std::string> Server::bytes_of(const json::Value& document) {
  for (const char* const name : {"derived_from", "base"}) {
    if (document[name]) return Error(Errc::invalid_argument, fmt::format("{}: needs a daemon. Omit it.", name));
  }
  if (document["text"]) return document["text"].string_or("");
  if (const auto path = document["path"].as_string()) {
    if (folders_.empty()) return Error(Errc::denied, "path: this session reads no files. Send the document as text.");
    return read_within(folders_, {}, *path, static_cast<std::size_t>(limits::document_bytes_max));
  }
  const auto upload = uploads_.find(document["artifact_id"].string_or(""));
  if (upload == uploads_.end())
    return Error(Errc::invalid_argument, "a document of a capsule has its bytes as text or as artifact_id.");
  return std::move(uploads_.extract(upload).mapped());
}

Result<std::string> Server::ingest(Params params) {
  const std::string corpus = params["corpus"].string_or("");
  RETURN_IF_ERROR(retrieval::check_corpus_name(corpus));
  std::vector<retrieval::DocumentToIngest> documents;
  std::vector<std::string> bytes;
  std::vector<Ingested> refused;
  for (const json::Value document : params["documents"]) {
    auto about = about_of(corpus, document);
    auto content = about ? bytes_of(document) : Result<std::string>(about.error());
    if (!content) {
      refused.emplace_back().id = document["id"].string_or("");
      refused.back().error = std::move(content).error();
      continue;
    }
    documents.push_back(*std::move(about));
    bytes.push_back(*std::move(content));
  }
  ASSIGN_OR_RETURN(std::vector<Ingested> done,
                   capsule_->ingest(std::move(documents), bytes, params["known"].as_bool().value_or(false)));
  done.insert(done.end(), std::make_move_iterator(refused.begin()), std::make_move_iterator(refused.end()));
  if (params["wait"].as_bool().value_or(false)) RETURN_IF_ERROR(capsule_->settle());
  std::int64_t seq = -1;
  json::Writer out;
  out.begin_object().key("documents").begin_array();
  for (const Ingested& one : done) {
    if (one.error) continue;
    seq = std::max(seq, one.seq);
    out.begin_object().member("id", one.id).member("uri", uri_of(corpus, one.id));
    out.member("pointer", evidence::evidence_pointer(corpus, one.id, "p0", one.revision));
    out.member("revision", one.revision).member("chunks", one.chunks).member("trust", one.trust);
    if (one.unchanged) out.member("unchanged", true);
    if (!one.known.empty()) out.member("known", one.known);
    if (!one.replaced.empty()) out.member("replaces", evidence::evidence_pointer(corpus, one.id, "p0", one.replaced));
    out.end_object();
  }
  out.end_array().key("errors").begin_array();
  for (const Ingested& one : done) {
    if (!one.error) continue;
    out.begin_object().member("id", one.id).member("code", name_of(one.error->code));
    out.member("message", one.error->message).end_object();
  }
  return std::move(out.end_array().member("seq", seq).end_object()).text();
}

Result<std::string> Server::put(Params params) {
  std::size_t held = raw_.size();
  for (const auto& [id, bytes] : uploads_) held += bytes.size();
  if (held > uploads_bytes_max)
    return Error(Errc::too_large, fmt::format("{} bytes wait to be ingested, limit {}.", held, uploads_bytes_max));
  const std::string id = make_uuid_v7(Clock().now()).text();
  const std::string bytes = params["text"].string_or(raw_);
  json::Writer out;
  out.begin_object().member("artifact_id", id).member("hash", to_hex(sha256(bytes)));
  out.member("size_bytes", bytes.size()).end_object();
  uploads_[id] = bytes;
  return std::move(out).text();
}

Result<std::string> Server::resolve(Params params) {
  RETURN_IF_ERROR(need_file());
  ASSIGN_OR_RETURN(const auto as_of, asof_of(params));
  json::Writer out;
  out.begin_object().key("results").begin_array();
  for (const json::Value item : params["pointers"]) {
    const std::string pointer = item.string_or("");
    out.begin_object().member("pointer", pointer);
    const auto named = named_by(pointer);
    std::string reason = named ? "NOT_FOUND" : "PARSE_ERROR";
    if (named) {
      ASSIGN_OR_RETURN(const auto revisions, capsule_->history(named->corpus, named->document));
      const Revision* found = nullptr;
      for (const Revision& one : revisions) {
        const bool visible = !as_of || one.row.seq <= *as_of;
        const bool wanted = named->revision.empty() ? is_current(one.row, as_of) : one.row.revision == named->revision;
        if (visible && wanted) found = &one;
      }
      if (!revisions.empty() && found == nullptr) reason = "VERSION_MISMATCH";
      if (found != nullptr && named->number < found->row.chunks) {
        const store::ChunkRow* const chunk =
            named->number >= 0 ? &found->chunks[static_cast<std::size_t>(named->number)] : nullptr;
        const auto text = chunk != nullptr ? text_of(*found, *chunk) : Result<std::string_view>(found->text);
        if (text) {
          const std::string hash = to_hex(chunk != nullptr ? chunk->hash : sha256(*text));
          out.member("ok", true).member("type", "evidence").member("id", uri_of(named->corpus, named->document));
          out.member("expected_hash", hash).member("actual_hash", hash).member("size_bytes", text->size());
          out.member("text", *text);
          if (const store::DocumentRow& last = revisions.back().row; !found->row.current() && last.current())
            out.member("current", evidence::evidence_pointer(
                                      last.corpus, last.document,
                                      fmt::format("p{}", std::max<std::int64_t>(named->number, 0)), last.revision));
          reason.clear();
        } else {
          reason = "HASH_MISMATCH";
        }
      }
    }
    if (!reason.empty()) out.member("ok", false).member("reason", reason);
    out.member("critical", false).end_object();
  }
  return std::move(out.end_array().key("halted").begin_array().end_array().end_object()).text();
}

Result<std::string> Server::feedback(Params params) {
  std::string pointer = params["pointer"].string_or("");
  RETURN_IF_ERROR(need_file());
  ASSIGN_OR_RETURN(const Named named, named_by(pointer));
  if (pointer.starts_with(evidence::document_scheme)) {
    // A document of one passage is named by its URI; the frame names the passage.
    ASSIGN_OR_RETURN(const auto revisions, capsule_->history(named.corpus, named.document));
    if (revisions.empty() || !revisions.back().row.current())
      return Error(Errc::not_found, fmt::format("the capsule has no {}", pointer));
    if (revisions.back().row.chunks != 1)
      return Error(Errc::invalid_argument, "pointer: the document has several passages. Name one: ev://….");
    pointer = pointer_to(revisions.back().row);
  }
  json::Writer about;
  about.begin_object().member("pointer", pointer);
  for (const json::Value member : params) {
    if (const std::string key = member.key(); key != "pointer" && key != "_meta")
      about.raw_member(key, member.source());
  }
  about.end_object();
  ASSIGN_OR_RETURN(const std::int64_t seq,
                   capsule_->give_feedback(pointer, params["value"].as_double().value_or(0), about.text()));
  return fmt::format("{{\"pointer\":{},\"seq\":{}}}", json::quote(pointer), seq);
}

// Members of a turn beside its role, its session and its text.
constexpr std::string_view turn_members[] = {"tool_calls", "tool_call_id", "name", "details", "is_error"};

// The text of a turn is `content`; of the result of a tool, `output`.
Result<std::string> Server::log(Params params) {
  const std::string role = params["role"].string_or("");
  const std::string content = params[role == "tool" && params["output"] ? "output" : "content"].string_or("");
  if (role.empty()) return Error(Errc::invalid_argument, "role: expected user, assistant, system or tool.");
  if (content.size() > limits::capsule_log_bytes_max)
    return Error(Errc::too_large, fmt::format("the turn is {} bytes, limit {}. Log it in parts.", content.size(),
                                              limits::capsule_log_bytes_max));
  json::Writer about;
  about.begin_object().member("role", role);
  if (const auto session = params["session"].as_string()) about.member("session", *session);
  for (const std::string_view name : turn_members) {
    if (params[name]) about.raw_member(name, params[name].source());
  }
  about.end_object();
  ASSIGN_OR_RETURN(const std::int64_t seq, capsule_->add_frame(FrameType::log, about.text(), content));
  return fmt::format("{{\"seq\":{}}}", seq);
}

// Returns the turns of a session as messages, oldest first.
Result<std::string> Server::list_log(Params params) {
  const std::string session = params["session"].string_or("");
  json::Writer out;
  out.begin_object().key("messages").begin_array();
  for (std::int64_t number = 0; !capsule_->is_new() && number < capsule_->index().frames(); ++number) {
    const FrameRow& row = capsule_->index().row(number);
    if (row.type != static_cast<std::uint32_t>(FrameType::log)) continue;
    ASSIGN_OR_RETURN(const Frame frame, capsule_->index().frame(number));
    const auto about = json::parse(frame.about, limits::reply_depth_max);
    if (!about || about->root()["session"].string_or("") != session) continue;
    const std::string role = about->root()["role"].string_or("");
    out.begin_object().member("role", role).member(role == "tool" ? "output" : "content", frame.body);
    for (const std::string_view name : turn_members) {
      if (about->root()[name]) out.raw_member(name, on_one_line(about->root()[name].source()));
    }
    out.end_object();
  }
  return std::move(out.end_array().end_object()).text();
}

Result<std::string> Server::list_corpora(Params) {
  RETURN_IF_ERROR(settle());
  json::Writer out;
  out.begin_object().key("corpora").begin_array();
  for (const auto& [name, facts] : capsule_->index().catalogue()) {
    out.begin_object().member("corpus", name).member("owner", "capsule").member("first_seq", facts.first);
    out.member("last_seq", facts.last).member("documents", facts.documents).member("chunks", facts.chunks).end_object();
  }
  return std::move(out.end_array().end_object()).text();
}

Result<std::string> Server::list_documents(Params params) {
  const std::string corpus = params["corpus"].string_or("");
  RETURN_IF_ERROR(settle());
  if (!capsule_->index().catalogue().contains(corpus))
    return Error(Errc::not_found, fmt::format("no corpus {} in the capsule", corpus));
  const std::size_t limit = limit_of(params);
  const bool summaries = params["summaries"].as_bool().value_or(false);
  std::int64_t after = -1, next = -1;
  if (const auto cursor = params["cursor"].as_string()) {
    if (std::from_chars(cursor->data(), cursor->data() + cursor->size(), after).ptr != cursor->data() + cursor->size())
      return Error(Errc::invalid_argument, "cursor: expected the cursor of the previous page.");
  }
  std::size_t count = 0;
  bool more = false;
  json::Writer out;
  out.begin_object().key("documents").begin_array();
  RETURN_IF_ERROR(capsule_->each_current(after + 1, [&](const Revision& revision) -> Result<bool> {
    if (revision.row.corpus != corpus) return true;
    more = count == limit || out.text().size() > limits::page_bytes_max;
    if (more) return false;
    write_row(out, revision, summaries);
    next = revision.row.seq;
    ++count;
    return true;
  }));
  out.end_array();
  if (more) out.member("cursor", std::to_string(next));
  return std::move(out.end_object()).text();
}

Result<std::string> Server::history(Params params) {
  RETURN_IF_ERROR(need_file());
  ASSIGN_OR_RETURN(auto revisions, capsule_->history(params["corpus"].string_or(""), params["document"].string_or("")));
  if (revisions.empty()) return Error(Errc::not_found, "no such document in the capsule");
  const auto before = params["before"].as_int();
  std::erase_if(revisions, [&](const Revision& one) { return before && one.row.seq >= *before; });
  std::ranges::reverse(revisions);
  const std::size_t limit = limit_of(params);
  std::size_t count = 0;
  json::Writer out;
  out.begin_object().key("revisions").begin_array();
  for (; count < std::min(limit, revisions.size()) && out.text().size() < limits::page_bytes_max; ++count)
    write_row(out, revisions[count], params["summaries"].as_bool().value_or(false));
  out.end_array();
  if (count > 0 && count < revisions.size()) out.member("before", revisions[count - 1].row.seq);
  return std::move(out.end_object()).text();
}

Result<std::string> Server::document(Params params) {
  RETURN_IF_ERROR(need_file());
  ASSIGN_OR_RETURN(const auto as_of, asof_of(params));
  ASSIGN_OR_RETURN(const auto revisions,
                   capsule_->history(params["corpus"].string_or(""), params["document"].string_or("")));
  const auto wanted = params["revision"].as_string();
  const Revision* found = nullptr;
  for (const Revision& one : revisions) {
    if (wanted ? one.row.revision == *wanted : is_current(one.row, as_of)) found = &one;
  }
  if (found == nullptr) return Error(Errc::not_found, "no such document in the capsule");
  json::Writer out;
  out.begin_object().key("document");
  write_row(out, *found, false);
  out.key("chunks").begin_array();
  for (const store::ChunkRow& chunk : found->chunks) {
    out.begin_object()
        .member("id", evidence::evidence_pointer(found->row.corpus, found->row.document,
                                                 "p" + std::to_string(chunk.number), found->row.revision))
        .member("start", chunk.start_byte)
        .member("end", chunk.end_byte)
        .member("hash", to_hex(chunk.hash))
        .member("heading", chunk.heading)
        .end_object();
  }
  return std::move(out.end_array().end_object()).text();
}

Result<std::string> Server::retract(Params params) {
  RETURN_IF_ERROR(need_file());
  ASSIGN_OR_RETURN(const store::DocumentRow row,
                   capsule_->retract(params["corpus"].string_or(""), params["document"].string_or(""),
                                     params["base"].string_or(""), params["reason"].string_or("")));
  json::Writer out;
  out.begin_object().member("corpus", row.corpus).member("document", row.document).member("revision", row.revision);
  return std::move(out.member("seq", row.valid_to.value_or(-1)).end_object()).text();
}

Result<std::string> Server::get_config(Params) {
  ASSIGN_OR_RETURN(const auto stored, capsule_->config());
  if (!stored) return Error(Errc::not_found, "the capsule has no config. Write it: muniment --capsule FILE config set");
  RETURN_IF_ERROR(parse_config(stored->body));
  json::Writer out;
  out.begin_object().member("uri", config_uri).member("seq", stored->seq).member("hash", stored->hash);
  return std::move(out.member("trusted", stored->trusted).raw_member("config", on_one_line(stored->body)).end_object())
      .text();
}

Result<std::string> Server::status(Params) { return std::string(R"({"followers":{},"degraded":[]})"); }

// The files of one ingestion belong to a run, which a capsule does not record.
Result<std::string> Server::start_run(Params) { return std::string(R"({"run_id":"capsule"})"); }
Result<std::string> Server::end_run(Params) { return std::string("{}"); }

struct Server::Method {
  std::string_view name;
  Result<std::string> (Server::*function)(Params);
  bool has_tool = false;          // a tool of MCP may call it
  std::string_view refused = {};  // parameters that need a daemon, separated by blanks
};

std::span<const Server::Method> Server::methods() {
  static constexpr Method table[] = {
      {"evidence.retrieve", &Server::retrieve, true, "run_id"},
      {"context.build", &Server::build_context, true, "run_id"},
      {"ask", &Server::ask, true, "run_id"},
      {"corpus.ingest", &Server::ingest, true},
      {"corpus.list", &Server::list_corpora, true},
      {"document.list", &Server::list_documents, true},
      {"document.get", &Server::document, true},
      {"document.history", &Server::history, true},
      {"document.retract", &Server::retract, true, "erase"},
      {"pointer.resolve", &Server::resolve, true, "run_id critical"},
      {"feedback.record", &Server::feedback, true},
      {"log.append", &Server::log},
      {"log.list", &Server::list_log},
      {"config.get", &Server::get_config},
      {"artifact.put", &Server::put},
      {"server.status", &Server::status},
      {"run.start", &Server::start_run},
      {"run.end", &Server::end_run},
  };
  return table;
}

std::vector<std::string_view> Server::methods_of_tools() {
  std::vector<std::string_view> names;
  for (const Method& method : methods()) {
    if (method.has_tool) names.push_back(method.name);
  }
  return names;
}

void Server::open() {
  capsule_.reset();
  auto opened = Capsule::open_or_create(path_);
  if (opened) capsule_ = *std::move(opened);
  if (!opened) failed_ = std::move(opened).error();
}

// Checks the parameters by the schema of the method, as a daemon does.
Status Server::check(const Method& method, Params params) {
  if (!schemas_) {
    ASSIGN_OR_RETURN(schemas_, SchemaSet::embedded());
  }
  if (const auto schema = schemas_->find(fmt::format("rpc/{}#params", method.name)))
    RETURN_IF_ERROR(schema->validate(params));
  for (std::string_view rest = method.refused; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (params[name] && params[name].as_bool().value_or(true))
      return Error(Errc::invalid_argument, fmt::format("{}: needs a daemon. Omit it, or omit --capsule.", name));
  }
  return success();
}

Result<std::string> Server::call(std::string_view method, Params params, std::string raw) {
  if (!capsule_) return failed_;
  const auto found = std::ranges::find(methods(), method, &Method::name);
  if (found == methods().end())
    return Error(Errc::not_found,
                 fmt::format("a capsule does not have {}: this command needs a daemon. Omit --capsule", method));
  RETURN_IF_ERROR(check(*found, params));
  raw_ = std::move(raw);
  return (this->*found->function)(params);
}

}  // namespace muniment::capsule
