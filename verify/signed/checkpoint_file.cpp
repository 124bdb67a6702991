#include "verify/signed/checkpoint_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace muniment::verify {
namespace {

Signatures facts_of(const CheckpointFile& file, const std::vector<VerifierKey>& keys,
                    const std::vector<Signed>& signers) {
  Signatures facts;
  const std::int64_t upto = file.checkpoint.size - 1;
  for (const Signed& signer : signers) {
    if (signer.key->type == KeyType::ed25519 && signer.key->name == file.checkpoint.origin) {
      facts.keys.push_back({signer.key->text(), -1, upto});
      facts.upto = upto;
    }
  }
  for (const VerifierKey& key : keys) {
    if (key.type != KeyType::cosignature) continue;
    const auto signer =
        std::find_if(signers.begin(), signers.end(), [&key](const Signed& one) { return *one.key == key; });
    const bool vouches = signer != signers.end();
    facts.witnesses.push_back(
        {key.name, vouches ? upto : -1, {vouches ? static_cast<std::int64_t>(signer->time_s) * 1'000'000 : 0}});
  }
  facts.newest = file.note ? file.note->signed_text() : "";
  return facts;
}

}  // namespace

bool one_is_of(const Uuid& log_id, std::span<const VerifierKey> keys) {
  return std::ranges::any_of(keys, [end = "/" + log_id.text()](const VerifierKey& key) {
    return key.type == KeyType::ed25519 && key.name.ends_with(end);
  });
}

std::string wrong_key_text(const std::string& origin, const Note& note, std::span<const VerifierKey> keys) {
  std::vector<std::string> needed, given;
  for (const NoteSignature& signature : note.signatures)
    needed.push_back(fmt::format("{}+{:08x}", signature.name, signature.id));
  for (const VerifierKey& key : keys) given.push_back(fmt::format("{}+{:08x}", key.name, key.id));
  const std::string signers =
      needed.empty() ? "no key (the log had no key yet, or the signatures were removed)" : joined(needed, ", ");
  return fmt::format("a key of {} is needed; signed by {}, the keys that were given are {}", origin, signers,
                     joined(given, ", "));
}

Result<CheckpointFile> parse_checkpoint_file(std::string_view text) {
  CheckpointFile file;
  auto note = Note::parse(text);
  if (!note) {
    if (text.ends_with("\n\n")) text.remove_suffix(1);  // an unsigned note has no signature lines
    auto checkpoint = Checkpoint::parse(text);
    if (!checkpoint) return std::move(note).error();
    file.checkpoint = *std::move(checkpoint);
    return file;
  }
  ASSIGN_OR_RETURN(file.checkpoint, Checkpoint::parse(note->text));
  file.note = *std::move(note);
  return file;
}

Signatures judge_checkpoint(const CheckpointFile& file, const Uuid& log_id, const std::vector<VerifierKey>& keys,
                            Findings& findings) {
  const auto found = [&](std::string expected, std::string actual) {
    findings.add({Check::checkpoint_signature, -1, "", std::move(expected), std::move(actual)});
  };
  Signatures unsigned_facts;
  unsigned_facts.checkpoints = 1;
  unsigned_facts.without_key = keys.empty() && file.note;
  if (!file.checkpoint.origin.ends_with("/" + log_id.text())) {
    found("an origin line that ends with " + log_id.text(), file.checkpoint.origin);
  }
  if (keys.empty()) return unsigned_facts;
  if (!file.note) {  // a single note cannot show whether the log had no key yet or the signatures were removed
    unsigned_facts.wrong_key = wrong_key_text(file.checkpoint.origin, {}, keys);
    return unsigned_facts;
  }
  const auto signers = signers_of(*file.note, keys);
  if (!signers) {
    found("signatures that verify", signers.error().message);
    return unsigned_facts;
  }
  Signatures facts = facts_of(file, keys, *signers);
  facts.checkpoints = 1;
  if (facts.keys.empty()) facts.wrong_key = wrong_key_text(file.checkpoint.origin, *file.note, keys);
  return facts;
}

}  // namespace muniment::verify
