// Maps the ids of a bundle to the new ids of an import and replaces them in bodies.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace muniment::cli {

class BundleIds {
 public:
  BundleIds(std::string old_run, std::string new_run) : old_run_(std::move(old_run)), new_run_(std::move(new_run)) {}

  void map(const std::string& old_id, const std::string& new_id) { ids_[old_id] = new_id; }
  // Returns the new id; empty if no such id was imported.
  std::string find(const std::string& old_id) const;

  // Returns `text` with every known id replaced, together with the run id in a pointer (artifact://RUN/ID). UUIDs have
  // a fixed length and need no escapes, so valid JSON stays valid.
  std::string rewrite(std::string_view text) const;

 private:
  std::string old_run_;
  std::string new_run_;
  std::unordered_map<std::string, std::string> ids_;
};

}  // namespace muniment::cli
