// Checks submitted checkpoints and cosigns them.
#include "audit/witness/witness.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "events/merkle_proof.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t proof_hashes_max = 63;

struct AddCheckpoint {
  std::int64_t old_size = 0;
  std::vector<Hash> proof;
  std::string_view note;
};

std::optional<AddCheckpoint> parse_add_checkpoint(std::string_view body) {
  AddCheckpoint request;
  const auto old = take_line(body);
  if (!old || !old->starts_with("old ")) return std::nullopt;
  const auto size = parse_decimal(old->substr(4));
  if (!size) return std::nullopt;
  request.old_size = *size;
  for (;;) {
    const auto next = take_line(body);
    if (!next) return std::nullopt;
    if (next->empty()) break;
    const auto hash = hash_from_base64(*next);
    if (!hash || request.proof.size() == proof_hashes_max) return std::nullopt;
    request.proof.push_back(*hash);
  }
  request.note = body;
  return request;
}

WitnessAnswer answer(int status, std::string text) { return {status, std::move(text) + "\n", false}; }

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", path, errno);
  return success();
}

}  // namespace

std::string add_checkpoint_request(std::int64_t old_size, const std::vector<Hash>& proof, std::string_view note) {
  std::string body = fmt::format("old {}\n", old_size);
  for (const Hash& hash : proof) body += to_base64(view(hash)) + "\n";
  return body.append("\n").append(note);
}

Result<std::unique_ptr<Witness>> Witness::open(const std::string& folder, const std::string& name,
                                               std::vector<VerifierKey> logs, Clock& clock) {
  RETURN_IF_ERROR(make_folder(folder));
  auto text = read_file(folder + "/witness.key", limits::note_bytes_max);
  if (!text && text.error().code != Errc::not_found) return std::move(text).error();
  if (!text) {
    const NoteSigner made(name, KeyType::cosignature, SigningKey::generate());
    RETURN_IF_ERROR(write_file_durably(folder + "/witness.key", made.text() + "\n", 0600));
    text = made.text();
  }
  ASSIGN_OR_RETURN(NoteSigner signer, NoteSigner::parse(*text));
  if (signer.verifier().type != KeyType::cosignature)
    return Error(Errc::invalid_argument,
                 folder +
                     "/witness.key: expected a cosignature key, found another type. Move the file away; the next start "
                     "creates a new key");
  RETURN_IF_ERROR(write_file_durably(folder + "/witness.pub", signer.verifier().text() + "\n", 0644));
  return std::unique_ptr<Witness>(new Witness(folder, std::move(signer), std::move(logs), clock));
}

Result<std::optional<Checkpoint>> Witness::held(const std::string& origin) const {
  const auto text = read_file(folder_ + "/" + to_hex(sha256(origin)) + "/checkpoint", limits::note_bytes_max);
  if (!text && text.error().code == Errc::not_found) return std::optional<Checkpoint>();
  if (!text) return text.error();
  ASSIGN_OR_RETURN(const Note note, Note::parse(*text));
  ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::parse(note.text));
  return std::optional<Checkpoint>(std::move(checkpoint));
}

Status Witness::keep(const Checkpoint& checkpoint, const std::string& note) {
  const std::string folder = folder_ + "/" + to_hex(sha256(checkpoint.origin));
  RETURN_IF_ERROR(make_folder(folder));
  return write_file_durably(folder + "/checkpoint", note, 0644);
}

WitnessAnswer Witness::add_checkpoint(std::string_view body) {
  const auto request = parse_add_checkpoint(body);
  if (!request)
    return answer(400, "the body is malformed. Expected: old SIZE, hashes in base64, an empty line, a checkpoint");
  auto note = Note::parse(request->note);
  if (!note) return answer(400, note.error().message);
  const auto checkpoint = Checkpoint::parse(note->text);
  if (!checkpoint) return answer(400, checkpoint.error().message);
  std::vector<VerifierKey> keys;
  std::copy_if(logs_.begin(), logs_.end(), std::back_inserter(keys),
               [&](const VerifierKey& key) { return key.name == checkpoint->origin; });
  if (keys.empty()) return answer(404, "this witness has no key for the log " + checkpoint->origin);
  const auto signers = signers_of(*note, keys);
  if (!signers || signers->empty()) return answer(403, "no signature by a key that this witness trusts");
  if (request->old_size > checkpoint->size) return answer(400, "the old size is larger than the new one");

  const std::lock_guard lock(mutex_);
  const auto before = held(checkpoint->origin);
  if (!before) return answer(500, before.error().message);
  const std::int64_t held_size = *before ? (*before)->size : 0;
  if (request->old_size != held_size) return {409, fmt::format("{}\n", held_size), true};
  const Hash held_root = *before ? (*before)->root : sha256("");
  if (!events::proves_consistency(held_size, held_root, checkpoint->size, checkpoint->root, request->proof) ||
      (checkpoint->size == 0 && checkpoint->root != sha256(""))) {
    return answer(422, fmt::format("this log did not grow from the {} events that were witnessed", held_size));
  }
  const NoteSignature cosignature =
      signer_.sign(note->text, static_cast<std::uint64_t>(clock_.now().micros / 1'000'000));
  // Keeps only the signatures of the log and of this witness; others prove nothing.
  std::erase_if(note->signatures, [&](const NoteSignature& signature) {
    return std::none_of(keys.begin(), keys.end(),
                        [&](const VerifierKey& key) { return key.id == signature.id && key.name == signature.name; });
  });
  note->signatures.push_back(cosignature);
  if (Status kept = keep(*checkpoint, note->signed_text()); !kept) return answer(500, kept.error().message);
  return {200, cosignature.line(), false};
}

WitnessAnswer Witness::checkpoint(std::string_view origin_hash) const {
  if (!hash_from_hex(origin_hash)) return answer(404, "not found");
  const std::lock_guard lock(mutex_);
  auto text = read_file(folder_ + "/" + std::string(origin_hash) + "/checkpoint", limits::note_bytes_max);
  if (!text) return answer(text.error().code == Errc::not_found ? 404 : 500, text.error().message);
  return {200, *std::move(text), false};
}

}  // namespace muniment::audit
