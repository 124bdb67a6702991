// Reads, writes and rotates the files of the signing keys.
#include "audit/keyring.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/files/file.hpp"
#include "base/process/failpoint.hpp"

namespace muniment::audit {
namespace {

constexpr std::size_t key_file_bytes_max = 64 * 1024;
constexpr std::string_view public_head =
    "# The keys that sign this log, oldest first. Keep a copy where its operator cannot change it.\n";

Status rename_durably(const std::string& from, const std::string& to, const std::string& folder) {
  if (::rename(from.c_str(), to.c_str()) != 0) return file_error("renaming", from, errno);
  ASSIGN_OR_RETURN(const Fd opened, open_folder(folder));
  if (::fsync(opened.get()) != 0) return file_error("syncing", folder, errno);
  return success();
}

}  // namespace

Result<Keyring> Keyring::open(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error("making", folder, errno);
  Keyring keys(folder);
  RETURN_IF_ERROR(keys.read());
  return keys;
}

Result<std::optional<NoteSigner>> Keyring::read_signer(const std::string& name) const {
  auto signer = NoteSigner::read(path(name));
  if (!signer && signer.error().code == Errc::not_found) return std::optional<NoteSigner>();
  if (!signer) return std::move(signer).error();
  return std::optional<NoteSigner>(*std::move(signer));
}

Status Keyring::read() {
  ASSIGN_OR_RETURN(current_, read_signer("log.key"));
  ASSIGN_OR_RETURN(old_, read_signer("log.key.old"));
  ASSIGN_OR_RETURN(next_, read_signer("log.key.next"));
  verifiers_.clear();
  last_signed_.reset();
  if (auto text = read_file(path("log.pub"), key_file_bytes_max)) {
    auto keys = parse_verifier_keys(*text);
    if (!keys) return Error(Errc::corrupt, fmt::format("{}: {}", path("log.pub"), keys.error().message));
    verifiers_ = *std::move(keys);
  } else if (text.error().code != Errc::not_found) {
    return std::move(text).error();
  }
  if (current_ && (verifiers_.empty() || verifiers_.back() != current_->verifier()))
    verifiers_.push_back(current_->verifier());
  auto text = read_file(path("last_signed"), key_file_bytes_max);
  if (!text) return text.error().code == Errc::not_found ? success() : Status(std::move(text).error());
  const auto broken = [&](const Error& error) {
    return Error(Errc::corrupt, fmt::format("{}: {}", path("last_signed"), error.message));
  };
  const auto note = Note::parse(*text);
  if (!note) return broken(note.error());
  const auto checkpoint = Checkpoint::parse(note->text);
  if (!checkpoint) return broken(checkpoint.error());
  last_signed_ = LastSigned{*checkpoint, *text};
  return success();
}

bool Keyring::signed_last() const {
  const auto note =
      last_signed_ ? Note::parse(last_signed_->note) : Result<Note>(Error(Errc::not_found, "nothing was signed"));
  if (!note) return false;
  std::vector<VerifierKey> own;
  if (current_) own.push_back(current_->verifier());
  if (old_) own.push_back(old_->verifier());
  const auto signers = signers_of(*note, own.empty() ? verifiers_ : own);
  return signers && !signers->empty();
}

Note Keyring::sign(const Checkpoint& checkpoint) const {
  Note note;
  note.text = checkpoint.text();
  if (old_) note.signatures.push_back(old_->sign(note.text));
  note.signatures.push_back(current_->sign(note.text));
  return note;
}

Status Keyring::remember(const Checkpoint& checkpoint, const std::string& note) {
  RETURN_IF_ERROR(write_file_durably(path("last_signed"), note, 0644));
  last_signed_ = LastSigned{checkpoint, note};
  return success();
}

Status Keyring::prepare_next(const std::string& name) {
  NoteSigner made(name, KeyType::ed25519, SigningKey::generate());
  RETURN_IF_ERROR(write_file_durably(path("log.key.next"), made.text() + "\n", 0600));
  next_ = std::move(made);
  return success();
}

Status Keyring::adopt_next() {
  if (!next_) return Error(Errc::system_error, "no key was prepared");
  std::string text(public_head);
  for (const VerifierKey& key : verifiers_) {
    if (key != next_->verifier()) text += key.text() + "\n";
  }
  text += next_->verifier().text() + "\n";
  RETURN_IF_ERROR(write_file_durably(path("log.pub"), text, 0644));
  const Status aside = current_ ? rename_durably(path("log.key"), path("log.key.old"), folder_) : success();
  if (!aside && aside.error().code != Errc::not_found)
    return aside;  // the file was removed meanwhile; the key is lost and cannot sign
  FAILPOINT("keys.after_old");
  RETURN_IF_ERROR(rename_durably(path("log.key.next"), path("log.key"), folder_));
  return read();
}

Status Keyring::drop_next() {
  if (::unlink(path("log.key.next").c_str()) != 0 && errno != ENOENT)
    return file_error("removing", path("log.key.next"), errno);
  next_.reset();
  return success();
}

Status Keyring::forget_old() {
  if (::unlink(path("log.key.old").c_str()) != 0 && errno != ENOENT)
    return file_error("removing", path("log.key.old"), errno);
  old_.reset();
  return success();
}

}  // namespace muniment::audit
