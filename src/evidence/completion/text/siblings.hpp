// Finds siblings of a task's subject: import for export, staging for production, PR 481 for PR 418. Evidence of a
// sibling shares most words with the task, so that coverage alone does not distinguish them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "evidence/completion/text/profile.hpp"
#include "evidence/completion/text/task_terms.hpp"

namespace muniment::evidence::completion {

inline constexpr std::size_t sibling_labels_max = 8;  // labels of a task

// Returns the sibling that `text` names instead of the task's word or number; empty if it names the task's, or neither.
// `profile` is the profile of the text.
std::string sibling_in(std::string_view text, std::string_view task_content, const TaskTerms& terms,
                       const Profile& profile);

// Returns whether `text` names a number of the task that is not a short one: "1.4.0", "404", "PR 418".
bool names_number_of(std::string_view text, std::string_view task_content, const TaskTerms& terms,
                     const Profile& profile);

inline constexpr std::size_t kin_paths_max = 8;    // paths of a task that are searched
inline constexpr std::size_t kin_others_max = 2;   // a text with more of them is about the whole folder
inline constexpr std::size_t kin_bytes_max = 256;  // a longer token is not a path

// Returns the path that `text` names instead of one of the task's, in the same folder and with the same extension;
// empty if it names the task's, or none. Test files are ignored, because a test is in a separate file.
std::string kin_in(std::string_view text, std::string_view task_content);

}  // namespace muniment::evidence::completion
