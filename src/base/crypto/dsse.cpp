#include "base/crypto/dsse.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace muniment {
namespace {

constexpr std::string_view dsse_version = "DSSEv1";
constexpr std::size_t key_file_bytes_max = 64 * 1024;

Error not_an_envelope(std::string_view problem) {
  return {Errc::invalid_argument,
          fmt::format("not a DSSE envelope: {}. Expected {{\"payloadType\", \"payload\", \"signatures\": [{{\"keyid\", "
                      "\"sig\"}}]}} with 1 to {} signatures",
                      problem, envelope_signatures_max)};
}

// Both alphabets of base64 are allowed.
std::optional<std::string> decoded(std::string text) {
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  return from_base64(text);
}

}  // namespace

std::string Envelope::signed_text() const {
  return fmt::format("{} {} {} {} {}", dsse_version, payload_type.size(), payload_type, payload.size(), payload);
}

std::string Envelope::text() const {
  json::Writer out;
  out.begin_object().member("payloadType", payload_type).member("payload", to_base64(payload));
  out.key("signatures").begin_array();
  for (const EnvelopeSignature& signature : signatures) {
    out.begin_object().member("keyid", signature.keyid).member("sig", to_base64(signature.bytes)).end_object();
  }
  return std::move(out.end_array().end_object()).text();
}

Result<Envelope> Envelope::parse(std::string_view text) {
  if (text.size() > envelope_bytes_max)
    return Error(Errc::too_large, fmt::format("the envelope has {}, at most {} are read", human_size(text.size()),
                                              human_size(envelope_bytes_max)));
  const auto document = json::parse(text);
  if (!document) return not_an_envelope(document.error().message);
  const json::Value root = document->root();
  Envelope envelope;
  const auto type = root["payloadType"].as_string();
  const auto payload = root["payload"].as_string();
  if (!type || !payload || !root["signatures"].is(json::Kind::array)) return not_an_envelope("a member is missing");
  const auto bytes = decoded(*payload);
  if (!bytes) return not_an_envelope("the payload is not base64");
  envelope.payload_type = *type;
  envelope.payload = *bytes;
  if (root["signatures"].size() == 0 || root["signatures"].size() > envelope_signatures_max)
    return not_an_envelope(fmt::format("it has {} signatures", root["signatures"].size()));
  for (const json::Value signature : root["signatures"]) {
    const auto sig = signature["sig"].as_string();
    if (!sig) return not_an_envelope("a signature has no sig");
    // A signature that is not base64 becomes empty, which no key verifies. Other signatures may be valid.
    envelope.signatures.push_back({signature["keyid"].string_or(""), decoded(*sig).value_or("")});
  }
  return envelope;
}

void sign_envelope(Envelope& envelope, const NoteSignature& signature) {
  envelope.signatures.push_back({fmt::format("{}+{:08x}", signature.name, signature.id), signature.bytes});
}

const VerifierKey* signer_of(const Envelope& envelope, std::span<const VerifierKey> keys) {
  const std::string text = envelope.signed_text();
  for (const VerifierKey& key : keys) {
    if (key.type != KeyType::ed25519) continue;
    for (const EnvelopeSignature& signature : envelope.signatures) {
      if (verify_signature(key.key, text, signature.bytes)) return &key;
    }
  }
  return nullptr;
}

Result<std::vector<VerifierKey>> read_trusted_keys(const std::string& path) {
  if (path.empty()) return std::vector<VerifierKey>();
  const std::string what = "attestation_keys " + path;
  auto text = read_trusted(path, key_file_bytes_max);
  if (!text) return std::move(text).error().within("attestation_keys");
  auto keys = parse_verifier_keys(*text);
  if (!keys) return std::move(keys).error().within(what);
  if (keys->size() > envelope_keys_max)
    return Error(Errc::too_large,
                 fmt::format("{}: {} keys, at most {} are allowed", what, keys->size(), envelope_keys_max));
  return keys;
}

}  // namespace muniment
