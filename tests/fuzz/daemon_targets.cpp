// Targets of the daemon, its witness and its importers: request lines, event bodies, pointers, cursors, checkpoints for
// the witness, journals and states that are read back, foreign traces, the daemon's own answers.
#include <unistd.h>

#include <filesystem>

#include "audit/redaction_journal.hpp"
#include "audit/witness/submitter.hpp"
#include "audit/witness/witness.hpp"
#include "base/json/schema.hpp"
#include "client/connect/client.hpp"
#include "events/catalogue.hpp"
#include "events/state.hpp"
#include "evidence/pointer.hpp"
#include "fuzz/target.hpp"
#include "gateway/append/append_admission.hpp"
#include "gateway/read/cursor.hpp"
#include "gateway/request/request_line.hpp"

namespace muniment::fuzz {
namespace {

void try_request(const std::string& line) {
  static const SchemaSet schemas = *SchemaSet::embedded();
  gateway::Exchange exchange;
  exchange.line = line;
  gateway::RequestHead head;
  const auto patience = gateway::read_request_line(exchange, schemas, head);
  require(head.body_bytes >= 0, "a body of less than nothing");
  require(json::parse(head.id).ok(), "an id that cannot be answered");
  if (!patience) return;
  require(patience->count() > 0 && exchange.method != nullptr, "an answer is awaited for no time, or from nobody");
  if (exchange.method->name != "event.append") return;
  const gateway::Caller caller{1000, "uid:1000", false, 1};
  auto admitted = gateway::admit_append(exchange.params, caller, exchange.idempotency_key, events::Origin::reported,
                                        Time{1'795'000'000'000'000});
  if (admitted) (void)gateway::seal_bodies(*std::move(admitted)).ok();
}

// The input is "type body", as in an append request.
void try_event(const std::string& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string type = text.substr(0, space), body = text.substr(std::min(space + 1, text.size()));
  (void)events::check_client_may_write(type).ok();
  const auto document = json::parse(body);
  if (document) (void)events::check_body(type, document->root()).ok();
}

void try_pointer(const std::string& text) {
  const auto pointer = evidence::parse_pointer(text);
  if (!pointer) return;
  require(pointer->text == text, "a pointer is not the text that was written down");
  require(!pointer->name().empty() || pointer->kind == evidence::PointerKind::log, "a pointer to nothing");
}

void try_cursor(const std::string& text) {
  const auto position = gateway::read_cursor(text, "event.list {}");
  if (!position) return;
  const auto again = gateway::read_cursor(gateway::make_cursor(*position, "event.list {}"), "event.list {}");
  require(again.ok() && *again == *position, "a cursor is read back otherwise");
}

void try_keepers(const std::string& text) {
  const auto keepers = audit::parse_keepers(text);
  if (!keepers) return;
  for (const audit::Keeper& keeper : *keepers) require(!keeper.shown().empty(), "a keeper without a name");
}

void try_journal(const std::string& text) {
  const auto journal = audit::RedactionJournal::parse(text);
  if (!journal) return;
  (void)journal->announcements();
  const std::string written = journal->text();
  const auto again = audit::RedactionJournal::parse(written);
  require(again.ok() && again->text() == written, "a journal is read back otherwise");
}

void try_state(const std::string& text) {
  const auto state = events::State::parse(text);
  if (state) require(events::State::parse(state->document()).ok(), "a state is not read back");
}

// The process has one witness. The logs that it stores are removed after each input, so that the seed is accepted each
// time.
void try_witness(const std::string& body) {
  static const std::string folder = "/tmp/muniment-fuzz-folder-" + std::to_string(::getpid());
  struct Removed {
    ~Removed() { std::filesystem::remove_all(folder); }
  };
  static const Removed removed;
  static Clock clock;
  static const std::unique_ptr<audit::Witness> witness =
      *audit::Witness::open(folder, "witness.example", *parse_verifier_keys(golden("audit/log.pub")), clock);
  const audit::WitnessAnswer answer = witness->add_checkpoint(body);
  require(answer.status >= 200 && answer.status <= 500 && !answer.text.empty(), "the witness answers nothing");
  if (answer.status != 200) return;
  require(Note::parse_signatures(answer.text).ok(), "the witness answers no signature");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) std::filesystem::remove_all(entry);
  }
}

void try_reply(const std::string& line) {
  const auto message = cli::Message::parse(line);
  if (message) (void)message->result()["events"].size();
}

}  // namespace

std::vector<Target> daemon_targets() {
  const std::string note = golden("audit/checkpoint");
  audit::RedactionJournal journal;
  journal.run_no = 1;
  journal.run_id = "r";
  journal.seqs = {3, 4};
  journal.reason = "asked";
  return {
      {"request",
       try_request,
       {R"({"jsonrpc":"2.0","id":1,"method":"event.append","params":{"run_id":"r1","events":[{"type":"x.a.b","body":{"n":1.50}}],"_meta":{"deadline_ms":5}}})",
        R"({"jsonrpc":"2.0","id":"a","method":"artifact.put","params":{"run_id":"r1","body_bytes":12,"metadata":{"a":[]}}})",
        R"({"jsonrpc":"2.0","id":null,"method":"run.list","params":{"labels":{"a":true},"limit":3}})",
        R"([{"jsonrpc":"2.0","id":1,"method":"server.health"}])"}},
      {"event",
       try_event,
       {R"(message.added {"message_id":"m","role":"user","content":[{"type":"text","content":"é"}]})",
        R"(state.patched {"format":"json_patch","patch":[{"op":"add","path":"/a","value":1}]})",
        R"(x.vendor.name {"a":1})", R"(run.annotated {"labels":{"a":null},"retain_until":"2030-01-01T00:00:00Z"})"}},
      {"pointer",
       try_pointer,
       {"artifact://r1/01a201f4-8535-793f-8007-fa9a2b0449d7#b0-10", "snap://r1/918", "log://runs/r1/events",
        "manifest://01a201f4-8535-793f-8007-fa9a2b0449d7", "ev://corpus/a%20document#p3?v=2", "ev://run/r1#e17",
        "run://r1"}},
      {"cursor",
       try_cursor,
       {gateway::make_cursor(7, "event.list {}"), gateway::make_cursor(INT64_MAX, "event.list {}")}},
      {"keepers",
       try_keepers,
       {"folder:/mnt/worm, s3://bucket/prefix", "unix:/run/w.sock " + text_of_first_line(golden("audit/witness.pub")),
        "https://w.example/a " + text_of_first_line(golden("audit/witness.pub"))}},
      {"journal", try_journal, {journal.text()}},
      {"state", try_state, {events::State().document()}},
      {"witness",
       try_witness,
       {audit::add_checkpoint_request(0, {}, note),
        audit::add_checkpoint_request(7, {sha256("a"), sha256("b")}, note)}},
      {"reply",
       try_reply,
       {R"({"jsonrpc":"2.0","id":1,"result":{"events":[{"seq":1}]}})",
        R"({"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m","data":{"code":"conflict"}}})"}},
  };
}

}  // namespace muniment::fuzz
