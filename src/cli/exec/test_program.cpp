#include "cli/exec/test_program.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/crypto/git_object.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "evidence/completion/runners.hpp"
#include "evidence/completion/text/command_line.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;
using evidence::completion::CommandKind;

constexpr std::size_t entry_points_bytes_max = 64 * 1024;
constexpr std::size_t committed_program_bytes_max = 64 << 20;  // a larger one counts as changed
constexpr std::size_t settings_bytes_max = 256 * 1024;
constexpr std::size_t listed_files_max = 20'000;  // of a folder that is no working tree of git

// Variables by which something else runs than the command line names, or only a part of the tests.
struct Variable {
  std::string_view name;      // ends with * for a prefix
  std::string_view contains;  // alternatives, separated by spaces; empty: any value
};
constexpr std::array variables{
    Variable{"LD_PRELOAD", ""},
    Variable{"LD_AUDIT", ""},
    Variable{"BASH_ENV", ""},
    Variable{"BASH_FUNC_*", ""},
    Variable{"PYTEST_ADDOPTS", ""},
    Variable{"PYTEST_PLUGINS", ""},
    Variable{"PYTHONHOME", ""},
    Variable{"PYTHONOPTIMIZE", ""},
    Variable{"PYTHONPYCACHEPREFIX", ""},
    Variable{"GTEST_FILTER", ""},
    Variable{"RUBYOPT", "-r"},
    Variable{"PERL5OPT", "-M -m"},
    Variable{"NODE_OPTIONS", "--require -r --import --loader --experimental-loader --test-name-pattern"},
    Variable{"GOFLAGS", "-run -skip -exec -toolexec -short -overlay"},
    Variable{"MAKEFLAGS", "-f -i -n -t --eval --ignore-errors --just-print --touch"},
    Variable{"CTEST_*", "-E -R -L"},
    Variable{"JEST_*", "-t"},
    Variable{"PYTHONUSERBASE", ""},
    Variable{"MAKEFILES", ""},
    Variable{"GOENV", ""},
    Variable{"HARNESS_PERL", ""},
    Variable{"CARGO_TARGET_*", "/"},
    Variable{"npm_config_script_shell", ""},
};

// Modules of Python and of its runners. A file of such a name in the working folder takes the place of the module.
constexpr std::string_view python_modules =
    "abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 "
    "cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent "
    "configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal "
    "difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput "
    "fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib "
    "heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache "
    "locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder multiprocessing netrc nis "
    "nntplib nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes "
    "pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc "
    "pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select "
    "selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile "
    "sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig "
    "syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit token tokenize tomllib "
    "trace traceback tracemalloc tty types typing unicodedata unittest urllib uu uuid venv warnings wave weakref "
    "webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo "
    "pytest _pytest pluggy iniconfig packaging exceptiongroup tomli py coverage pytest_cov xdist execnet sitecustomize "
    "usercustomize";

bool contains_word(std::string_view value, std::string_view words) {
  if (words.empty()) return !value.empty();
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if ((" " + std::string(value)).find(" " + std::string(word)) != std::string::npos) return true;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return false;
}

// Returns the name of the variable if `setting` is "NAME=VALUE" of such a variable.
std::string changes_command(std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view name = setting.substr(0, equals);
  for (const Variable& row : variables) {
    const bool prefix = row.name.ends_with('*');
    const std::string_view wanted = prefix ? row.name.substr(0, row.name.size() - 1) : row.name;
    if ((prefix ? name.starts_with(wanted) : name == wanted) && contains_word(setting.substr(equals + 1), row.contains))
      return std::string(name);
  }
  return {};
}

std::string text_of(const fs::path& path, std::size_t bytes_max) {
  auto text = read_file(path.string(), bytes_max);
  return text ? std::move(*text) : std::string();
}

std::string changed_environment() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string name = changes_command(*variable); !name.empty()) return name;
  }
  return {};
}

fs::path find_in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    const fs::path file = fs::path(folder.empty() ? std::string_view(".") : folder) / name;
    std::error_code failed;
    if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, failed)) return file;
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
  }
  return {};
}

class Examination {
 public:
  Examination(const std::vector<std::string>& argv, const std::string& folder, const TaskBase& base)
      : argv_(argv),
        folder_(folder),
        base_(base),
        kind_(evidence::completion::kind_of(argv, {})),
        where_(resolved(fs::path(folder) / kind_.read.folder)) {
    top_ = git_output(folder_, {"rev-parse", "--show-toplevel"}).value_or("");
    while (!top_.empty() && top_.back() == '\n') top_.pop_back();
    in_git_ = !top_.empty();
    if (!in_git_) top_ = resolved(folder_);
  }

  TestProgram examine() {
    TestProgram found;
    found.path = resolved(place_of(argv_.front()));
    const std::string variable = changed_environment();
    if (!variable.empty()) found.own = fmt::format("the variable {} changes what the command runs", variable);
    if (found.own.empty() && !kind_.read.folder.empty() && !is_in_tree())
      found.own = fmt::format("the program ran in {}, outside the working tree",
                              (fs::path(folder_) / kind_.read.folder).string());
    for (const std::string& name : kind_.read.programs) {
      if (found.own.empty()) found.own = own_program(name);
    }
    if (found.own.empty() && !kind_.environment.empty())
      found.own = own_program("./" + kind_.environment + "/activate");
    if (found.own.empty() && runs_python()) found.own = shadowed_module();
    if (found.own.empty()) found.own = settings_above();
    if (is_in_tree()) found.left_out = left_out();
    return found;
  }

 private:
  bool is_in_tree() const { return is_beneath(where_, top_); }

  // Returns the reason why the program of this name is the agent's own; empty: none.
  std::string own_program(const std::string& name) {
    const fs::path place = place_of(name);
    const std::string path = resolved(place);
    if (path.empty() && name.find('/') != std::string::npos)
      return fmt::format("the program {} was not found before the command started", name);
    if (path.empty()) return {};
    if (is_beneath(path, top_)) {
      if (!is_own(path)) return {};
      return fmt::format("the program {} lies in the working folder and is no installed package", path);
    }
    if (is_installed(place.string()) || is_installed(path)) return {};
    std::string reason = made_by_agent(place.string());
    return reason.empty() ? made_by_agent(path) : reason;
  }

  // Returns the path that runs for the name, which may be a link; empty: there is none.
  fs::path place_of(const std::string& name) const {
    if (name.empty()) return {};
    if (name.find('/') != std::string::npos) return fs::path(where_) / name;
    const fs::path active = fs::path(folder_) / kind_.environment / name;
    if (!kind_.environment.empty() && ::access(active.c_str(), X_OK) == 0) return active;
    return find_in_path(name);
  }

  static std::string resolved(const fs::path& place) {
    std::error_code failed;
    const fs::path path = place.empty() ? place : fs::canonical(place, failed);
    return failed ? std::string() : path.string();
  }

  // Returns the reason why the agent may have made a program outside the tree; empty: none.
  std::string made_by_agent(const std::string& path) const {
    if (base_.is_newer(path))
      return fmt::format("the program {} changed after the task was opened, and is no installed package", path);
    for (fs::path folder = fs::path(path).parent_path(); !folder.empty(); folder = folder.parent_path()) {
      struct stat about {};
      if (::stat(folder.c_str(), &about) == 0 && (about.st_mode & S_IWOTH) != 0)
        return fmt::format("the program {} lies in {}, in which every user may write, and is no installed package",
                           path, folder.string());
      if (folder == folder.root_path()) break;
    }
    return {};
  }

  // A package that a tool installed into the tree is ignored by git; a script of the project is as it was committed.
  bool is_own(const std::string& path) {
    if (!in_git_ || !is_beneath(path, top_)) return !is_installed(path);
    if (git_output(folder_, {"check-ignore", "-q", "--", path})) return !is_installed(path);
    // The bytes are compared here, by their hash: git would ask filters that the repository names.
    std::string id = git_output(folder_, {"rev-parse", "--verify", "-q",
                                          base_.commit + ":" + fs::path(path).lexically_relative(top_).string()})
                         .value_or("");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    const auto now = read_file(path, committed_program_bytes_max);
    return id.empty() || !now || git_object_id("blob", *now, id.size()) != id;
  }

  static bool is_installed(const std::string& path) {
    for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/node_modules/", "/vendor/bundle/",
                                        "/vendor/bin/", "/.cargo/bin/", "/go/bin/"}) {
      if (path.find(part) != std::string::npos) return true;
    }
    std::error_code failed;
    const fs::path prefix = fs::path(path).parent_path().parent_path();
    return fs::exists(prefix / "pyvenv.cfg", failed) || is_python_script(prefix, fs::path(path).filename().string());
  }

  // Returns whether a package that pip installed below the prefix has a script of this name.
  static bool is_python_script(const fs::path& prefix, const std::string& name) {
    std::error_code failed;
    for (const fs::path& python : fs::directory_iterator(prefix / "lib", failed)) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const fs::path& package : fs::directory_iterator(python / packages, failed)) {
          if (package.extension() != ".dist-info") continue;
          const auto scripts = read_file((package / "entry_points.txt").string(), entry_points_bytes_max);
          if (scripts && scripts->find("\n" + name + " =") != std::string::npos) return true;
        }
      }
    }
    return false;
  }

  bool runs_python() const {
    return kind_.is_module || kind_.name.ends_with(".py") ||
           (kind_.runner != nullptr && kind_.runner->test_files.find(".py") != std::string_view::npos);
  }

  // Python prefers the working folder and the folders of PYTHONPATH to installed packages.
  std::string shadowed_module() {
    std::vector<fs::path> folders{where_};
    const char* const more = std::getenv("PYTHONPATH");
    evidence::shell::each_listed(more == nullptr ? "" : more, ':',
                                 [&](std::string_view part) { folders.push_back(fs::path(where_) / part); });
    std::error_code failed;
    for (const fs::path& folder : folders) {
      for (const fs::path& entry : fs::directory_iterator(folder, failed)) {
        const std::string name = entry.filename().string();
        const fs::path file = fs::is_directory(entry, failed) ? entry / "__init__.py" : entry;
        const std::string extension = file.extension().string();
        const bool is_module =
            (extension == ".py" || extension == ".pyc" || extension == ".so") && fs::exists(file, failed);
        const std::string module = name.substr(0, name.find('.'));
        if (is_module && evidence::shell::holds_word(python_modules, module) && is_own(file.string()))
          return fmt::format("the file {} takes the place of the module {}", file.string(), module);
        const fs::path points = entry / "entry_points.txt";
        if (name.ends_with("-info") && base_.is_newer(points.string()) &&
            text_of(points, entry_points_bytes_max).find("[pytest11]") != std::string::npos)
          return fmt::format("the plugin {} changed after the task was opened", points.string());
      }
    }
    return {};
  }

  // Runners also read settings above the working tree and in the home folder.
  std::string settings_above() const {
    if (kind_.runner == nullptr || kind_.runner->settings.empty()) return {};
    std::vector<fs::path> folders;
    for (fs::path folder = fs::path(top_).parent_path(); folder != folder.root_path(); folder = folder.parent_path())
      folders.push_back(folder);
    folders.emplace_back("/");
    if (const char* const home = std::getenv("HOME"); home != nullptr && *home != '\0') folders.emplace_back(home);
    std::string found;
    for (const fs::path& folder : folders) {
      evidence::shell::each_listed(kind_.runner->settings, ' ', [&](std::string_view name) {
        const std::string path = (folder / name).string();
        if (found.empty() && ::access(path.c_str(), F_OK) == 0 && base_.is_newer(path))
          found = fmt::format("the settings in {} changed after the task was opened", path);
      });
    }
    return found;
  }

  // Returns the paths of the tree's files, relative to it.
  std::vector<std::string> files_of_tree() const {
    if (in_git_)
      return split_at_nul(
          git_output(top_, {"ls-files", "-z", "--cached", "--others", "--exclude-standard"}).value_or(""));
    std::vector<std::string> files;
    std::error_code failed;
    for (fs::recursive_directory_iterator at(top_, fs::directory_options::skip_permission_denied, failed), end;
         at != end && files.size() < listed_files_max; at.increment(failed)) {
      if (at->is_regular_file(failed)) files.push_back(at->path().lexically_relative(top_).string());
    }
    return files;
  }

  // A folder or file on the command line. `nested` is false for a package of Go.
  struct Part {
    std::string path;
    bool nested = true;
    bool covers(const fs::path& file) const {
      return file == path || file.parent_path() == path || (nested && is_beneath(file.string(), path));
    }
  };

  // Returns the operands as parts of the tree; empty if one of them is no path, so that it may select by name.
  std::vector<Part> parts() const {
    const bool packages = kind_.runner->operands == evidence::completion::Runner::Operands::packages;
    if (kind_.read.operands.empty()) return {{where_, !packages}};
    std::vector<Part> found;
    for (std::string path : kind_.read.operands) {
      const bool nested = !packages || path.ends_with("...");
      if (packages && nested) path.resize(path.size() - 3);
      std::string place = resolved(fs::path(where_) / path);
      if (place.empty() && kind_.is_module) {
        std::ranges::replace(path, '.', '/');
        place = resolved(fs::path(where_) / (path + ".py"));
      }
      if (place.empty()) return {};
      found.push_back({place, nested});
    }
    return found;
  }

  // Returns a file of tests that the command line leaves out.
  std::string left_out() const {
    if (kind_.runner == nullptr || kind_.runner->test_files.empty()) return {};
    const std::vector<Part> covered = parts();
    const std::vector<Part> suite = configured_suite();
    for (const std::string& file : files_of_tree()) {
      const fs::path path = fs::path(top_) / file;
      const auto has = [&](const Part& part) { return part.covers(path); };
      bool is_test = false;
      evidence::shell::each_listed(kind_.runner->test_files, ' ', [&](std::string_view pattern) {
        is_test = is_test || ::fnmatch(std::string(pattern).c_str(), path.filename().c_str(), 0) == 0;
      });
      if (is_test && (suite.empty() || std::ranges::any_of(suite, has)) && std::ranges::none_of(covered, has) &&
          ::access(path.c_str(), F_OK) == 0)
        return file;
    }
    return {};
  }

  // The folders that the settings of pytest name as its tests (testpaths); empty: all.
  std::vector<Part> configured_suite() const {
    if (!kind_.runner->programs.starts_with("pytest")) return {};
    for (const char* name : {"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"}) {
      const std::string text = text_of(top_ + "/" + name, settings_bytes_max);
      std::size_t at = text.find("\ntestpaths");
      if (at == std::string::npos) continue;
      at = std::min(text.find('=', at), text.size() - 1) + 1;
      // The value ends before the next key or section.
      std::size_t end = std::min(text.find('=', at), text.size());
      if (end < text.size()) end = text.rfind('\n', end);
      std::string value = text.substr(at, std::min(end, std::min(text.find("\n[", at), text.size())) - at);
      std::ranges::replace_if(
          value, [](char c) { return std::string_view("\n\t,[]\"'").find(c) != std::string_view::npos; }, ' ');
      std::vector<Part> found;
      evidence::shell::each_listed(value, ' ', [&](std::string_view part) {
        if (std::string place = resolved(fs::path(top_) / part); !place.empty()) found.push_back({place});
      });
      return found;
    }
    return {};
  }

  const std::vector<std::string>& argv_;
  const std::string& folder_;
  const TaskBase& base_;
  const CommandKind kind_;
  const std::string where_;  // the folder in which the program runs; empty: there is none
  std::string top_;          // of the working tree; without one, the command's folder
  bool in_git_ = false;
};

}  // namespace

TestProgram test_program(const std::vector<std::string>& argv, const std::string& folder, const TaskBase& base) {
  TestProgram found = Examination(argv, folder, base).examine();
  found.path = preview(found.path, 4096);
  found.own = preview(found.own, 1000);
  found.left_out = preview(found.left_out, 1000);
  return found;
}

}  // namespace muniment::cli
