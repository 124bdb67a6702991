// The ids that an import gives anew, and bodies in which the old ones are replaced.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace muniment::cli {

class BundleIds {
 public:
  BundleIds(std::string old_run, std::string new_run) : old_run_(std::move(old_run)), new_run_(std::move(new_run)) {}

  void map(const std::string& old_id, const std::string& new_id) { ids_[old_id] = new_id; }
  // Empty: no such id was imported.
  std::string find(const std::string& old_id) const;

  // `text` with every known id replaced, and the run before it where both stand in a pointer
  // (artifact://RUN/ID). UUIDs have one length and need no escapes: JSON stays JSON.
  std::string rewrite(std::string_view text) const;

 private:
  std::string old_run_;
  std::string new_run_;
  std::unordered_map<std::string, std::string> ids_;
};

}  // namespace muniment::cli
