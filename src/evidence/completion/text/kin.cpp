#include "evidence/completion/text/kin.hpp"

#include <algorithm>
#include <vector>

#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t path_extension_letters_max = 5;

struct Path {
  std::string_view folder;     // "src"; empty: none is named
  std::string_view base;       // "scheduler"
  std::string_view extension;  // "py"; empty: none
};

// A file's name, a path, or the path of an address. Line, column and query are left out.
bool read_path(std::string_view core, Path& path) {
  if (core.size() < 3 || core.size() > kin_bytes_max) return false;
  if (const std::size_t scheme = core.find("://"); scheme != std::string_view::npos) {
    core.remove_prefix(scheme + 3);
    core.remove_prefix(std::min(core.find('/'), core.size()));
  }
  core = core.substr(0, core.find_first_of(":?"));
  const std::size_t slash = core.rfind('/');
  if (core.empty() || slash + 1 == core.size()) return false;
  path.folder = slash == std::string_view::npos ? std::string_view() : core.substr(0, std::max<std::size_t>(slash, 1));
  path.base = slash == std::string_view::npos ? core : core.substr(slash + 1);
  const std::size_t dot = path.base.rfind('.');
  path.extension = {};
  if (dot != std::string_view::npos && dot > 0) {
    path.extension = path.base.substr(dot + 1);
    path.base = path.base.substr(0, dot);
    const bool letters = std::all_of(path.extension.begin(), path.extension.end(), is_letter);
    if (!letters || path.extension.empty() || path.extension.size() > path_extension_letters_max) return false;
  }
  if (path.extension.empty() && path.folder.empty()) return false;
  return path.base.size() >= 2 && std::any_of(path.base.begin(), path.base.end(), is_letter);
}

// "crates" and "/srv/work/crates"
bool is_same_folder(std::string_view wanted, std::string_view shown) {
  if (wanted == shown) return true;
  if (wanted == "/") return false;
  return !wanted.empty() && shown.size() > wanted.size() && shown.ends_with(wanted) &&
         shown[shown.size() - wanted.size() - 1] == '/';
}

bool is_of_tests(std::string_view token) {
  bool found = false;
  each_word(token, [&](std::string_view word) { found = found || (classes_of(word) & test_word) != 0; });
  return found;
}

template <typename Take>
void each_core(std::string_view text, Take&& take) {
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && is_blank(text[i])) ++i;
    const std::size_t begin = i;
    bool path = false;
    while (i < text.size() && !is_blank(text[i])) {
      path = path || text[i] == '/' || text[i] == '.';
      ++i;
    }
    if (path) take(core_of(text.substr(begin, i - begin)));
  }
}

}  // namespace

std::string kin_in(std::string_view text, std::string_view task_content) {
  std::vector<Path> wanted;
  each_core(task_content, [&](std::string_view core) {
    Path path;
    if (wanted.size() < kin_paths_max && read_path(core, path)) wanted.push_back(path);
  });
  if (wanted.empty()) return {};
  for (const Path& path : wanted) {
    if (text.find(path.base) != std::string_view::npos) return {};
  }
  std::vector<std::string_view> others;
  each_core(text, [&](std::string_view core) {
    Path path;
    if (others.size() > kin_others_max || !read_path(core, path)) return;
    const bool kin = std::any_of(wanted.begin(), wanted.end(), [&](const Path& own) {
      return own.extension == path.extension && is_same_folder(own.folder, path.folder);
    });
    if (!kin || is_of_tests(core) || std::find(others.begin(), others.end(), core) != others.end()) return;
    others.push_back(core);
  });
  return others.empty() || others.size() > kin_others_max ? std::string() : std::string(others.front());
}

}  // namespace muniment::evidence::completion
