// Checks the rows of the corpus `run`: an event of an indexed run that has text has a row, with passages that are spans
// of its text. The boundaries of passages and the detected language are choices of the writer and are not checked.
#include <fmt/format.h>

#include "base/ids.hpp"
#include "verify/tables/corpus_columns.hpp"
#include "verify/tables/corpus_tables.hpp"

namespace muniment::verify {
namespace {

constexpr std::size_t revision_digits = 16;

// Returns whether the text between two passages is blank: white space (including that of other scripts) and control
// characters.
bool is_blank(std::string_view text) {
  for (const char c : text) {
    if (c > ' ' && c < 0x7f) return false;
  }
  return true;
}

}  // namespace

Status CorpusTables::run_event(Connection& connection, const SeenEvent& event, const Telling& telling) {
  RETURN_IF_ERROR(unexplained_before(event.seq));
  const bool has_row = documents_.there && documents_.seq() == event.seq;
  const Row& row = documents_.row;
  const std::string& run_id = log_.run_id(event.run_no);
  Revision revision;
  revision.seq = event.seq;
  revision.told = !telling.redacted && log_.indexed.at(event.run_no).value_or(false);
  revision.corpus = run_corpus;
  revision.document = fmt::format("{}#e{}", run_id, event.run_seq);
  revision.revision = to_hex(telling.body_hash).substr(0, revision_digits);
  revision.sources = {"run://" + run_id};
  revision.owner = run_owners_[event.run_no];
  const auto body = json::parse(telling.json());
  RunText text;
  if (revision.told && body) {
    ASSIGN_OR_RETURN(text, run_text(connection, root_, run_id, telling.type, body->root()));
  }
  if (!has_row) {
    if (revision.told && !text.may_lack_row())
      found(Check::document, event.seq, fmt::format("a row of document, {}", name_of(revision)), "no row");
    chunk_ids_known_ = chunk_ids_known_ && revision.told;
    return leave_chunks(revision);
  }
  revision.chunks = row.integer(c_chunks);
  if (!chunk_ids_known_ && row.integer(c_first_chunk) > next_chunk_) next_chunk_ = row.integer(c_first_chunk);
  chunk_ids_known_ = true;
  revision.first_chunk = next_chunk_;
  next_chunk_ += revision.chunks;
  revision.held = ends_in(row);
  check(Check::document, event.seq, name_of(revision), "first_chunk", std::to_string(revision.first_chunk),
        std::to_string(row.integer(c_first_chunk)));
  if (revision.told) compare_run_event(telling, revision, run_id, text);
  if (!revision.told) revision.left = left_in(row);
  ++counts_.revisions;
  RETURN_IF_ERROR(documents_.advance());
  RETURN_IF_ERROR(revision.told && text.text ? compare_run_chunks(revision, text) : leave_chunks(revision));
  history_.revise(std::move(revision), telling.actor);
  return success();
}

void CorpusTables::compare_run_event(const Telling& telling, const Revision& revision, const std::string& run_id,
                                     const RunText& text) {
  const Row& row = documents_.row;
  const auto same = [&](std::string_view column, const Text& wanted, const Text& held) {
    check(Check::document, revision.seq, name_of(revision), column, wanted, held);
  };
  same("corpus", std::string(run_corpus), row.text(c_corpus));
  same("document", revision.document, row.text(c_document));
  same("revision", revision.revision, row.text(c_revision));
  same("hash", to_hex(telling.body_hash), row.hex(c_hash));
  same("artifact_id", "", row.uuid_text(c_artifact));
  same("text_artifact_id", "", row.uuid_text(c_text_artifact));
  same("start_byte", "0", std::to_string(row.integer(c_start)));
  if (text.text) same("size_bytes", std::to_string(text.text->size()), std::to_string(row.integer(c_size)));
  same("mime_type", "text/plain", row.text(c_mime_type));
  same("format", telling.type, row.text(c_format));
  same("title", text.name, row.text(c_title));
  same("tags", shown_list(text.tags), shown_list(strings_in(row, c_tags)));
  same("source", "run://" + run_id, row.text(c_source));
  same("sources", shown_list(revision.sources), shown_list(strings_in(row, c_sources)));
  same("source_url", Text(), row.optional_text(c_source_url));
  same("trust", "untrusted", row.text(c_trust));
  same("document_time", format_time(telling.occurred_at.value_or(telling.recorded_at)),
       format_time(row.time(c_document_time)));
  same("recorded_at", format_time(telling.recorded_at), format_time(row.time(c_recorded_at)));
  same("owner", revision.owner, row.optional_text(c_owner));
  same("origin", std::to_string(telling.origin), std::to_string(row.integer(c_origin)));
}

// Passages are in order, do not overlap, cover the whole text except white space, and each has the hash of its bytes.
Status CorpusTables::compare_run_chunks(Revision& revision, const RunText& text) {
  const std::string_view words = *text.text;
  std::int64_t number = 0;
  std::int64_t end = 0;
  for (; chunks_.there && chunks_.seq() == revision.seq; ++number) {
    const Row& row = chunks_.row;
    const std::string name = fmt::format("{}#p{}", name_of(revision), number);
    const auto same = [&](std::string_view column, const Text& wanted, const Text& held) {
      check(Check::chunk, revision.seq, name, column, wanted, held);
    };
    const std::int64_t from = row.integer(3), to = row.integer(4);
    same("number", std::to_string(number), std::to_string(row.integer(1)));
    same("chunk_id", std::to_string(revision.first_chunk + number), std::to_string(row.integer(2)));
    same("heading", Text(), row.optional_text(6));
    if (from < end || to <= from || to > static_cast<std::int64_t>(words.size())) {
      found(Check::chunk, revision.seq, fmt::format("{}: a span from {} on, to {} at most", name, end, words.size()),
            fmt::format("bytes {} to {}", from, to));
    } else {
      const std::string_view between =
          words.substr(static_cast<std::size_t>(end), static_cast<std::size_t>(from - end));
      if (!is_blank(between))
        found(Check::chunk, revision.seq, fmt::format("{}: a passage with bytes {} to {}", name, end, from), "no row");
      same("hash", to_hex(sha256(words.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)))),
           row.hex(5));
    }
    end = std::max(end, to);
    ++counts_.passages;
    RETURN_IF_ERROR(chunks_.advance());
  }
  if (number != revision.chunks) {
    revision.chunk_rows = number;
    found(Check::chunk, revision.seq, fmt::format("{} rows of chunk, {}", revision.chunks, name_of(revision)),
          fmt::format("{} rows", number));
  } else if (end < static_cast<std::int64_t>(words.size()) && !is_blank(words.substr(static_cast<std::size_t>(end)))) {
    found(Check::chunk, revision.seq, fmt::format("{}: passages up to byte {}", name_of(revision), words.size()),
          fmt::format("up to byte {}", end));
  }
  return success();
}

}  // namespace muniment::verify
