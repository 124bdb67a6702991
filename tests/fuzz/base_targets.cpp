// Targets of parsers in base/: JSON, signed notes and keys, numbers and times, the configuration, archives.
#include "base/clock.hpp"
#include "base/config/config.hpp"
#include "base/crypto/base64.hpp"
#include "base/crypto/sha256.hpp"
#include "base/crypto/signed_note.hpp"
#include "base/files/tar_archive.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/json/json_tree.hpp"
#include "base/json/json_walk.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "fuzz/target.hpp"

namespace muniment::fuzz {
namespace {

void visit(const json::Value& value) {
  value.as_bool();
  value.as_int();
  if (value.is(json::Kind::number)) require(value.as_double().has_value(), "a number has no value");
  if (const auto text = value.as_string()) {
    require(first_invalid_utf8(*text) == std::string::npos, "a string is not UTF-8");
    require(text->find('\0') == std::string::npos, "a string holds NUL");
  }
  for (json::Value part : value) visit(part);
}

void try_json(const std::string& text) {
  const auto document = json::parse(text);
  if (!document) {
    std::vector<json::Node> nodes;
    const bool only_simdjson_refuses = json::walk(text, limits::json_depth_max, nodes).ok() &&
                                       first_invalid_utf8(text) == std::string::npos &&
                                       document.error().message.find("1.797e308") == std::string::npos;
    require(!only_simdjson_refuses, "simdjson refuses what the walk accepts");
    return;
  }
  visit(document->root());
  const std::string canonical = json::canonical(document->root());
  const auto again = json::parse(canonical);
  require(again.ok(), "the canonical text is not accepted");
  require(json::canonical(again->root()) == canonical, "the canonical text is not canonical");
  const json::Tree tree(document->root());
  require(tree.canonical() == canonical, "the tree writes another text");
  require(tree.bytes() == canonical.size(), "the tree counts other bytes");
  json::Tree patched = tree;
  json::merge_patch(patched, document->root());
  require(patched.bytes() == patched.canonical().size(), "the merged tree counts other bytes");
}

// The first line is the document, the second is the patch.
void try_patch(const std::string& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string before = text.substr(0, end), patch_text = text.substr(std::min(end + 1, text.size()));
  const auto document = json::parse(before), patch = json::parse(patch_text);
  if (!document || !patch) return;
  json::Tree tree(document->root());
  const std::string was = tree.canonical();
  if (!json::json_patch(tree, patch->root())) {
    require(tree.canonical() == was, "a patch that was refused changed something");
    return;
  }
  require(tree.bytes() == tree.canonical().size(), "the patched tree counts other bytes");
  const std::string written = tree.canonical();
  require(json::parse(written).ok() || tree.levels() > 64, "the patched tree writes no JSON");
}

void try_note(const std::string& text) {
  static const VerifierKey key = parse_verifier_keys(golden("audit/log.pub"))->front();
  if (const auto lines = Note::parse_signatures(text)) {
    for (const NoteSignature& one : *lines)
      require(text.find(one.line()) != std::string::npos, "a signature is written in another way");
  }
  const auto note = Note::parse(text);
  if (!note) return;
  require(note->signed_text() == text, "a note can be written in two ways");
  (void)signers_of(*note, {&key, 1}).ok();
  const auto checkpoint = Checkpoint::parse(note->text);
  if (checkpoint) require(checkpoint->text() == note->text, "a checkpoint can be written in two ways");
}

void try_keys(const std::string& text) {
  const auto key = VerifierKey::parse(text);
  if (key) require(key->text() == text, "a key can be written in two ways");
  const auto signer = NoteSigner::parse(text);
  if (signer) require(text.starts_with(signer->text()), "a private key can be written in two ways");
  if (const auto keys = parse_verifier_keys(text)) {
    for (const VerifierKey& one : *keys)
      require(text.find(one.text()) != std::string::npos, "a key comes from nowhere");
  }
}

void try_scalars(const std::string& text) {
  if (const auto time = parse_time(text))
    require(parse_time(format_time(*time)) == time, "a time is read back otherwise");
  if (const auto id = parse_uuid(text)) require(parse_uuid(id->text()) == id, "a UUID is read back otherwise");
  if (const auto bytes = from_base64(text)) require(to_base64(*bytes) == text, "base64 can be written in two ways");
  if (const auto number = parse_decimal(text))
    require(std::to_string(*number) == text, "a number can be written in two ways");
  if (const auto hash = hash_from_hex(text)) require(to_hex(*hash) == text, "a hash can be written in two ways");
  (void)check_run_id(text).ok();
  (void)check_step_id(text).ok();
  std::string_view rest(text);
  std::size_t bytes = 0;
  while (const auto line = take_line(rest)) bytes += line->size() + 1;
  require(bytes + rest.size() == text.size(), "a line is lost");
  require(first_invalid_utf8(escape_for_terminal(text)) == std::string::npos ||
              first_invalid_utf8(text) != std::string::npos,
          "what is shown is not UTF-8");
}

void try_config(const std::string& text) {
  with_file(text, [](const std::string& path) {
    ConfigInputs inputs;
    inputs.file = path;
    inputs.environment = [](const char*) -> const char* { return nullptr; };
    inputs.is_root = false;
    inputs.flags = {{"data", "/nowhere"}};
    const LoadedConfig loaded = load_config(inputs);
    for (const ConfigKey& key : config_table()) (void)shown_value(loaded.values, key);
    require(loaded.values.workers >= 1 && loaded.values.workers <= 256, "a value outside its bounds is in force");
  });
}

void try_tar(const std::string& bytes) {
  with_file(bytes, [](const std::string& path) {
    auto tar = TarReader::open(path);
    if (!tar) return;
    std::int64_t read = 0;
    for (int entries = 0; entries < 64; ++entries) {
      const auto entry = tar->next();
      if (!entry || !*entry) return;
      require((*entry)->size_bytes >= 0 && !(*entry)->path.empty(), "an entry without a name or a size");
      for (std::int64_t of_entry = 0; of_entry < 1 << 20 && read < 1 << 22;) {
        const auto piece = tar->read();
        if (!piece || piece->empty()) break;
        of_entry += static_cast<std::int64_t>(piece->size());
        read += static_cast<std::int64_t>(piece->size());
      }
    }
  });
}

}  // namespace

std::vector<Target> base_targets() {
  const std::string cosigned = golden("audit/cosigned"),
                    key = parse_verifier_keys(golden("audit/log.pub"))->front().text();
  return {
      {"json",
       try_json,
       {R"({"a":[1,-0.5e3,"\u00e9\n",true,null],"b":{"":{}}})", golden("events/run.annotated.json"),
        "[1.0,1e308,\"\xc3\xa9\"]"}},
      {"json_patch",
       try_patch,
       {"{\"a\":[1,{\"b\":2}],\"c\":{}}\n[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":[1]},{\"op\":\"move\",\"from\":\"/a/1\",\"path\":\"/c/d\"},"
        "{\"op\":\"test\",\"path\":\"/a/0\",\"value\":1},{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c/e\"},{\"op\":\"remove\",\"path\":\"/a/0\"},"
        "{\"op\":\"replace\",\"path\":\"/c\",\"value\":null}]"}},
      {"note", try_note, {golden("audit/checkpoint"), cosigned, cosigned.substr(cosigned.find("\n\n") + 2)}},
      {"keys",
       try_keys,
       {key, text_of_first_line(golden("audit/log.key")), golden("audit/witness.pub"), "# a comment\n" + key + "\n"}},
      {"scalars",
       try_scalars,
       {"2026-11-21T14:02:11.000123Z", "2026-11-21t14:02:60+23:59", "01a201f4-8535-793f-8007-fa9a2b0449d7",
        "AAECAwQ=", "9223372036854775807", std::string(64, 'a'), "run.1_x-Y", "a\nb\r\n\x1b[31m\xe2\x80\xae"}},
      {"config",
       try_config,
       {"database = \"postgresql:///x\"\nworkers = 4\nartifact_bytes_max = \"4 GiB\"\nallowed_uids = [1, 2]\n# c\n[table]\na = 1\n",
        "log_level = 'debug'\nallowed_uids = \"7,8\"\ncheckpoint_ms = 0x10\ndisk_reserve_percent = 1979-05-27\n"}},
      {"tar", try_tar, {golden("audit/run.muniment.tar.zst")}},
  };
}

}  // namespace muniment::fuzz
