// Implements the state that sessions share: handles, capabilities and sealed tokens.
#include "mcp/server.hpp"

#include <fmt/format.h>

#include "base/crypto/base64.hpp"
#include "base/crypto/hmac.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/limits.hpp"

namespace muniment::mcp {
namespace {

constexpr std::chrono::hours handle_kept{1};
constexpr std::chrono::minutes seal_valid{10};
constexpr std::size_t hash_hex_bytes = 64;

std::string new_key() {
  std::string key(32, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(key.data()), key.size());
  return key;
}

}  // namespace

void Handles::expire(Monotonic now) {
  std::erase_if(entries_, [&](const auto& item) {
    const bool old = item.second.opened + handle_kept < now;
    if (old && item.second.result) bytes_ -= item.second.result->size();
    return old;
  });
}

void Handles::forget_oldest() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const bool older = oldest == entries_.end() || it->second.opened < oldest->second.opened;
    if (it->second.result && older) oldest = it;
  }
  if (oldest == entries_.end()) return;
  bytes_ -= oldest->second.result->size();
  entries_.erase(oldest);
}

Result<std::string> Handles::open(std::string_view owner, Monotonic now) {
  expire(now);
  if (entries_.size() >= limits::mcp_handles_max) {
    Error error(Errc::over_budget, fmt::format("{} calls have a handle, limit {}. Retry in a minute.", entries_.size(),
                                               limits::mcp_handles_max));
    error.limit = static_cast<std::int64_t>(limits::mcp_handles_max);
    return error;
  }
  std::string bytes(16, '\0');
  random_bytes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  std::string handle = "call-" + to_hex(bytes);
  entries_.emplace(handle, Entry{std::string(owner), now, std::nullopt});
  return handle;
}

void Handles::finish(std::string_view handle, std::string result) {
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return;
  if (found->second.result) bytes_ -= found->second.result->size();
  bytes_ += result.size();
  found->second.result = std::move(result);
  while (bytes_ > limits::mcp_handles_bytes_max) forget_oldest();
}

std::optional<Handles::Found> Handles::find(std::string_view handle, std::string_view owner, Monotonic now) {
  expire(now);
  const auto found = entries_.find(handle);
  if (found == entries_.end() || found->second.owner != owner) return std::nullopt;
  return Found{found->second.result,
               std::chrono::duration_cast<std::chrono::seconds>(now - found->second.opened).count()};
}

Server::Server(Clock& clock, ServerOptions options)
    : clock_(clock), options_(std::move(options)), tools_(offered_tools(options_)), key_(new_key()) {}

std::string Server::capabilities(bool stateless) const {
  json::Writer writer;
  writer.begin_object();
  const bool changes = options_.extension != nullptr;  // Muniment's own lists are constant
  if (!stateless || changes) writer.key("logging").begin_object().end_object();
  if (!options_.only_tools()) {
    writer.key("completions").begin_object().end_object();
    writer.key("prompts").begin_object().member("listChanged", changes).end_object();
    writer.key("resources").begin_object().member("subscribe", true).member("listChanged", changes).end_object();
  }
  writer.key("tools").begin_object().member("listChanged", changes).end_object();
  return std::move(writer.end_object()).text();
}

std::string Server::info() const {
  return json::Writer()
      .begin_object()
      .member("name", "muniment")
      .member("title", "Muniment")
      .member("version", options_.program_version)
      .end_object()
      .text();
}

std::string_view Server::instructions() const {
  if (!options_.instructions.empty()) return options_.instructions;
  return "Muniment is a durable memory with an audit log. Before you answer, call recall. Store what you learn with "
         "remember, one fact for each subject; remember the subject again to correct it, and forget it if it is to go. "
         "retrieve_evidence finds passages of all documents: cite their pointers (ev://…) as [ref:POINTER]; "
         "render_with_pointers checks a draft's citations before you show it. Record what you do with record_event and what you assert with record_claim. "
         "After a restart call rehydrate. A run that is stopped with SYSTEM_ERROR takes no more work: tell the user.";
}

void Server::announce(std::string_view list) const {
  for (const auto& [key, tell] : std::map(listeners)) tell(list);
}

// The format is: expiry in microseconds ‖ hash ‖ text, in base64.
std::string Server::seal(std::string_view purpose, std::string_view owner, std::string_view text) const {
  const std::string expiry = std::to_string(clock_.now().micros + std::chrono::microseconds(seal_valid).count());
  const Hash hash = hmac_sha256(key_, {purpose, "\n", owner, "\n", expiry, "\n", text});
  return to_base64(fmt::format("{}\n{}\n{}", expiry, to_hex(hash), text));
}

std::optional<std::string> Server::unseal(std::string_view purpose, std::string_view owner,
                                          std::string_view sealed) const {
  const auto bytes = from_base64(sealed);
  if (!bytes) return std::nullopt;
  const std::size_t end = bytes->find('\n');
  if (end == std::string::npos || bytes->size() < end + 2 + hash_hex_bytes) return std::nullopt;
  const std::string_view expiry = std::string_view(*bytes).substr(0, end);
  const std::string_view hash = std::string_view(*bytes).substr(end + 1, hash_hex_bytes);
  const std::string_view text = std::string_view(*bytes).substr(end + 2 + hash_hex_bytes);
  const std::string expected = to_hex(hmac_sha256(key_, {purpose, "\n", owner, "\n", expiry, "\n", text}));
  if (!equal_hashes(expected, hash) || (*bytes)[end + 1 + hash_hex_bytes] != '\n') return std::nullopt;
  if (std::stoll(std::string(expiry)) < clock_.now().micros) return std::nullopt;
  return std::string(text);
}

}  // namespace muniment::mcp
