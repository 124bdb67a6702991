// The folders of one blind workflow, and the files in them. Each workflow has a new folder, which a process of its own
// removes at its end, also if the workflow is killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"
#include "evidence/workflow/spec.hpp"

namespace muniment::cli {

class Workspace {
 public:
  // Creates the folder in TMPDIR, with mode 0700. Errors: those of the system.
  static Result<Workspace> create();
  Workspace(Workspace&&) noexcept = default;
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace();

  std::string path(const char* name) const { return root_ + "/" + name; }
  // Creates the folder `name` with mode 0700; a confined command owns it if `writable`.
  Result<std::string> folder(const char* name, bool writable) const;
  // Makes every file below the folder readable by all and writable by none.
  Status protect(const std::string& folder) const;
  // Copies a folder into another, which a confined command then owns; symbolic links are copied as links. Errors:
  // invalid_argument for a special file; too_large for more than `files_max` files and links.
  Status copy(const std::string& source, const std::string& target, std::size_t files_max) const;
  // Removes the folder `name` with its files.
  Status remove(const char* name) const;

 private:
  Workspace(std::string root, Fd pipe, pid_t cleaner)
      : root_(std::move(root)), pipe_(std::move(pipe)), cleaner_(cleaner) {}
  std::string root_;
  Fd pipe_;  // the cleaner removes the folder when it is closed; not open: moved from
  pid_t cleaner_;
};

struct FolderFile {
  std::string name;  // path below the folder
  std::int64_t size = 0;
};

// Returns the files below the folder, sorted by name. Errors: invalid_argument for anything but a regular file or a
// folder, or a name of more than name_bytes_max bytes; too_large for more than `files_max` files.
Result<std::vector<FolderFile>> files_below(const std::string& folder, std::size_t files_max);

// Returns the text of the error for a folder with too many files.
std::string too_many_files(std::size_t files_max);

// Writes the regular files and symbolic links of the folder to a .tar.zst; no link is followed, and special files are
// skipped. Errors: too_large, unavailable, system_error for a folder that cannot be read.
Result<Fd> archive_of(const std::string& folder, std::size_t files_max);

// Copies the same files into the new folder `target`, without owners and special bits: a file is executable or not.
// Errors: too_large, those of the system.
Status copy_out(const std::string& folder, const std::string& target, std::size_t files_max);

// A command whose words that name a file of `folder` are absolute paths. argv[0] is found in PATH if it has no slash.
struct ResolvedCommand {
  std::vector<std::string> argv;
  std::vector<std::string> files;  // absolute paths of the files among the words, and of `reads`
};

// Errors: not_found for a program or a file of `reads` that does not exist; invalid_argument for a special file.
Result<ResolvedCommand> resolve_command(const evidence::workflow::Step& step, const std::string& folder);

// Returns a hash of the names and contents of the files, and of all files and links below the folders among them. Names
// are relative to `folder` for files below it. Errors: those of the files.
Result<Hash> hash_of_files(const std::vector<std::string>& paths, const std::string& folder);

struct SpecText {
  std::string_view toml;
  std::string_view task;  // what the commands get as TASK, also if it is not that of the file
};

// Returns the digest of a workflow in hexadecimal digits: of the text and the task of its specification, and of the
// files of its spec writer and its tester. The coder's program is not part of it. `folder` is that of the
// specification's file. Errors: those of the files.
Result<std::string> digest_of(const SpecText& specification, const std::string& folder,
                              const ResolvedCommand& spec_writer, const ResolvedCommand& tester);

// Likewise, for a specification that is not run. Errors: also those of resolve_command.
Result<std::string> digest_of(std::string_view toml, const std::string& folder, const evidence::workflow::Spec& spec);

}  // namespace muniment::cli
