// Resolves ev:// pointers to events of runs. The log has the hash of an event's body; the tables of the corpus run have
// the span and the hash of each passage of its text.
#include <fmt/format.h>

#include "evidence/resolver.hpp"
#include "store/read/event_text.hpp"

namespace muniment::evidence {

Status Resolver::resolve_event(Resolution& out) {
  const Pointer& pointer = *out.parsed;
  ASSIGN_OR_RETURN(const auto run, find_run(out));
  std::optional<events::Event> event;
  if (run) {
    ASSIGN_OR_RETURN(event, reader_->event_of_run(run->view().run_no, pointer.seq));
  }
  if (!event) {
    out.fail(Reason::not_found, fmt::format("run {} has no event {}", pointer.run_id, pointer.seq));
    return success();
  }
  out.recorded = true;
  out.expected = pointer.revision;
  const std::string hash = to_hex(event->body_hash);
  if (hash.substr(0, revision_digits) != pointer.revision) {
    out.actual = hash.substr(0, revision_digits);
    out.fail(Reason::version_mismatch, "the event has another body_hash");
    return success();
  }
  if (const Status recorded = reader_->confirm({*event}); !recorded) {
    if (is_transient(recorded.error().code)) return recorded;
    out.fail(Reason::hash_mismatch, recorded.error().message);
    return success();
  }
  if (!event->body || !event->salt) {
    out.was_erased("the event was redacted");
    return success();
  }
  const std::string_view salt(reinterpret_cast<const char*>(event->salt->data()), event->salt->size());
  if (sha256({salt, *event->body}) != event->body_hash) {
    out.fail(Reason::hash_mismatch, "the event's body does not match the hash recorded when it was stored");
    return success();
  }
  if (as_of() && event->seq > *as_of()) {
    out.fail(Reason::not_found, fmt::format("the event is newer than asof: its seq is {}", event->seq));
    out.superseded = true;
    return success();
  }
  if (pointer.passage) return check_event_passage(out, *event);
  out.source = EvidenceSource{pointer.corpus, "event", chunk_id_of(pointer), {}};
  out.size_bytes = static_cast<std::int64_t>(event->body->size());
  out.text = *event->body;
  return success();
}

// Checks the span of an intact event's text, which is read again from its body or its artifact.
Status Resolver::check_event_passage(Resolution& out, const events::Event& event) {
  const Pointer& pointer = *out.parsed;
  const std::string document = fmt::format("{}#e{}", pointer.run_id, pointer.seq);
  ASSIGN_OR_RETURN(const auto row, reader_->document_revision(store::run_corpus, document, pointer.revision));
  if (!row) {
    out.fail_beyond(
        "the event has no passages: its run is not indexed, or it has no text. Use a pointer to the event itself.");
    return success();
  }
  ASSIGN_OR_RETURN(const bool removed, was_removed(out, *row, row->owner.value_or("")));
  if (removed) return success();
  const auto read = reader_->event_text(event);
  if (!read && is_transient(read.error().code)) return read.error();
  if (!read) {
    out.fail(Reason::hash_mismatch, read.error().message);
    return success();
  }
  ASSIGN_OR_RETURN(const auto chunks, reader_->chunks_of(*row));
  if (*pointer.passage >= static_cast<std::int64_t>(chunks.size())) {
    out.fail_beyond(fmt::format("the event has {} passages, and no {}", chunks.size(), pointer.fragment));
    return success();
  }
  const store::ChunkRow& chunk = chunks[static_cast<std::size_t>(*pointer.passage)];
  out.size_bytes = chunk.end_byte - chunk.start_byte;
  out.expected = to_hex(chunk.hash);
  out.source =
      EvidenceSource{pointer.corpus, row->chunker, chunk_id_of(pointer), ByteSpan{chunk.start_byte, chunk.end_byte}};
  store::Difference difference;
  auto bytes = (*read)->read(files_, chunk.start_byte, chunk.end_byte, &difference);
  if (!bytes) return out.not_that_file(std::move(bytes).error(), std::move(difference));
  out.take_passage(*std::move(bytes), chunk.hash, "the event");
  return success();
}

}  // namespace muniment::evidence
