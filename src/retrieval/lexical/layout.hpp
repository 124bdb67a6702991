// The layout of the lexical index's folder, and the metadata of its databases.
//
//   live/     the current chunks          metadata: rules, next_seq, history_seq, erased
//   history/  the chunks that were closed  metadata: rules, next_seq
//
// Each is one Xapian database (glass); a chunk's id is its docid in both. A move commits the history first: after a
// crash between the two commits, a chunk is in both until the events after the position are applied again. A removal
// leaves words in free pages, so both databases are then rewritten and replaced.
#pragma once

#include <string>

namespace muniment::retrieval::layout {

inline constexpr unsigned time_slot = 0;  // Facts::time_us
inline constexpr unsigned valid_from_slot = 1;
inline constexpr unsigned valid_to_slot = 2;

inline constexpr const char* rules_key = "rules";              // term_rules
inline constexpr const char* next_seq_key = "next_seq";        // position of the last commit of this database
inline constexpr const char* history_seq_key = "history_seq";  // lower bound of the history's next_seq

inline constexpr const char* erased_key = "erased";  // "1": after a removal, until the databases are rewritten

inline std::string live(const std::string& folder) { return folder + "/live"; }
inline std::string history(const std::string& folder) { return folder + "/history"; }

}  // namespace muniment::retrieval::layout
