#include "capsule/encryption.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "capsule/file.hpp"

namespace muniment::capsule {
namespace {

constexpr std::uint32_t version = 1;
constexpr std::size_t piece_bytes = 64 << 10, sealed_bytes = piece_bytes + crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t salt_at = 32, stream_at = salt_at + crypto_pwhash_SALTBYTES;
constexpr std::size_t header_bytes = stream_at + crypto_secretstream_xchacha20poly1305_HEADERBYTES;
// A file of another person decides what its key costs, up to these.
constexpr std::uint64_t operations_max = 16, memory_max = std::uint64_t{1} << 30;

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// A key that is wiped at its end.
struct StreamKey {
  std::array<unsigned char, crypto_secretstream_xchacha20poly1305_KEYBYTES> bytes{};
  crypto_secretstream_xchacha20poly1305_state state{};

  ~StreamKey() {
    ::sodium_memzero(bytes.data(), bytes.size());
    ::sodium_memzero(&state, sizeof state);
  }
  Status derive(std::string_view passphrase, std::string_view salt, std::uint64_t operations, std::uint64_t memory) {
    if (::sodium_init() < 0) return Error(Errc::system_error, "libsodium cannot be initialized");
    if (passphrase.empty()) return Error(Errc::invalid_argument, "the passphrase is empty");
    if (::crypto_pwhash(bytes.data(), bytes.size(), passphrase.data(), passphrase.size(), bytes_of(salt), operations,
                        static_cast<std::size_t>(memory), crypto_pwhash_ALG_ARGON2ID13) != 0)
      return Error(Errc::unavailable, fmt::format("{} MiB of memory are needed to derive the key", memory >> 20));
    return success();
  }
};

template <typename T>
T number_at(std::string_view header, std::size_t at) {
  T value{};
  std::memcpy(&value, header.data() + at, sizeof value);
  return value;
}

std::string new_header() {
  std::string header(encrypted_magic);
  header.resize(header_bytes, '\0');
  const std::uint64_t operations = crypto_pwhash_OPSLIMIT_MODERATE, memory = crypto_pwhash_MEMLIMIT_MODERATE;
  std::memcpy(header.data() + 8, &version, sizeof version);
  std::memcpy(header.data() + 16, &operations, sizeof operations);
  std::memcpy(header.data() + 24, &memory, sizeof memory);
  ::randombytes_buf(header.data() + salt_at, crypto_pwhash_SALTBYTES);
  return header;
}

Result<Fd> create_private(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) return file_error("creating", path, errno);
  return file;
}

Status encrypt_into(const RegularFile& from, const Fd& to, const std::string& name, std::string_view passphrase) {
  std::string header = new_header();
  StreamKey key;
  RETURN_IF_ERROR(key.derive(passphrase, std::string_view(header).substr(salt_at, crypto_pwhash_SALTBYTES),
                             number_at<std::uint64_t>(header, 16), number_at<std::uint64_t>(header, 24)));
  ::crypto_secretstream_xchacha20poly1305_init_push(&key.state, bytes_of(header) + stream_at, key.bytes.data());
  RETURN_IF_ERROR(write_all(to.get(), header, name));
  std::string sealed(sealed_bytes, '\0');
  for (std::int64_t at = 0;;) {
    ASSIGN_OR_RETURN(const std::string piece, read_at(from.fd, at, piece_bytes));
    at += std::ssize(piece);
    const bool last = piece.size() < piece_bytes;
    unsigned long long size = 0;
    ::crypto_secretstream_xchacha20poly1305_push(
        &key.state, bytes_of(sealed), &size, bytes_of(std::string_view(piece)), piece.size(),
        bytes_of(std::string_view(header)), header.size(),
        last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
    RETURN_IF_ERROR(write_all(to.get(), std::string_view(sealed).substr(0, size), name));
    if (last) return success();
  }
}

Status decrypt_into(const RegularFile& from, const Fd& to, const std::string& name, std::string_view passphrase) {
  ASSIGN_OR_RETURN(const std::string header, read_at(from.fd, 0, header_bytes));
  if (header.size() < header_bytes || !header.starts_with(encrypted_magic))
    return Error(Errc::invalid_argument, "this is no encrypted capsule");
  if (const auto found = number_at<std::uint32_t>(header, 8); found != version)
    return Error(Errc::invalid_argument,
                 fmt::format("the encryption has format {}, this program reads {}", found, version));
  const auto operations = number_at<std::uint64_t>(header, 16), memory = number_at<std::uint64_t>(header, 24);
  if (operations < crypto_pwhash_OPSLIMIT_MIN || operations > operations_max || memory < crypto_pwhash_MEMLIMIT_MIN ||
      memory > memory_max)
    return Error(Errc::invalid_argument, fmt::format("the key costs {} passes over {} MiB, limit {} over {}",
                                                     operations, memory >> 20, operations_max, memory_max >> 20));
  StreamKey key;
  RETURN_IF_ERROR(
      key.derive(passphrase, std::string_view(header).substr(salt_at, crypto_pwhash_SALTBYTES), operations, memory));
  const Error refused(Errc::denied, "the passphrase is wrong, or the file was changed");
  if (::crypto_secretstream_xchacha20poly1305_init_pull(&key.state, bytes_of(std::string_view(header)) + stream_at,
                                                        key.bytes.data()) != 0)
    return refused;
  std::string piece(piece_bytes, '\0');
  unsigned char tag = 0;
  std::int64_t end = header_bytes;
  while (tag != crypto_secretstream_xchacha20poly1305_TAG_FINAL) {
    ASSIGN_OR_RETURN(const std::string sealed, read_at(from.fd, end, sealed_bytes));
    unsigned long long size = 0;
    if (sealed.size() < crypto_secretstream_xchacha20poly1305_ABYTES ||
        ::crypto_secretstream_xchacha20poly1305_pull(&key.state, bytes_of(piece), &size, &tag,
                                                     bytes_of(std::string_view(sealed)), sealed.size(),
                                                     bytes_of(std::string_view(header)), header.size()) != 0)
      return end == header_bytes ? refused
                                 : Error(Errc::corrupt, fmt::format("the file is damaged or cut at byte {}", end));
    RETURN_IF_ERROR(write_all(to.get(), std::string_view(piece).substr(0, size), name));
    end += std::ssize(sealed);
  }
  ASSIGN_OR_RETURN(const std::string more, read_at(from.fd, end, 1));
  return more.empty() ? success() : Status(Error(Errc::corrupt, fmt::format("bytes follow the end at byte {}", end)));
}

using Convert = Status (*)(const RegularFile& from, const Fd& to, const std::string& name, std::string_view passphrase);

Status convert(const std::string& from, const std::string& to, std::string_view passphrase, Convert write) {
  RETURN_IF_ERROR(check_new(to));
  ASSIGN_OR_RETURN(const RegularFile source, open_named(from));
  const std::string anew = name_of_draft(to);
  ASSIGN_OR_RETURN(const Fd draft, create_private(anew));
  Status written = write(source, draft, to, passphrase);
  if (!written) written = std::move(written).error().within(from);
  if (written && ::fsync(draft.get()) != 0) written = file_error("syncing", to, errno);
  return finish_draft(anew, to, std::move(written));
}

}  // namespace

Status encrypt(const std::string& from, const std::string& to, std::string_view passphrase) {
  ASSIGN_OR_RETURN(const auto opened, CapsuleFile::open(from, Access::read));
  return convert(from, to, passphrase, encrypt_into);
}

Status decrypt(const std::string& from, const std::string& to, std::string_view passphrase) {
  return convert(from, to, passphrase, decrypt_into);
}

}  // namespace muniment::capsule
