// Siblings of a task's subject: import for export, staging for production, PR 481 for PR 418. Evidence of a sibling
// shares most words with the task, so that coverage alone does not tell them apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "evidence/completion/text/profile.hpp"
#include "evidence/completion/text/task_terms.hpp"

namespace muniment::evidence::completion {

inline constexpr std::size_t sibling_labels_max = 8;  // numbers of a task that name something

// The sibling that `text` names in the place of the task's own word or number; empty where it names the task's, or
// neither. `profile` is that of the text.
std::string sibling_in(std::string_view text, std::string_view task_content, const TaskTerms& terms,
                       const Profile& profile);

// Whether `text` names a number of the task that is no short one: "1.4.0", "404", "PR 418".
bool names_number_of(std::string_view text, std::string_view task_content, const TaskTerms& terms,
                     const Profile& profile);

inline constexpr std::size_t kin_paths_max = 8;    // paths of a task that are looked for
inline constexpr std::size_t kin_others_max = 2;   // a text that names more of them is about all of a folder
inline constexpr std::size_t kin_bytes_max = 256;  // a longer token is no path

// The path that `text` names beside one of the task's, in the same folder and with the same extension; empty where it
// names the task's, or none. The names of files of tests are left out: a test has a file of its own.
std::string kin_in(std::string_view text, std::string_view task_content);

}  // namespace muniment::evidence::completion
