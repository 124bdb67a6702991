#include "base/crypto/signed_note.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace muniment {
namespace {

constexpr std::size_t signatures_max = 64;
constexpr std::string_view dash = "\xE2\x80\x94 ";  // U+2014 and a space
constexpr std::string_view private_prefix = "PRIVATE+KEY+";

std::string big_endian(std::uint64_t number, std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[bytes - 1 - i] = static_cast<char>(number >> (8 * i) & 0xFF);
  return out;
}

std::uint64_t from_big_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

template <std::size_t N>
std::string_view view_of(const std::array<std::uint8_t, N>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), N};
}

bool good_name(std::string_view name) {
  return !name.empty() && first_invalid_utf8(name) == std::string_view::npos &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == '+' || c == 0x7F; });
}

std::uint32_t key_id(std::string_view name, KeyType type, const PublicKey& key) {
  const char type_byte = static_cast<char>(type);
  const Hash hash = sha256({name, "\n", std::string_view(&type_byte, 1), view_of(key)});
  return static_cast<std::uint32_t>(from_big_endian(view(hash).substr(0, 4)));
}

// Parsed form of "name+id+base64", with 32 bytes after the type, public or private.
struct KeyText {
  std::string name;
  std::uint32_t id = 0;
  KeyType type = KeyType::ed25519;
  std::array<std::uint8_t, 32> bytes{};
};

Result<KeyText> parse_key_text(std::string_view text) {
  const auto bad = [](std::string_view why) {
    return Error(Errc::invalid_argument, fmt::format("not a key of the form name+id+base64: {}", why));
  };
  const std::size_t first = text.find('+');
  const std::size_t second = first == std::string_view::npos ? first : text.find('+', first + 1);
  if (second == std::string_view::npos) return bad("it must have two +");
  KeyText key;
  key.name = text.substr(0, first);
  if (!good_name(key.name)) return bad("the name is empty or has spaces");
  const std::string_view digits = text.substr(first + 1, second - first - 1);
  const auto id = from_hex(digits);
  if (!id || id->size() != 4 || to_hex(*id) != digits) return bad("the id is not 8 hexadecimal digits in lower case");
  key.id = static_cast<std::uint32_t>(from_big_endian(*id));
  const auto bytes = from_base64(text.substr(second + 1));
  if (!bytes || bytes->size() != 1 + key.bytes.size())
    return bad("the key must be base64 of one type byte and 32 key bytes");
  key.type = static_cast<KeyType>(bytes->front());
  if (key.type != KeyType::ed25519 && key.type != KeyType::cosignature)
    return bad("its type is neither Ed25519 nor a cosignature's");
  std::memcpy(key.bytes.data(), bytes->data() + 1, key.bytes.size());
  return key;
}

std::string key_text(const VerifierKey& key, std::string_view bytes) {
  return fmt::format("{}+{:08x}+{}", key.name, key.id, to_base64(static_cast<char>(key.type) + std::string(bytes)));
}

// Returns the bytes that a key of this type signs.
std::string signed_bytes(KeyType type, std::string_view text, std::uint64_t time_s) {
  if (type == KeyType::ed25519) return std::string(text);
  return fmt::format("cosignature/v1\ntime {}\n{}", time_s, text);
}

Error corrupt_note(std::string_view why) { return {Errc::corrupt, fmt::format("not a signed note: {}", why)}; }

Result<NoteSignature> parse_signature(std::string_view line) {
  if (!line.starts_with(dash)) return corrupt_note("a signature line does not start with an em dash and a space");
  line.remove_prefix(dash.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || !good_name(line.substr(0, space)))
    return corrupt_note("a signature line has no key name");
  const auto bytes = from_base64(line.substr(space + 1));
  if (!bytes || bytes->size() < 5) return corrupt_note("a signature is not base64 of a key id and a signature");
  NoteSignature signature;
  signature.name = line.substr(0, space);
  signature.id = static_cast<std::uint32_t>(from_big_endian(std::string_view(*bytes).substr(0, 4)));
  signature.bytes = bytes->substr(4);
  return signature;
}

}  // namespace

VerifierKey::VerifierKey(std::string name_, KeyType type_, const PublicKey& key_)
    : name(std::move(name_)), id(key_id(name, type_, key_)), type(type_), key(key_) {}

std::string VerifierKey::text() const { return key_text(*this, view_of(key)); }

Result<VerifierKey> VerifierKey::parse(std::string_view text) {
  ASSIGN_OR_RETURN(KeyText read, parse_key_text(text));
  VerifierKey key(std::move(read.name), read.type, read.bytes);
  if (key.id != read.id)
    return Error(Errc::invalid_argument,
                 fmt::format("the key's id is {:08x}, but {:08x} was expected", read.id, key.id));
  return key;
}

Result<std::vector<VerifierKey>> parse_verifier_keys(std::string_view text) {
  std::vector<VerifierKey> keys;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    ASSIGN_OR_RETURN(VerifierKey key, VerifierKey::parse(line));
    keys.push_back(std::move(key));
  }
  return keys;
}

NoteSigner::NoteSigner(std::string name, KeyType type, SigningKey key)
    : verifier_(std::move(name), type, key.public_key()), key_(std::move(key)) {}

Result<NoteSigner> NoteSigner::parse(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (!text.starts_with(private_prefix))
    return Error(Errc::invalid_argument, "not a private key: it starts with PRIVATE+KEY+");
  ASSIGN_OR_RETURN(KeyText read, parse_key_text(text.substr(private_prefix.size())));
  NoteSigner signer(std::move(read.name), read.type, SigningKey::from_seed(read.bytes));
  if (signer.verifier_.id != read.id)
    return Error(Errc::invalid_argument, "the private key's id does not match the key");
  return signer;
}

Result<NoteSigner> NoteSigner::read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::note_bytes_max));
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return file_error("reading", path, errno);
  if ((about.st_mode & 077) != 0)
    return Error(Errc::denied, fmt::format("{} can be read by others (mode {:03o}); it must be 600: chmod 600 {}", path,
                                           about.st_mode & 0777, path));
  auto signer = parse(text);
  if (!signer) return Error(Errc::corrupt, fmt::format("{}: {}", path, signer.error().message));
  return signer;
}

std::string NoteSigner::text() const { return std::string(private_prefix) + key_text(verifier_, view_of(key_.seed())); }

NoteSignature NoteSigner::sign(std::string_view text, std::uint64_t time_s) const {
  const Signature signature = key_.sign(signed_bytes(verifier_.type, text, time_s));
  const std::string time = verifier_.type == KeyType::cosignature ? big_endian(time_s, 8) : std::string();
  return {verifier_.name, verifier_.id, time + std::string(view_of(signature))};
}

std::string NoteSignature::line() const {
  return fmt::format("{}{} {}\n", dash, name, to_base64(big_endian(id, 4) + bytes));
}

std::string Note::signed_text() const {
  std::string file = text + "\n";
  for (const NoteSignature& signature : signatures) file += signature.line();
  return file;
}

Result<std::vector<NoteSignature>> Note::parse_signatures(std::string_view lines) {
  std::vector<NoteSignature> signatures;
  while (!lines.empty()) {
    const auto line = take_line(lines);
    if (!line) return corrupt_note("the last line does not end");
    if (signatures.size() == signatures_max)
      return corrupt_note(fmt::format("it has over {} signatures", signatures_max));
    ASSIGN_OR_RETURN(NoteSignature signature, parse_signature(*line));
    signatures.push_back(std::move(signature));
  }
  if (signatures.empty()) return corrupt_note("it has no signature");
  return signatures;
}

Result<Note> Note::parse(std::string_view file) {
  if (file.size() > limits::note_bytes_max)
    return corrupt_note(fmt::format("it has over {} bytes", limits::note_bytes_max));
  if (first_invalid_utf8(file) != std::string_view::npos) return corrupt_note("it is not UTF-8");
  if (std::any_of(file.begin(), file.end(), [](unsigned char c) { return c < ' ' && c != '\n'; })) {
    return corrupt_note("it has control characters");
  }
  const std::size_t blank = file.rfind("\n\n");
  if (blank == std::string_view::npos) return corrupt_note("no empty line divides its text from its signatures");
  Note note;
  note.text = file.substr(0, blank + 1);
  ASSIGN_OR_RETURN(note.signatures, parse_signatures(file.substr(blank + 2)));
  return note;
}

Result<std::vector<Signed>> signers_of(const Note& note, std::span<const VerifierKey> keys) {
  std::vector<Signed> signers;
  for (const NoteSignature& signature : note.signatures) {
    for (const VerifierKey& key : keys) {
      if (signature.id != key.id || signature.name != key.name) continue;
      const bool timed = key.type == KeyType::cosignature;
      std::string_view bytes = signature.bytes;
      const std::uint64_t time_s = timed && bytes.size() > 8 ? from_big_endian(bytes.substr(0, 8)) : 0;
      if (timed) bytes.remove_prefix(std::min<std::size_t>(8, bytes.size()));
      if (!verify_signature(key.key, signed_bytes(key.type, note.text, time_s), bytes)) {
        return Error(Errc::corrupt, fmt::format("the signature by {} ({:08x}) does not verify", key.name, key.id));
      }
      signers.push_back({&key, time_s});
      break;
    }
  }
  return signers;
}

std::string Checkpoint::text() const { return fmt::format("{}\n{}\n{}\n", origin, size, to_base64(view(root))); }

Result<Checkpoint> Checkpoint::parse(std::string_view text) {
  const auto bad = [](std::string_view why) { return Error(Errc::corrupt, fmt::format("not a checkpoint: {}", why)); };
  const auto origin = take_line(text);
  const auto size = take_line(text);
  const auto root = take_line(text);
  if (!root || !text.empty()) return bad("it must have exactly three lines");
  Checkpoint checkpoint;
  checkpoint.origin = *origin;
  if (checkpoint.origin.empty()) return bad("the origin is empty");
  const auto number = parse_decimal(*size);
  if (!number) return bad("the size is not a decimal number");
  checkpoint.size = *number;
  const auto hash = hash_from_base64(*root);
  if (!hash) return bad("the root is not 32 bytes in base64");
  checkpoint.root = *hash;
  return checkpoint;
}

}  // namespace muniment
