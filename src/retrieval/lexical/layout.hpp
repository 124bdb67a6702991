// Where things are in the folder of the lexical index, and what its databases say of themselves.
//
//   live/     the chunks that are current       metadata: rules, next_seq, history_seq, erased
//   history/  the chunks that were, once        metadata: rules, next_seq
//
// Each is one Xapian database (glass); a chunk's id is its docid in both. A move commits the history first:
// after a crash between the two commits a chunk is in both, until the position is followed again.
// What was removed leaves its words in free pages: both databases are then written anew and take the old ones' places.
#pragma once

#include <string>

namespace muniment::retrieval::layout {

inline constexpr unsigned time_slot = 0;  // Facts::time_us
inline constexpr unsigned valid_from_slot = 1;
inline constexpr unsigned valid_to_slot = 2;

inline constexpr const char* rules_key = "rules";              // term_rules
inline constexpr const char* next_seq_key = "next_seq";        // of the last commit of this database
inline constexpr const char* history_seq_key = "history_seq";  // what the history's next_seq was, at least

inline constexpr const char* erased_key = "erased";  // "1": something was removed, and the pages are still there

inline std::string live(const std::string& folder) { return folder + "/live"; }
inline std::string history(const std::string& folder) { return folder + "/history"; }

}  // namespace muniment::retrieval::layout
