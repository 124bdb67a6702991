// The configuration inside a capsule: a config frame with the JSON file aethervault://config/index.json. It names
// programs and folders of this machine, so that it has an effect only if this user trusts it. Trust is a file outside
// the capsule, in the user's configuration folder, that is named after the hash of the config frame.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace muniment::capsule {

inline constexpr std::string_view config_uri = "aethervault://config/index.json";

struct Collection {
  std::string root;     // folder that `ingest` reads if none is named; empty: none
  std::string context;  // what a model should know about it
};

struct CapsuleConfig {
  std::map<std::string, Collection> collections;
  std::string context;                                // what a model should know about the capsule
  std::vector<std::string> expansion, rerank, agent;  // commands of hooks; empty: none
  std::int64_t hook_ms = limits::hook_ms_default;
  std::size_t max_expansions = limits::capsule_expansions_default;

  bool has_hooks() const { return !expansion.empty() || !rerank.empty() || !agent.empty(); }
  // The context of the capsule and of its collections, for a model.
  std::string text_of_context() const;
};

// Errors: invalid_argument, with the member.
Result<CapsuleConfig> parse_config(std::string_view json);

// The newest config frame.
struct StoredConfig {
  std::int64_t seq = -1;
  std::string hash;  // SHA-256 of the frame's description and body, hexadecimal
  std::string body;
  bool trusted = false;
};

// Errors: those of the file system; denied if other users may write the user's record of trust.
Result<bool> is_trusted(const std::string& hash);
// Records that this user trusts the config frame. `path`: of the capsule, for the reader of the record.
Status trust(const std::string& hash, const std::string& path);
// Returns false if it was not trusted.
Result<bool> distrust(const std::string& hash);

}  // namespace muniment::capsule
