// State that the MCP sessions of a daemon share: the offered tools, the key of their tokens, and the results of slow
// calls. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "mcp/offer/extension.hpp"
#include "mcp/offer/tools.hpp"

namespace muniment::mcp {

inline constexpr std::string_view stateless_version = "2026-07-28";
inline constexpr std::string_view initialized_version = "2025-11-25";
inline constexpr std::string_view batch_version = "2025-03-26";  // the only version with batches

struct ServerOptions {
  std::string program_version;
  std::vector<std::string> toolsets;     // in addition to the default one
  const Extension* extension = nullptr;  // may be null
  // A server of few native methods, such as a capsule, offers the tools of these methods and nothing else. Empty: all.
  std::vector<std::string_view> methods{};
  std::string_view instructions{};  // for the model; empty: those of a daemon

  bool only_tools() const { return !methods.empty(); }
};

// Results that hosts fetch by a handle (the tool `status`), for calls that took longer than a host waits. A result is
// kept for an hour, or until newer results need the space.
class Handles {
 public:
  // Errors: over_budget.
  Result<std::string> open(std::string_view owner, Monotonic now);
  void finish(std::string_view handle, std::string result);
  struct Found {
    std::optional<std::string> result;  // empty while the call is in progress
    std::int64_t seconds = 0;           // seconds since the call was handed over
  };
  // Returns nullopt for a handle that is unknown, expired or another owner's.
  std::optional<Found> find(std::string_view handle, std::string_view owner, Monotonic now);

 private:
  struct Entry {
    std::string owner;
    Monotonic opened;
    std::optional<std::string> result;
  };
  void expire(Monotonic now);
  void forget_oldest();
  std::map<std::string, Entry, std::less<>> entries_;
  std::size_t bytes_ = 0;  // total size of the results
};

class Server {
 public:
  Server(Clock& clock, ServerOptions options);

  Clock& clock() const { return clock_; }
  const ServerOptions& options() const { return options_; }
  const ToolList& tools() const { return tools_; }
  Handles& handles() { return handles_; }
  // JSON texts of the capabilities, and of the name and version, for a client.
  std::string capabilities(bool stateless) const;
  std::string info() const;
  std::string_view instructions() const;

  // Streams that are notified of a changed list: "tools", "prompts" or "resources". Each has its own key.
  std::map<const void*, std::function<void(std::string_view list)>> listeners;
  void announce(std::string_view list) const;

  // Returns a string that only this daemon, until its restart, can have made. It can be opened only with the same
  // `purpose` and `owner`.
  std::string seal(std::string_view purpose, std::string_view owner, std::string_view text) const;
  std::optional<std::string> unseal(std::string_view purpose, std::string_view owner, std::string_view sealed) const;

 private:
  Clock& clock_;
  const ServerOptions options_;
  const ToolList tools_;
  const std::string key_;
  Handles handles_;
};

}  // namespace muniment::mcp
