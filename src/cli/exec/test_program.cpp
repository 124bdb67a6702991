#include "cli/exec/test_program.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "evidence/completion/runners.hpp"
#include "evidence/completion/text/command_line.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;
using evidence::completion::CommandKind;

constexpr std::size_t entry_points_bytes_max = 64 * 1024;

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
// Further ones, for which only a value in the command line counts: each environment has one.
constexpr std::string_view own_in_line = "PATH HOME ENV SHELL PERL5LIB NODE_PATH LD_LIBRARY_PATH";

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

std::string changed_environment(const std::vector<std::string>& argv) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string name = changes_command(*variable); !name.empty()) return name;
  }
  for (const std::string& word : argv) {  // of `env`, or in a script of the shell
    std::string_view rest = word;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find_first_of(" ;&\n"));
      if (std::string name = changes_command(part); !name.empty()) return name;
      const std::string_view name = part.substr(0, part.find('='));
      if (name.size() < part.size() && evidence::completion::holds_word(own_in_line, name)) return std::string(name);
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
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

bool is_within(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

class Examination {
 public:
  Examination(const std::vector<std::string>& argv, const std::string& folder, const TaskBase& base)
      : argv_(argv), folder_(folder), base_(base), kind_(evidence::completion::kind_of(argv, {})) {}

  TestProgram examine() {
    TestProgram found;
    found.path = resolved(place_of(argv_.front()));
    if (const std::string name = changed_environment(argv_); !name.empty()) {
      found.own = fmt::format("the variable {} changes what the command runs", name);
      return found;
    }
    for (const std::string& name : {argv_.front(), kind_.name}) {
      const fs::path place = place_of(name);
      const std::string path = resolved(place);
      // The name of a module need be no program.
      if (found.own.empty() && path.empty() && name.find_first_of("/$`") != std::string::npos)
        found.own = fmt::format("the program {} was not found before the command started", name);
      if (!found.own.empty() || path.empty()) continue;
      if (is_within(path, top())) {
        if (is_own(path))
          found.own = fmt::format("the program {} lies in the working folder and is no installed package", path);
      } else if (!is_installed(path)) {
        found.own = made_by_agent(place.string());
        if (found.own.empty()) found.own = made_by_agent(path);
      }
    }
    if (found.own.empty()) found.own = shadowed_module();
    return found;
  }

 private:
  // Returns the path that runs for the name, which may be a link; empty: there is none.
  fs::path place_of(const std::string& name) const {
    if (name.empty()) return {};
    return name.find('/') == std::string::npos ? find_in_path(name) : fs::path(folder_) / name;
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

  const std::string& top() {
    if (top_.empty()) {
      std::string line = git_output(folder_, {"rev-parse", "--show-toplevel"}).value_or("");
      while (!line.empty() && line.back() == '\n') line.pop_back();
      std::error_code failed;
      top_ = line.empty() ? fs::canonical(folder_, failed).string() : line;
      in_git_ = !line.empty();
    }
    return top_;
  }

  // A package that a tool installed into the tree is ignored by git; a script of the project is as it was committed.
  bool is_own(const std::string& path) {
    if (!in_git_) return !is_installed(path);
    if (git_output(folder_, {"check-ignore", "-q", "--", path})) return !is_installed(path);
    // The bytes are compared here: git would ask filters that the repository names.
    const auto committed =
        git_output(folder_, {"cat-file", "blob", base_.commit + ":" + path.substr(top().size() + 1)});
    if (!committed) return true;
    const auto now = read_file(path, committed->size() + 1);
    return !now || *now != *committed;
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

  // `python -m MODULE` prefers the working folder, and Python prefers the folders of PYTHONPATH, to installed packages.
  std::string shadowed_module() const {
    if (kind_.program != evidence::completion::Program::runner || kind_.name.find('/') != std::string::npos) return {};
    const char* const more = std::getenv("PYTHONPATH");
    std::vector<std::string> folders;
    if (kind_.name != argv_.front()) folders.push_back(folder_);
    for (std::string_view rest = more == nullptr ? "" : more; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find(':'));
      folders.push_back((fs::path(folder_) / part).string());
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    for (const std::string& folder : folders) {
      for (const std::string& name :
           {kind_.name, "_" + kind_.name, std::string("sitecustomize"), std::string("usercustomize")}) {
        for (const std::string& file : {folder + "/" + name + ".py", folder + "/" + name + "/__init__.py"}) {
          std::error_code failed;
          if (fs::exists(file, failed)) return fmt::format("the file {} takes the place of the module {}", file, name);
        }
      }
    }
    return {};
  }

  const std::vector<std::string>& argv_;
  const std::string& folder_;
  const TaskBase& base_;
  const CommandKind kind_;
  std::string top_;
  bool in_git_ = false;
};

}  // namespace

TestProgram test_program(const std::vector<std::string>& argv, const std::string& folder, const TaskBase& base) {
  TestProgram found = Examination(argv, folder, base).examine();
  found.path = preview(found.path, 4096);
  found.own = preview(found.own, 1000);
  return found;
}

}  // namespace muniment::cli
