// Targets of the verifier: for any bytes, it does not crash, trusts only data that a trusted key has signed, and
// accepts only one encoding of each value.
#include <utility>

#include "base/crypto/base64.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/tar_archive.hpp"
#include "base/json/json.hpp"
#include "events/catalogue.hpp"
#include "events/state.hpp"
#include "fuzz/target.hpp"
#include "verify/log/entry.hpp"
#include "verify/log/saved_state.hpp"
#include "verify/portable/bundle.hpp"
#include "verify/portable/bundle_archive.hpp"
#include "verify/portable/bundle_rows.hpp"
#include "verify/portable/bundle_tree.hpp"
#include "verify/portable/proof.hpp"
#include "verify/postgres/copy_row.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/report.hpp"
#include "verify/signed/tile_name.hpp"
#include "verify/state/fold.hpp"

namespace muniment::fuzz {
namespace {

using namespace muniment::verify;

const std::vector<VerifierKey>& unknown_keys() {
  static const std::vector<VerifierKey> one{
      NoteSigner("example.com/log", KeyType::ed25519, SigningKey::from_seed(Seed{1})).verifier()};
  return one;
}

void try_checkpoint(const std::string& text) {
  const auto file = parse_checkpoint_file(text);
  if (!file) return;
  if (file->note) require(file->note->signed_text() == text, "a note can be written in two ways");
  if (file->note) require(file->checkpoint.text() == file->note->text, "a checkpoint can be written in two ways");
}

void try_proof(const std::string& text) {
  const ProofReport report = judge_proof(text, unknown_keys(), text);
  require(report.verdict != Verdict::verified, "a proof without a signature by our key is verified");
  require(!text_of(report).empty() && !json_of(report).empty(), "a report without words");
}

void try_receipt(const std::string& text) {
  static const std::string proof = golden("audit/event.tlog-proof");
  static const std::vector<VerifierKey> keys = *parse_verifier_keys(golden("audit/log.pub"));
  const ProofReport report = judge_proof(proof, keys, text);
  require(!text_of(report).empty() && !json_of(report).empty(), "a report without words");
}

void try_bundle(const std::string& bytes) {
  with_file(bytes, [](const std::string& path) {
    const Report report = verify_bundle({path, {}, {}});
    require(report.verdict != Verdict::verified, "a bundle is verified without a key");
    require(!text_of(report).empty() && !json_of(report).empty(), "a report without words");
  });
}

// Reads the bytes as the first message of a COPY and as a later one.
void try_copy(const std::string& bytes) {
  CopyFields fields;
  for (const bool first : {true, false}) {
    const auto row = parse_copy_row(bytes, first, fields);
    if (!row || !*row) continue;
    const Row values(std::exchange(fields, {}));
    for (std::size_t column = 0; column < 20; ++column) {
      (void)values.integer(column);
      (void)format_time(values.time(column));
      (void)values.uuid_text(column);
      (void)values.hex(column);
      (void)values.jsonb(column);
      (void)values.optional_text(column);
    }
  }
}

void try_tile_name(const std::string& path) {
  const auto name = tile_name(path);
  if (name) require(name->path() == path, "a tile can be named in two ways");
}

void try_saved_state(const std::string& text) {
  const auto state = parse_saved_state(text);
  if (!state) return;
  const auto again = parse_saved_state(json_of(*state));
  require(again.ok() && again->heads.size() == state->heads.size() && again->keys == state->keys,
          "what was saved is read back otherwise");
}

// The lines are "type body"; the daemon's fold and the verifier's must agree on all of them.
void try_fold(const std::string& text) {
  events::State state;
  Fold fold("r");
  std::string_view rest(text);
  for (std::int64_t seq = 0; !rest.empty() && seq < 40; ++seq) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string body(line.substr(std::min(space + 1, line.size())));
    const auto document = json::parse(body);
    if (!document || !document->root().is(json::Kind::object)) continue;
    events::Event event;
    event.seq = event.run_seq = seq;
    event.run_no = 1;
    event.run_id = "r";
    event.recorded_at = {1'795'000'000'000'000 + seq};
    event.type = line.substr(0, space);
    event.body = body;
    event.salt.emplace();
    if (!events::find_type(event.type) && !events::is_foreign(event.type)) continue;
    if (!events::spilled_patch_of(event).empty()) continue;
    FoldEvent read;
    read.seq = read.run_seq = seq;
    read.recorded_at = event.recorded_at;
    read.origin = static_cast<std::int64_t>(event.origin);
    read.type = event.type;
    read.run_hash = to_hex(event.run_hash);
    read.body = body;
    state.apply(event);
    fold.apply(read, {});
  }
  const std::string document = state.document();
  require(document == fold.document(), "the two folds differ");
  const auto again = events::State::parse(document);
  require(again.ok() && again->document() == document, "a state is read back otherwise");
}

// Writes a ustar entry. The seeds are uncompressed: mutations of compressed bytes would rarely reach the parser.
std::string tar_entry(const std::string& path, const std::string& bytes) {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", bytes.size());
  put(0, path);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(size, sizeof size, "%06o", sum);
  put(148, size);
  header[154] = '\0';
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string copy_message() {
  const std::string header("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", 19);
  const std::string row("\0\4\0\0\0\2\0\7\xff\xff\xff\xff\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\3abc", 31);
  return header + row;
}

std::string saved_state() {
  SavedState state;
  state.root = sha256("");
  state.keys = unknown_keys();
  state.rotations.push_back({3, Time{0}, R"({"new_key":"k","reason":"r"})"});
  state.heads[1] = {3, std::string(32, 'h'), Stand::not_started, 2, "01a201f4-8535-793f-8007-fa9a2b0449d7", false};
  state.run_ids.emplace(1, "r");
  return json_of(state);
}

std::string folded_lines() {
  return "run.started {\"run_id\":\"r\",\"agent\":{\"name\":\"a\",\"id\":1},\"labels\":{\"k\":1.50}}\n"
         "state.patched {\"format\":\"merge\",\"patch\":{\"a\":[1,{\"b\":null}],\"c\":{}}}\n"
         "state.patched {\"format\":\"json_patch\",\"patch\":[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":\"x\"},{\"op\":\"copy\",\"from\":\"/a\","
         "\"path\":\"/c/~1\"},{\"op\":\"test\",\"path\":\"/a/0\",\"value\":1}]}\n"
         "tool.called {\"call_id\":\"i\",\"name\":\"ls\",\"kind\":\"function\"}\nplan.updated {\"items\":[{\"id\":\"1\",\"text\":\"t\",\"status\":\"done\"}]}\n"
         "model.answered {\"call_id\":\"m\",\"usage\":{\"input_tokens\":3,\"cost\":{\"amount\":\"0.25\",\"currency\":\"USD\"}}}\n"
         "run.ended {\"outcome\":\"success\"}\n";
}

}  // namespace

std::vector<Target> verify_targets() {
  const std::string proof = golden("audit/event.tlog-proof");
  const std::string extra = proof.substr(proof.find("extra ") + 6);
  std::string events, index, plain;
  std::string nodes = "0 1 " + proof.substr(proof.find("\n", proof.find("index ")) + 1, 44);
  with_file(golden("audit/run.muniment.tar.zst"), [&](const std::string& path) {
    auto tar = TarReader::open(path);
    for (auto entry = tar->next(); entry && *entry; entry = tar->next()) {
      std::string bytes;
      for (auto piece = tar->read(); piece && !piece->empty(); piece = tar->read()) bytes += *piece;
      plain += tar_entry((*entry)->path, bytes);
      if ((*entry)->path == "bundle.json") index = bytes;
      if ((*entry)->path == "events.jsonl") events = bytes;
    }
    plain += std::string(1024, '\0');
  });
  require(!events.empty() && !index.empty(), "the golden bundle has no events");
  return {
      {"checkpoint", try_checkpoint, {golden("audit/checkpoint"), golden("audit/cosigned"), golden("audit/unsigned")}},
      {"proof", try_proof, {proof}},
      {"receipt", try_receipt, {golden("audit/receipt.json")}},
      {"entry",
       [](const std::string& text) { (void)decode_entry(text).ok(); },
       {from_base64(text_of_first_line(extra)).value()}},
      {"bundle_event",
       [](const std::string& text) { (void)parse_bundle_event(text).ok(); },
       {text_of_first_line(events)}},
      {"bundle_index", [](const std::string& text) { (void)parse_bundle_index(text).ok(); }, {index}},
      {"bundle_node",
       [](const std::string& text) { (void)parse_node(text).ok(); },
       {nodes, "63 9223372036854775807 x"}},
      {"bundle", try_bundle, {plain, golden("audit/run.muniment.tar.zst")}},
      {"saved_state", try_saved_state, {saved_state()}},
      {"copy_row", try_copy, {copy_message(), copy_message().substr(19), std::string("\xff\xff", 2)}},
      {"tile_name", try_tile_name, {"tile/0/000", "tile/2/x001/x234/067.p/7", "tile/entries/x999/x999/999"}},
      {"fold", try_fold, {folded_lines()}},
  };
}

}  // namespace muniment::fuzz
