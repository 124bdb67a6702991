#include "verify/tables/corpus_tables.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "verify/tables/corpus_columns.hpp"

namespace muniment::verify {
namespace {

constexpr std::int64_t chunk_list_bytes_max = 256 << 20;

// The parts of ev://corpus/document#p<number>?v=revision, or of ev://run/<run>#e<run_seq>[.<number>]?v=revision.
struct Passage {
  std::string corpus, document, revision;
  std::int64_t number = -1;
};

// The document is <run>#e<run_seq>. A pointer without a number names the event, which counts as its first passage.
std::optional<Passage> passage_of_run(std::string_view pointer) {
  const std::string_view rest = pointer.substr(std::string_view("ev://run/").size());
  const std::size_t version = rest.find("?v=");
  const std::string_view named = rest.substr(0, version);
  const std::size_t mark = named.find("#e");
  if (mark == std::string_view::npos) return std::nullopt;
  const std::size_t dot = named.find('.', mark);  // the id of a run may contain a dot
  const auto number =
      dot == std::string_view::npos ? std::optional<std::int64_t>(0) : parse_decimal(named.substr(dot + 1));
  if (!number) return std::nullopt;
  return Passage{std::string(run_corpus), std::string(named.substr(0, dot)),
                 version == std::string_view::npos ? "" : std::string(rest.substr(version + 3)), *number};
}

std::optional<Passage> passage_of(std::string_view pointer) {
  constexpr std::string_view scheme = "ev://";
  const std::size_t slash = pointer.find('/', scheme.size());
  if (pointer.starts_with("ev://run/")) return passage_of_run(pointer);
  const std::size_t mark = pointer.find("#p");
  if (!pointer.starts_with(scheme) || slash == std::string_view::npos || mark == std::string_view::npos || mark < slash)
    return std::nullopt;
  const std::size_t version = pointer.find("?v=", mark);
  const auto document = percent_decode(pointer.substr(slash + 1, mark - slash - 1));
  const auto number =
      parse_decimal(pointer.substr(mark + 2, version == std::string_view::npos ? version : version - mark - 2));
  if (!document || !number) return std::nullopt;
  return Passage{std::string(pointer.substr(scheme.size(), slash - scheme.size())), *document,
                 version == std::string_view::npos ? "" : std::string(pointer.substr(version + 3)), *number};
}

}  // namespace

Status CorpusTables::Rows::advance() {
  if (!cursor) return success();
  ASSIGN_OR_RETURN(there, cursor->next(row));
  return success();
}

Status CorpusTables::open(Connection& connection) {
  ASSIGN_OR_RETURN(const auto tables,
                   connection.integer("SELECT count(*) FROM pg_class WHERE oid = to_regclass('public.document')"));
  if (tables.value_or(0) == 0) return success();
  ASSIGN_OR_RETURN(const auto position,
                   connection.integer(fmt::format(
                       "SELECT next_seq FROM follower WHERE log_no = {} AND name = 'document'", log_.log_no)));
  next_seq_ = position.value_or(0);
  const auto open = [&](Rows& rows, std::string_view table, std::string_view columns,
                        std::string_view order) -> Status {
    ASSIGN_OR_RETURN(rows.cursor, Cursor::open(connection, fmt::format("rows_of_{}", table),
                                               fmt::format("SELECT {} FROM {} WHERE log_no = {} ORDER BY {}", columns,
                                                           table, log_.log_no, order)));
    return rows.advance();
  };
  ASSIGN_OR_RETURN(
      const auto of_runs,
      connection.integer(
          "SELECT count(*) FROM pg_attribute WHERE attrelid = 'public.document'::regclass AND attname = 'origin'"));
  const std::string_view more = of_runs.value_or(0) > 0 ? run_columns : no_run_columns;
  RETURN_IF_ERROR(open(documents_, "document", fmt::format("{}{}", document_columns, more), "seq"));
  RETURN_IF_ERROR(open(chunks_, "chunk", "seq, number, chunk_id, start_byte, end_byte, hash, heading", "seq, number"));
  return open(feedback_, "feedback", "seq, pointer, chunk_id, value, actor", "seq");
}

Status CorpusTables::see(Connection& connection, const SeenEvent& event, const Telling& telling) {
  if (event.seq >= next_seq_) return success();
  if (telling.type == "run.started" && log_.indexed.contains(event.run_no)) run_owners_[event.run_no] = telling.actor;
  if (is_readable(telling.type))
    return log_.indexed.contains(event.run_no) ? run_event(connection, event, telling) : success();
  const bool revises = telling.type == "document.revised";
  const bool says = telling.type == "feedback.recorded";
  if (!revises && !says && telling.type != "document.retracted" && telling.type != "source.revoked" &&
      telling.type != "event.redacted")
    return success();
  if (telling.redacted) history_.lose(event.seq, telling.actor);
  const auto parsed = json::parse(telling.json());
  if (!parsed) return success();  // a hashed body always parses
  const json::Value body = parsed->root();
  if (revises) return revised(connection, event, telling, body);
  if (says) return feedback(event, telling, body);
  if (telling.redacted) return success();
  if (telling.type == "document.retracted")
    history_.retract(event.seq, body["corpus"].string_or(""), body["document"].string_or(""));
  if (telling.type == "source.revoked")
    history_.revoke(event.seq, body["source"].string_or(""), text_of(body, "owner"));
  if (telling.type == "event.redacted") history_.erase(event.seq, body["seq"].as_int().value_or(-1));
  return success();
}

Status CorpusTables::revised(Connection& connection, const SeenEvent& event, const Telling& telling,
                             const json::Value& body) {
  RETURN_IF_ERROR(unexplained_before(event.seq));
  Revision revision;
  revision.seq = event.seq;
  revision.told = !telling.redacted;
  const bool has_row = documents_.there && documents_.seq() == event.seq;
  const Row& row = documents_.row;
  if (!revision.told && !has_row) {
    chunk_ids_known_ = false;
    return leave_chunks(revision);
  }
  revision.corpus = revision.told ? body["corpus"].string_or("") : row.text(c_corpus);
  revision.document = revision.told ? body["document"].string_or("") : row.text(c_document);
  revision.revision = revision.told ? body["revision"].string_or("") : row.text(c_revision);
  revision.sources = strings_of(body["sources"]);
  std::optional<std::string> list;
  if (revision.told) {
    ASSIGN_OR_RETURN(list, chunk_list(connection, body));
  }
  const auto chunks = list ? json::parse(*list) : Result<json::Document>(Error(Errc::not_found, "no list"));
  revision.chunks = chunks ? static_cast<std::int64_t>(chunks->root().size()) : has_row ? row.integer(c_chunks) : 0;
  if (!chunk_ids_known_ && has_row && row.integer(c_first_chunk) > next_chunk_)
    next_chunk_ = row.integer(c_first_chunk);
  chunk_ids_known_ = chunk_ids_known_ || has_row;
  revision.first_chunk = next_chunk_;
  next_chunk_ += revision.chunks;
  if (has_row) {
    revision.held = ends_in(row);
    check(Check::document, event.seq, name_of(revision), "first_chunk", std::to_string(revision.first_chunk),
          std::to_string(row.integer(c_first_chunk)));
    if (revision.told) compare_document(telling, body, revision);
    if (!revision.told) revision.left = left_in(row);
    ++counts_.revisions;
    RETURN_IF_ERROR(documents_.advance());
  } else {
    found(Check::document, event.seq, fmt::format("a row of document, {}", name_of(revision)), "no row");
  }
  if (chunks) {
    RETURN_IF_ERROR(compare_chunks(revision, chunks->root()));
  } else {
    RETURN_IF_ERROR(leave_chunks(revision));
  }
  history_.revise(std::move(revision), telling.actor);
  return success();
}

void CorpusTables::compare_document(const Telling& telling, const json::Value& body, const Revision& revision) {
  const Row& row = documents_.row;
  const std::string name = name_of(revision);
  const auto same = [&](std::string_view column, const Text& wanted, const Text& held) {
    check(Check::document, revision.seq, name, column, wanted, held);
  };
  const auto text = [&](std::size_t at, std::string_view column, std::string_view absent = "") {
    same(column, body[column].string_or(absent), row.text(at));
  };
  const auto integer = [&](std::size_t at, std::string_view column) {
    same(column, std::to_string(body[column].as_int().value_or(0)), std::to_string(row.integer(at)));
  };
  text(c_corpus, "corpus");
  text(c_document, "document");
  text(c_revision, "revision");
  same("hash", body["hash"].string_or(""), row.hex(c_hash));
  same("artifact_id", body["artifact_id"].string_or(""), row.uuid_text(c_artifact));
  same("owner", Text(), row.optional_text(c_owner));
  same("origin", Text(), row.optional_text(c_origin));
  integer(c_start, "start_byte");
  integer(c_size, "size_bytes");
  same("text_artifact_id", text_of(body, "text_artifact_id"),
       row.null(c_text_artifact) ? Text() : Text(row.uuid_text(c_text_artifact)));
  text(c_mime_type, "mime_type", "text/plain");
  text(c_format, "format", "text");
  text(c_language, "language", "none");
  text(c_title, "title");
  same("tags", shown_list(strings_of(body["tags"])), shown_list(strings_in(row, c_tags)));
  text(c_source, "source");
  same("sources", shown_list(revision.sources), shown_list(strings_in(row, c_sources)));
  same("source_url", text_of(body, "source_url"), row.optional_text(c_source_url));
  text(c_trust, "trust", "untrusted");
  const auto time = parse_time(body["timestamp"].string_or(""));
  same("document_time", format_time(time ? *time : telling.recorded_at), format_time(row.time(c_document_time)));
  same("recorded_at", format_time(telling.recorded_at), format_time(row.time(c_recorded_at)));
  text(c_chunker, "chunker");
  same("chunks", std::to_string(revision.chunks), std::to_string(row.integer(c_chunks)));
}

// Returns the list of passages that the event names; nullopt: the list is in an artifact that is erased or damaged.
Result<std::optional<std::string>> CorpusTables::chunk_list(Connection& connection, const json::Value& body) {
  const auto id = parse_uuid(body["chunks_artifact_id"].string_or(""));
  if (!id) return std::optional(body["chunks"] ? std::string(body["chunks"].source()) : std::string("[]"));
  RETURN_IF_ERROR(
      connection.start_copy(fmt::format("SELECT path, hash FROM artifact WHERE artifact_id = '{}'", id->text())));
  std::optional<std::string> list;
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return list;
    auto bytes = root_.read(row.text(0), chunk_list_bytes_max);
    if (bytes && to_hex(sha256(*bytes)) == row.bytes(1)) list = *std::move(bytes);
  }
}

Status CorpusTables::compare_chunks(const Revision& revision, const json::Value& list) {
  std::int64_t number = 0;
  for (const json::Value item : list) {
    if (chunks_.there && chunks_.seq() == revision.seq && chunks_.row.integer(1) == number) {
      compare_chunk(revision, number, item);
      ++counts_.passages;
      RETURN_IF_ERROR(chunks_.advance());
    } else {
      found(Check::chunk, revision.seq, fmt::format("a row of chunk, {}#p{}", name_of(revision), number), "no row");
    }
    ++number;
  }
  for (; chunks_.there && chunks_.seq() == revision.seq;) {
    found(Check::chunk, revision.seq, fmt::format("{} passages of {}", number, name_of(revision)),
          fmt::format("a row of chunk, {}#p{}", name_of(revision), chunks_.row.integer(1)));
    RETURN_IF_ERROR(chunks_.advance());
  }
  return success();
}

// `item` is [start, end, sha256, heading?].
void CorpusTables::compare_chunk(const Revision& revision, std::int64_t number, const json::Value& item) {
  std::vector<json::Value> parts;
  for (const json::Value part : item) parts.push_back(part);
  parts.resize(4);
  const Row& row = chunks_.row;
  const std::string name = fmt::format("{}#p{}", name_of(revision), number);
  const auto same = [&](std::string_view column, const Text& wanted, const Text& held) {
    check(Check::chunk, revision.seq, name, column, wanted, held);
  };
  same("chunk_id", std::to_string(revision.first_chunk + number), std::to_string(row.integer(2)));
  same("start_byte", std::to_string(parts[0].as_int().value_or(0)), std::to_string(row.integer(3)));
  same("end_byte", std::to_string(parts[1].as_int().value_or(0)), std::to_string(row.integer(4)));
  same("hash", parts[2].string_or(""), row.hex(5));
  const std::string heading = parts[3].string_or("");
  same("heading", heading.empty() ? Text() : Text(heading), row.optional_text(6));
}

// Skips the rows of a revision whose passages are unknown.
Status CorpusTables::leave_chunks(Revision& revision) {
  for (; chunks_.there && chunks_.seq() == revision.seq; ++revision.chunk_rows) RETURN_IF_ERROR(chunks_.advance());
  return success();
}

Status CorpusTables::feedback(const SeenEvent& event, const Telling& telling, const json::Value& body) {
  for (; feedback_.there && feedback_.seq() < event.seq;) {
    found(Check::feedback, feedback_.seq(), "no row: no event of this seq has one", "a row of feedback");
    RETURN_IF_ERROR(feedback_.advance());
  }
  const bool has_row = feedback_.there && feedback_.seq() == event.seq;
  const auto value = body["value"].as_double();
  const std::string target = body["target"].string_or("");
  const bool counts = value && *value >= -1 && *value <= 1 && target.starts_with("ev://");
  if (telling.redacted) {
    if (has_row) erased_feedback_.push_back(event.seq);
    return has_row ? feedback_.advance() : success();
  }
  if (!has_row) {
    if (counts) found(Check::feedback, event.seq, fmt::format("a row of feedback, {}", target), "no row");
    return success();
  }
  const Row& row = feedback_.row;
  if (!counts) {
    found(Check::feedback, event.seq, "no row: the event does not rate a card", "a row of feedback");
    return feedback_.advance();
  }
  check(Check::feedback, event.seq, target, "pointer", target, row.text(1));
  check(Check::feedback, event.seq, target, "actor", telling.actor, row.text(4));
  const auto held = std::bit_cast<double>(row.integer(3));
  if (held != *value)
    found(Check::feedback, event.seq, fmt::format("{}: value = {}", target, *value), fmt::format("value = {}", held));
  const auto passage = passage_of(target);
  Said said{event.seq, "", "", "", -1, row.null(2) ? -1 : row.integer(2)};
  if (passage) {
    said.corpus = passage->corpus;
    said.document = passage->document;
    said.revision = passage->revision;
    const Revision* const cited = history_.cited(said.corpus, said.document, said.revision, passage->number);
    if (cited != nullptr) said.wanted = cited->first_chunk + passage->number;
  }
  said_.push_back(std::move(said));
  ++counts_.feedback;
  return feedback_.advance();
}

Status CorpusTables::unexplained_before(std::int64_t seq) {
  for (; documents_.there && documents_.seq() < seq;) {
    found(Check::document, documents_.seq(), "no row: no event of this seq has one",
          fmt::format("a row of document, {}/{}", documents_.row.text(c_corpus), documents_.row.text(c_document)));
    RETURN_IF_ERROR(documents_.advance());
  }
  for (; chunks_.there && chunks_.seq() < seq;) {
    found(Check::chunk, chunks_.seq(), "no row: no event of this seq has one",
          fmt::format("a row of chunk, chunk_id {}", chunks_.row.integer(2)));
    RETURN_IF_ERROR(chunks_.advance());
  }
  return success();
}

Status CorpusTables::finish(Connection& connection) {
  if (!documents_.cursor) return success();
  RETURN_IF_ERROR(unexplained_before(INT64_MAX));
  for (; feedback_.there;) {
    found(Check::feedback, feedback_.seq(), "no row: no event of this seq has one", "a row of feedback");
    RETURN_IF_ERROR(feedback_.advance());
  }
  for (const Revision& revision : history_.revisions()) {
    if (revision.held) compare_ends(revision);
    if (revision.erased && !revision.left.empty())
      found(Check::document, revision.seq, fmt::format("{}: no erased content", name_of(revision)),
            fmt::format("a row of document whose {} holds content", revision.left));
    if (revision.erased && revision.chunk_rows > 0) {
      found(Check::chunk, revision.seq, fmt::format("no passages of {}: it was erased", name_of(revision)),
            fmt::format("{} rows of chunk", revision.chunk_rows));
    }
  }
  compare_feedback();
  return compare_corpora(connection);
}

// An event whose body is erased may have ended the revision, so the row's value is accepted.
void CorpusTables::compare_ends(const Revision& revision) {
  const Ends& held = *revision.held;
  const auto untold = [&](std::optional<std::int64_t> seq) { return seq && history_.untold(*seq) != nullptr; };
  if (untold(held.valid_to) || untold(held.removed_at)) return;
  const auto same = [&](std::string_view column, const Text& wanted, const Text& there) {
    check(Check::document, revision.seq, name_of(revision), column, wanted, there);
  };
  // The sources of an erased revision are unknown: a revocation may have ended it earlier.
  if (revision.told) same("valid_to", number_text(revision.ends.valid_to), number_text(held.valid_to));
  if (revision.told || revision.erased) {
    same("ended_by", revision.ends.ended_by, held.ended_by);
    same("removed_at", number_text(revision.ends.removed_at), number_text(held.removed_at));
  }
}

void CorpusTables::compare_feedback() {
  for (const std::int64_t seq : erased_feedback_) {
    if (history_.is_erased(seq)) found(Check::feedback, seq, "no row: the event is erased", "a row of feedback");
  }
  for (const Said& said : said_) {
    if (said.held == said.wanted) continue;
    if (said.held < 0 && history_.cites_erased(said.corpus, said.document, said.revision)) continue;
    const auto id = [](std::int64_t chunk_id) { return chunk_id < 0 ? Text() : Text(std::to_string(chunk_id)); };
    found(Check::feedback, said.seq, shown("chunk_id", id(said.wanted)), shown("chunk_id", id(said.held)));
  }
}

Status CorpusTables::compare_corpora(Connection& connection) {
  RETURN_IF_ERROR(connection.start_copy(
      fmt::format("SELECT corpus, owner, first_seq, last_seq FROM corpus WHERE log_no = {}", log_.log_no)));
  auto missing = history_.corpora();
  Row row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) break;
    const std::string name = row.text(0);
    const auto facts = missing.find(name);
    const std::string* const actor = history_.untold(row.integer(2));  // actor of a first event that was erased
    if (facts == missing.end()) {
      if (actor == nullptr)
        found(Check::corpus, row.integer(2), "no row: no event names this corpus", "a row of corpus, " + name);
      continue;
    }
    const std::int64_t seq = facts->second.first_seq;
    check(Check::corpus, seq, name, "owner", actor != nullptr ? *actor : facts->second.owner, row.text(1));
    if (actor == nullptr)
      check(Check::corpus, seq, name, "first_seq", std::to_string(seq), std::to_string(row.integer(2)));
    if (history_.untold(row.integer(3)) == nullptr) {
      check(Check::corpus, seq, name, "last_seq", std::to_string(facts->second.last_seq),
            std::to_string(row.integer(3)));
    }
    missing.erase(facts);
  }
  for (const auto& [name, facts] : missing) found(Check::corpus, facts.first_seq, "a row of corpus, " + name, "no row");
  return success();
}

void CorpusTables::check(Check check, std::int64_t seq, const std::string& name, std::string_view column,
                         const Text& wanted, const Text& held) {
  if (wanted != held) found(check, seq, fmt::format("{}: {}", name, shown(column, wanted)), shown(column, held));
}

void CorpusTables::found(Check check, std::int64_t seq, std::string expected, std::string actual) {
  findings_.add({check, seq, std::string(log_run_id), std::move(expected), std::move(actual)});
}

}  // namespace muniment::verify
