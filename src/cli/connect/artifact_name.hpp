// Reads the name of an artifact: the member "name" of its metadata, which `artifact put` sets to the file name.
#pragma once

#include <fnmatch.h>

#include <string>

#include "base/json/json.hpp"

namespace muniment::cli {

inline constexpr std::string_view artifact_name_member = "name";

// Returns the name in an item of artifact.list; empty if there is none.
inline std::string name_of_artifact(const json::Value& artifact) {
  return artifact["metadata"][artifact_name_member].string_or("");
}

// Returns whether the name matches the shell pattern; an empty pattern matches every name.
inline bool fits_name(const json::Value& artifact, const std::string& pattern) {
  return pattern.empty() || ::fnmatch(pattern.c_str(), name_of_artifact(artifact).c_str(), 0) == 0;
}

}  // namespace muniment::cli
