// Counts what a translation understood, from the events that it made. A member of a source that has no place in an
// event is in the event's "x_source" or in an event x.<format>.source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/import/source.hpp"
#include "base/json/json.hpp"

namespace muniment::cli {

inline constexpr std::size_t tally_names_max = 6;  // names of members that a message lists

class ImportTally {
 public:
  void add(const ImportedEvent& event);
  void add(const ImportTally& other);
  void expect_members(std::uint64_t members) { members_ += members; }

  // Number of strings, numbers and booleans of the source, 0 if it was read as a stream; and how many of them were not
  // understood.
  std::uint64_t members() const { return members_; }
  std::uint64_t not_understood() const { return not_understood_; }
  // The names of the members that were not understood, the first tally_names_max of them.
  const std::vector<std::string>& names() const { return names_; }

  // Number of lines that are not JSON.
  std::uint64_t unreadable() const { return unreadable_; }

  // Returns whether there is a message of a user or of the system, or an answer of the model or a tool call.
  bool has_dialogue() const { return has_dialogue_; }

  // Returns "imported 40 of 42 members; not understood: a, b"; empty if all were understood, or
  // the members were not counted.
  std::string sentence() const;
  // Writes the members "members" and "not_understood" if there are any.
  void write(json::Writer& out) const;

 private:
  void keep(const json::Value& object);

  std::uint64_t members_ = 0, not_understood_ = 0, unreadable_ = 0;
  std::vector<std::string> names_;
  bool more_names_ = false;
  bool has_dialogue_ = false;
};

}  // namespace muniment::cli
