#include "base/ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/limits.hpp"

namespace muniment {
namespace {

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

void set_version(Uuid& id, std::uint8_t version) {
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0F) | (version << 4));
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3F) | 0x80);  // variant of RFC 9562
}

std::string shown(char c) {
  if (c > 0x20 && c < 0x7F) return std::string{'"', c, '"'};
  return fmt::format("byte 0x{:02X}", static_cast<std::uint8_t>(c));
}

std::string spaced(std::string_view marks) {
  std::string text;
  for (char c : marks) (text += text.empty() ? "" : " ") += c;
  return text;
}

// Checks both kinds of ids: a letter or digit first, then these and `others`.
Status check_id(std::string_view what, std::string_view id, std::string_view others) {
  if (id.empty()) return Error(Errc::invalid_argument, fmt::format("{} is empty", what));
  if (id.front() == '_') {
    return Error(Errc::invalid_argument, fmt::format("{} starts with \"_\", which is reserved for the daemon. Start it "
                                                     "with a letter or a digit.",
                                                     what));
  }
  if (!is_alphanumeric(id.front())) {
    return Error(Errc::invalid_argument,
                 fmt::format("{} starts with {}. Start it with a letter or a digit.", what, shown(id.front())));
  }
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (is_alphanumeric(id[i]) || is_one_of(id[i], others)) continue;
    return Error(Errc::invalid_argument,
                 fmt::format("{} has {} at byte {}; letters, digits and {} are allowed. Put an id of "
                             "another system into external_id.",
                             what, shown(id[i]), i, spaced(others)));
  }
  return success();
}

bool is_safe_in_file_name(char c) { return is_alphanumeric(c) || is_one_of(c, "._-"); }

struct Extension {
  std::string_view mime_type;
  std::string_view extension;
};

// Common types of agents' outputs. The extension only helps users who browse the folder.
constexpr Extension extensions[] = {
    {"application/gzip", ".gz"},   {"application/json", ".json"},
    {"application/pdf", ".pdf"},   {"application/x-ndjson", ".jsonl"},
    {"application/x-tar", ".tar"}, {"application/xml", ".xml"},
    {"application/yaml", ".yaml"}, {"application/zip", ".zip"},
    {"image/gif", ".gif"},         {"image/jpeg", ".jpg"},
    {"image/png", ".png"},         {"image/svg+xml", ".svg"},
    {"image/webp", ".webp"},       {"text/csv", ".csv"},
    {"text/html", ".html"},        {"text/markdown", ".md"},
    {"text/x-diff", ".diff"},      {"text/x-python", ".py"},
};

std::string_view extension_of(std::string_view mime_type) {
  const std::string_view name = mime_type.substr(0, mime_type.find_first_of("; "));
  for (const Extension& known : extensions) {
    if (known.mime_type == name) return known.extension;
  }
  return name.starts_with("text/") ? ".txt" : ".bin";
}

}  // namespace

std::string Uuid::text() const {
  const std::string hex = to_hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return fmt::format("{}-{}-{}-{}-{}", std::string_view(hex).substr(0, 8), std::string_view(hex).substr(8, 4),
                     std::string_view(hex).substr(12, 4), std::string_view(hex).substr(16, 4),
                     std::string_view(hex).substr(20));
}

Uuid make_uuid_v7(Time now) {
  Uuid id;
  random_bytes(id.bytes.data(), id.bytes.size());
  const auto millis = static_cast<std::uint64_t>(now.micros / 1000);
  for (std::size_t i = 0; i < 6; ++i) {
    id.bytes[i] = static_cast<std::uint8_t>(millis >> (40 - 8 * i));
  }
  // RFC 9562, method 3: the fraction of the millisecond extends the order.
  const auto fraction = static_cast<unsigned>((now.micros % 1000) * 4096 / 1000);
  id.bytes[6] = static_cast<std::uint8_t>(fraction >> 8);
  id.bytes[7] = static_cast<std::uint8_t>(fraction);
  set_version(id, 7);
  return id;
}

Uuid make_uuid_v8(std::string_view name) {
  Uuid id;
  const Hash hash = sha256(name);
  std::copy_n(hash.begin(), id.bytes.size(), id.bytes.begin());
  set_version(id, 8);
  return id;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  std::string hex;
  hex.reserve(32);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
    } else {
      hex.push_back(text[i]);
    }
  }
  const auto bytes = from_hex(hex);
  if (!bytes) return std::nullopt;
  Uuid id;
  std::memcpy(id.bytes.data(), bytes->data(), id.bytes.size());
  return id;
}

std::size_t UuidHash::operator()(const Uuid& id) const {
  // Clients choose their ids. Using both halves and a multiplication distributes chosen ids over the buckets.
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::memcpy(&high, id.bytes.data(), 8);
  std::memcpy(&low, id.bytes.data() + 8, 8);
  std::uint64_t mixed = (high ^ (low * 0x9E3779B97F4A7C15U)) * 0xD6E8FEB86659FD93U;
  mixed ^= mixed >> 32;
  return static_cast<std::size_t>(mixed);
}

Status check_run_id(std::string_view id) {
  if (id.size() > limits::run_id_bytes_max) {
    return Error(Errc::invalid_argument, fmt::format("run_id is {} bytes, limit {}. Put an id of another system into "
                                                     "external_id.",
                                                     id.size(), limits::run_id_bytes_max));
  }
  return check_id("run_id", id, "._-");
}

Status check_step_id(std::string_view id) {
  // Each byte may become three, so that a text beyond the limit need not be encoded.
  const std::size_t size = id.size() > limits::step_id_encoded_bytes_max ? id.size() : percent_encode(id).size();
  if (size > limits::step_id_encoded_bytes_max) {
    return Error(Errc::invalid_argument, fmt::format("step_id is {} bytes percent-encoded, limit {}. Shorten it.", size,
                                                     limits::step_id_encoded_bytes_max));
  }
  return check_id("step_id", id, "._-:|@+=");
}

std::string percent_encode(std::string_view text) {
  // These two names refer to other folders.
  if (text == ".") return "%2E";
  if (text == "..") return "%2E%2E";
  std::string encoded;
  encoded.reserve(text.size());
  for (char c : text) {
    if (is_safe_in_file_name(c)) {
      encoded.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", static_cast<std::uint8_t>(c));
    }
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto byte = from_hex(text.substr(i + 1, 2));
    if (!byte) return std::nullopt;
    decoded += *byte;
    i += 2;
  }
  return decoded;
}

std::string artifact_path(std::string_view run_id, std::string_view step_id, const Uuid& artifact_id,
                          std::string_view mime_type) {
  return fmt::format("runs/{}/{}/{}{}", percent_encode(run_id), step_id.empty() ? "main" : percent_encode(step_id),
                     artifact_id.text(), extension_of(mime_type));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Levenshtein's recurrence, one row at a time.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace muniment
