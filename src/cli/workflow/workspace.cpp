#include "cli/workflow/workspace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/files/tar_archive.hpp"
#include "base/process/sandbox.hpp"
#include "cli/workflow/confinement.hpp"
#include "client/connect/upload.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = 1 << 20;
constexpr int clean_attempts = 1000;
constexpr int clean_interval_ms = 10;

Error failed_at(std::string_view doing, const std::string& path, const std::error_code& code) {
  return file_error(doing, path, code.value());
}

// As root, a confined command has a different user.
bool give_to_confined(const std::string& path) {
  return ::geteuid() != 0 || ::lchown(path.c_str(), confined_uid, confined_uid) == 0;
}

Status walk(const std::string& folder, const std::function<Status(const fs::directory_entry&)>& take) {
  std::error_code failed;
  fs::recursive_directory_iterator entries(folder, failed);
  for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
    RETURN_IF_ERROR(take(*entries));
  }
  if (failed) return failed_at("reading", folder, failed);
  return success();
}

// Removes the folder without recursion, since its folders may be nested deeper than a path or the open files permit:
// the folders of each level are moved to the top before their files are removed.
void remove_tree(const fs::path& root) {
  std::error_code ignored;
  const auto folders_in = [&](const fs::path& folder) {
    std::vector<fs::path> folders;
    fs::directory_iterator entries(folder, ignored);
    for (; !ignored && entries != fs::directory_iterator(); entries.increment(ignored)) {
      std::error_code unknown;
      if (!entries->is_directory(unknown) || entries->is_symlink(unknown)) continue;
      // An ordinary user cannot move or empty a folder without write permission.
      fs::permissions(entries->path(), fs::perms::owner_all, fs::perm_options::add, unknown);
      folders.push_back(entries->path());
    }
    return folders;
  };
  std::size_t moved = 0;
  for (bool nested = true; nested;) {
    nested = false;
    for (const fs::path& folder : folders_in(root)) {
      for (const fs::path& inner : folders_in(folder)) {
        fs::rename(inner, root / fmt::format("~{}", moved++), ignored);
        nested = nested || !ignored;
      }
      fs::remove_all(folder, ignored);
    }
  }
  fs::remove_all(root, ignored);
}

struct ProgramFile {
  std::string name;    // path below the folder
  std::string target;  // of a symbolic link, which is not followed; empty: a regular file
};

// Returns the regular files and the links below the folder, sorted. Special files are skipped. Errors: too_large for
// more than `files_max`; system_error for a folder that cannot be read.
Result<std::vector<ProgramFile>> program_files(const std::string& folder, std::size_t files_max) {
  std::vector<ProgramFile> files;
  RETURN_IF_ERROR(walk(folder, [&](const fs::directory_entry& entry) -> Status {
    ProgramFile file{entry.path().lexically_relative(folder).string(), {}};
    std::error_code failed;
    if (entry.is_symlink()) {
      file.target = fs::read_symlink(entry.path(), failed).string();
      if (failed) return failed_at("reading", entry.path().string(), failed);
    } else if (!entry.is_regular_file()) {
      return success();
    }
    if (files.size() == files_max) return Error(Errc::too_large, too_many_files(files_max));
    files.push_back(std::move(file));
    return success();
  }));
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

// Hands the file to `take` piece by piece.
Status read_pieces(const RegularFile& file, const std::string& name,
                   const std::function<Status(std::string_view)>& take) {
  for (std::int64_t offset = 0; offset < file.size;) {
    const auto length = static_cast<std::size_t>(std::min<std::int64_t>(file.size - offset, piece_bytes));
    ASSIGN_OR_RETURN(const std::string piece, read_at(file.fd, offset, length));
    if (piece.empty()) return Error(Errc::unavailable, fmt::format("{} has become shorter", name));
    RETURN_IF_ERROR(take(piece));
    offset += static_cast<std::int64_t>(piece.size());
  }
  return success();
}

Status make_folders(const Fd& root, const std::string& name) {
  for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    if (::mkdirat(root.get(), name.substr(0, end).c_str(), 0755) != 0 && errno != EEXIST)
      return file_error("creating", name.substr(0, end), errno);
  }
  return success();
}

Result<std::string> find_program(const std::string& name, const std::string& folder) {
  if (name.find('/') != std::string::npos) {
    const std::string path = (fs::path(folder) / name).lexically_normal().string();
    if (::access(path.c_str(), X_OK) == 0) return path;
    return file_error("finding the program", path, errno);
  }
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "/usr/bin:/bin" : variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + name;
    std::error_code failed;
    if (path.front() == '/' && fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Error(Errc::not_found, fmt::format("no program {} in PATH", name));
}

// The process that removes the folder `root` when `owner`, the end of a pipe, is closed: also if this process is
// killed.
[[noreturn]] void clean_up(const std::string& root, int owner) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "cleaner");
  ::dup2(owner, STDIN_FILENO);
  close_descriptors_from(STDIN_FILENO + 1);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) continue;
  // A killed process of a step may still write.
  std::error_code failed;
  for (int i = 0; i < clean_attempts && fs::exists(fs::symlink_status(root, failed)); ++i) {
    if (i > 0) ::poll(nullptr, 0, clean_interval_ms);
    remove_tree(root);
  }
  ::_exit(0);
}

}  // namespace

Result<Workspace> Workspace::create() {
  const char* const variable = std::getenv("TMPDIR");
  std::error_code failed;
  const fs::path parent = fs::canonical(variable == nullptr || *variable == '\0' ? "/tmp" : variable, failed);
  if (failed) return failed_at("finding", "TMPDIR", failed);
  std::string path = (parent / "muniment-workflow-XXXXXX").string();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return file_error("creating", "a pipe", errno);
  const Fd owner(ends[0]);
  Fd pipe(ends[1]);
  if (::mkdtemp(path.data()) == nullptr) return file_error("creating", path, errno);
  const pid_t cleaner = ::fork();
  if (cleaner == 0) clean_up(path, owner.get());
  if (cleaner < 0) {
    const int reason = errno;
    ::rmdir(path.c_str());
    return Error(Errc::unavailable, fmt::format("cannot start a process: {}", std::strerror(reason)));
  }
  return Workspace(path, std::move(pipe), cleaner);
}

Workspace::~Workspace() {
  if (!pipe_.open()) return;
  pipe_.reset();
  while (::waitpid(cleaner_, nullptr, 0) < 0 && errno == EINTR) continue;
  std::error_code failed;
  if (fs::exists(fs::symlink_status(root_, failed))) remove_tree(root_);  // the cleaner was killed
}

Result<std::string> Workspace::folder(const char* name, bool writable) const {
  std::string made = path(name);
  if (::mkdir(made.c_str(), 0700) != 0) return file_error("creating", made, errno);
  if (writable && !give_to_confined(made)) return file_error("changing the owner of", made, errno);
  return made;
}

Status Workspace::protect(const std::string& folder) const {
  std::vector<fs::path> folders{folder};
  RETURN_IF_ERROR(walk(folder, [&](const fs::directory_entry& entry) -> Status {
    if (entry.is_symlink()) return success();
    if (entry.is_directory()) {
      folders.push_back(entry.path());
      return success();
    }
    const bool runs = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    if (::chmod(entry.path().c_str(), runs ? 0555 : 0444) != 0)
      return file_error("protecting", entry.path().string(), errno);
    return success();
  }));
  for (const fs::path& one : folders) {
    if (::chmod(one.c_str(), 0555) != 0) return file_error("protecting", one.string(), errno);
  }
  return success();
}

Status Workspace::copy(const std::string& source, const std::string& target, std::size_t files_max) const {
  std::size_t files = 0;
  RETURN_IF_ERROR(walk(source, [&](const fs::directory_entry& entry) -> Status {
    if (entry.is_directory() && !entry.is_symlink()) return success();
    if (++files > files_max) return Error(Errc::too_large, fmt::format("{} has {}", source, too_many_files(files_max)));
    if (entry.is_symlink() || entry.is_regular_file()) return success();
    return Error(Errc::invalid_argument,
                 fmt::format("{} is neither a file nor a folder nor a link", entry.path().string()));
  }));
  std::error_code failed;
  fs::copy(source, target, fs::copy_options::recursive | fs::copy_options::copy_symlinks, failed);
  if (failed) return failed_at("copying", source, failed);
  return walk(target, [](const fs::directory_entry& entry) -> Status {
    if (!give_to_confined(entry.path().string()))
      return file_error("changing the owner of", entry.path().string(), errno);
    return success();
  });
}

Status Workspace::remove(const char* name) const {
  std::error_code failed;
  fs::remove_all(path(name), failed);
  if (failed) return failed_at("removing", path(name), failed);
  return success();
}

Result<std::vector<FolderFile>> files_below(const std::string& folder, std::size_t files_max) {
  std::vector<FolderFile> files;
  RETURN_IF_ERROR(walk(folder, [&](const fs::directory_entry& entry) -> Status {
    std::string name = entry.path().lexically_relative(folder).string();
    if (entry.is_directory() && !entry.is_symlink()) return success();
    if (entry.is_symlink() || !entry.is_regular_file())
      return Error(Errc::invalid_argument, fmt::format("{} is not a regular file", name));
    if (name.size() > evidence::workflow::name_bytes_max)
      return Error(Errc::invalid_argument,
                   fmt::format("the path {} has more than {} bytes", name, evidence::workflow::name_bytes_max));
    if (files.size() == files_max)
      return Error(Errc::too_large, fmt::format("more than {} files in {}", files_max, folder));
    files.push_back({std::move(name), static_cast<std::int64_t>(entry.file_size())});
    return success();
  }));
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

std::string too_many_files(std::size_t files_max) {
  return fmt::format("more than {} files and links. Remove those that the tester does not need", files_max);
}

Result<Fd> archive_of(const std::string& folder, std::size_t files_max) {
  ASSIGN_OR_RETURN(const std::vector<ProgramFile> files, program_files(folder, files_max));
  ASSIGN_OR_RETURN(Fd file, temporary_file());
  ASSIGN_OR_RETURN(TarWriter writer, TarWriter::create(file.get(), "the implementation"));
  ASSIGN_OR_RETURN(const Fd root, open_folder(folder));
  for (const auto& [name, target] : files) {
    if (!target.empty()) {
      RETURN_IF_ERROR(writer.begin({name, 0, target}));
      continue;
    }
    ASSIGN_OR_RETURN(const RegularFile source, open_regular_beneath(root, name));
    RETURN_IF_ERROR(writer.begin({name, source.size, {}}));
    RETURN_IF_ERROR(read_pieces(source, name, [&](std::string_view piece) { return writer.write(piece); }));
  }
  RETURN_IF_ERROR(writer.finish());
  return file;
}

Status copy_out(const std::string& folder, const std::string& target, std::size_t files_max) {
  ASSIGN_OR_RETURN(const std::vector<ProgramFile> files, program_files(folder, files_max));
  if (::mkdir(target.c_str(), 0755) != 0) return file_error("creating", target, errno);
  ASSIGN_OR_RETURN(const Fd to, open_folder(target));
  ASSIGN_OR_RETURN(const Fd from, open_folder(folder));
  for (const auto& [name, link] : files) {
    RETURN_IF_ERROR(make_folders(to, name));
    if (!link.empty()) continue;
    ASSIGN_OR_RETURN(const RegularFile source, open_regular_beneath(from, name));
    struct stat about {};
    const bool runs = ::fstat(source.fd.get(), &about) == 0 && (about.st_mode & S_IXUSR) != 0;
    const Fd file(
        ::openat(to.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, runs ? 0755 : 0644));
    if (!file.open()) return file_error("creating", fmt::format("{}/{}", target, name), errno);
    const std::string& path = name;
    RETURN_IF_ERROR(
        read_pieces(source, path, [&](std::string_view piece) { return write_all(file.get(), piece, path); }));
  }
  // The links are made last, so that no file is written through one.
  for (const auto& [name, link] : files) {
    if (!link.empty() && ::symlinkat(link.c_str(), to.get(), name.c_str()) != 0)
      return file_error("creating", fmt::format("{}/{}", target, name), errno);
  }
  return success();
}

Result<ResolvedCommand> resolve_command(const evidence::workflow::Step& step, const std::string& folder) {
  ResolvedCommand resolved;
  ASSIGN_OR_RETURN(std::string program, find_program(step.command.front(), folder));
  resolved.files.push_back(program);
  resolved.argv.push_back(std::move(program));
  for (std::size_t i = 1; i < step.command.size(); ++i) {
    const std::string& word = step.command[i];
    std::error_code failed;
    const std::string path = (fs::path(folder) / word).lexically_normal().string();
    const bool names_file = !word.empty() && word.front() != '-' && fs::is_regular_file(path, failed);
    if (names_file) resolved.files.push_back(path);
    resolved.argv.push_back(names_file ? path : word);
  }
  for (const std::string& read : step.reads) {
    const std::string path = (fs::path(folder) / read).lexically_normal().string();
    std::error_code failed;
    if (!fs::exists(path, failed)) return Error(Errc::not_found, fmt::format("reads: {} does not exist", path));
    if (!fs::is_regular_file(path, failed) && !fs::is_directory(path, failed))
      return Error(Errc::invalid_argument, fmt::format("reads: {} is neither a file nor a folder", path));
    resolved.files.push_back(path);
  }
  return resolved;
}

Result<Hash> hash_of_files(const std::vector<std::string>& paths, const std::string& folder) {
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
      all.push_back(path);
      continue;
    }
    RETURN_IF_ERROR(walk(path, [&](const fs::directory_entry& entry) -> Status {
      if (entry.is_symlink() || entry.is_regular_file()) all.push_back(entry.path().string());
      return success();
    }));
  }
  std::sort(all.begin(), all.end());
  Sha256 hash;
  for (const std::string& path : all) {
    const std::string below = fs::path(path).lexically_relative(folder).string();
    const std::string& name = below.empty() || below.starts_with("..") ? path : below;
    std::error_code failed;
    const bool named = std::find(paths.begin(), paths.end(), path) != paths.end();  // a named link is followed
    if (!named && fs::is_symlink(path, failed)) {
      hash.update(fmt::format("link {} {}\n", fs::read_symlink(path, failed).string(), name));
      continue;
    }
    ASSIGN_OR_RETURN(const RegularFile file, open_regular(path));
    Sha256 content;
    for (std::int64_t offset = 0;;) {
      ASSIGN_OR_RETURN(const std::string piece, read_at(file.fd, offset, piece_bytes));
      if (piece.empty()) break;
      content.update(piece);
      offset += static_cast<std::int64_t>(piece.size());
    }
    hash.update(fmt::format("{} {}\n", to_hex(content.finish()), name));
  }
  return hash.finish();
}

Result<std::string> digest_of(const SpecText& specification, const std::string& folder,
                              const ResolvedCommand& spec_writer, const ResolvedCommand& tester) {
  ASSIGN_OR_RETURN(const Hash writes, hash_of_files(spec_writer.files, folder));
  ASSIGN_OR_RETURN(const Hash tests, hash_of_files(tester.files, folder));
  return to_hex(sha256(fmt::format("workflow 1\nspecification {}\ntask {}\nspec_writer {}\ntester {}\n",
                                   to_hex(sha256(specification.toml)), to_hex(sha256(specification.task)),
                                   to_hex(writes), to_hex(tests))));
}

Result<std::string> digest_of(std::string_view toml, const std::string& folder, const evidence::workflow::Spec& spec) {
  ASSIGN_OR_RETURN(const ResolvedCommand spec_writer, resolve_command(spec.spec_writer, folder));
  ASSIGN_OR_RETURN(const ResolvedCommand tester, resolve_command(spec.tester, folder));
  return digest_of({toml, spec.task}, folder, spec_writer, tester);
}

}  // namespace muniment::cli
