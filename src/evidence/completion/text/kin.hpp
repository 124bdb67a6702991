// Kin of a task's paths: src/mailer.py for src/scheduler.py, crates/mailer for crates/parser, db-07 for db-03. Evidence
// that names such a path or name in the place of the task's is of another subject, whatever words both share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muniment::evidence::completion {

inline constexpr std::size_t kin_paths_max = 8;    // paths of a task that are looked for
inline constexpr std::size_t kin_others_max = 2;   // a text that names more of them is about all of a folder
inline constexpr std::size_t kin_bytes_max = 256;  // a longer token is no path

// The path that `text` names beside one of the task's, in the same folder and with the same extension; empty where it
// names the task's, or none. The names of files of tests are left out: a test has a file of its own.
std::string kin_in(std::string_view text, std::string_view task_content);

}  // namespace muniment::evidence::completion
