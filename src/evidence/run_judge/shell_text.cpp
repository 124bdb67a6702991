// Splits a command line into simple commands, and removes wrappers from their words.
#include "evidence/run_judge/shell_text.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace muniment::evidence::run_judge {
namespace {

class ShellReader {
 public:
  explicit ShellReader(std::string_view text) : text_(text.substr(0, shell_bytes_max)) {}

  std::vector<SimpleCommand> read() && {
    while (at_ < text_.size() && commands_.size() < simple_commands_max) step();
    end_command("\n");
    // Evaluated from the end: the line's status is that of its last command, or of an earlier command joined to it by
    // &&.
    bool speaks = true;
    for (std::size_t i = commands_.size(); i-- > 0;) {
      speaks = speaks && (i + 1 == commands_.size() ? last_ends_well_ : separators_[i] == "&&");
      commands_[i].status_speaks = speaks;
    }
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = text_[at_];
    switch (c) {
      case ' ':
      case '\t':
      case '\r': end_word(); break;
      case '\\':
        ++at_;
        if (at_ < text_.size() && text_[at_] != '\n') put(text_[at_]);
        break;
      case '\'':
      case '"': quoted(c); break;
      case '#':
        if (!in_word_) {
          at_ = std::min(text_.find('\n', at_), text_.size());
          return;
        }
        put(c);
        break;
      case '<':
        if (text_.substr(at_, 2) == "<<") return here_document();
        end_word();
        reading_ = true;
        break;
      case '>': return redirection();
      case '&':
      case '|':
      case ';':
      case '\n':
      case '(':
      case ')': return separator();
      default: put(c);
    }
    ++at_;
  }

  void put(char c) {
    in_word_ = true;
    word_.push_back(c);
  }

  void quoted(char mark) {
    in_word_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != mark; ++at_) {
      if (mark == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word_.push_back(text_[at_]);
    }
  }

  // Reads the delimiter of a here document, whose text is data.
  void here_document() {
    end_word();
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '<') {  // <<< word
      ++at_;
      reading_ = true;
      return;
    }
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\'' || text_[at_] == '"' || text_[at_] == '\\'))
      ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    here_mark_ = std::string(text_.substr(begin, at_ - begin));
    while (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) ++at_;
  }

  // Skips, at the end of a line, the lines up to the delimiter.
  void skip_here_document() {
    const std::string mark = std::exchange(here_mark_, {});
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      at_ = std::min(end + 1, text_.size());
      if (line == mark) return;
    }
  }

  void redirection() {
    const bool errors_only = word_.size() == 1 && word_[0] >= '2' && word_[0] <= '9';
    if (!word_.empty() && word_.find_first_not_of("0123456789&") == std::string::npos) {  // 2>
      word_.clear();
      in_word_ = false;
    }
    end_word();
    while (at_ < text_.size() && (text_[at_] == '>' || text_[at_] == '|')) ++at_;
    if (at_ < text_.size() && text_[at_] == '&') {  // >&2
      ++at_;
      while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '-'))
        ++at_;
      return;
    }
    writing_ = true;
    if (!errors_only) current_.output_away = true;
  }

  void separator() {
    static constexpr std::string_view marks[] = {"&&", "||", "|&", "&>", ";", "|", "&", "\n", "(", ")"};
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view mark : marks) {
      if (!rest.starts_with(mark)) continue;
      if (mark == "&>") {
        ++at_;
        return redirection();
      }
      at_ += mark.size();
      end_command(mark);
      if (mark == "\n" && !here_mark_.empty()) skip_here_document();
      return;
    }
    ++at_;
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    std::string word = std::exchange(word_, {});
    if (writing_) {
      current_.written.push_back(std::move(word));
    } else if (!reading_ && current_.words.size() < words_max) {
      current_.words.push_back(std::move(word));
    }
    writing_ = reading_ = false;
  }

  void end_command(std::string_view separator) {
    end_word();
    writing_ = reading_ = false;
    if (current_.words.empty() && current_.written.empty()) {
      if (!separators_.empty() && separator != "\n" && separator != ")") separators_.back() = std::string(separator);
      return;
    }
    current_.piped = separator == "|" || separator == "|&";
    commands_.push_back(std::exchange(current_, {}));
    separators_.emplace_back(separator);
    last_ends_well_ = separator != "&";
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  bool writing_ = false;  // the next word is a target
  bool reading_ = false;  // the next word is a source
  bool last_ends_well_ = true;
  std::string here_mark_;
  SimpleCommand current_;
  std::vector<SimpleCommand> commands_;
  std::vector<std::string> separators_;  // the separator after each command
};

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

// Words before a program that only set how it runs, with the number of their own operands.
struct Wrapper {
  std::string_view first;
  std::string_view second;  // empty: none
  std::size_t own_words = 0;
};
constexpr Wrapper wrappers[] = {
    {"sudo", "", 0},       {"env", "", 0},        {"time", "", 0},      {"nice", "", 0},        {"nohup", "", 0},
    {"exec", "", 0},       {"command", "", 0},    {"timeout", "", 1},   {"xvfb-run", "", 0},    {"stdbuf", "", 0},
    {"if", "", 0},         {"then", "", 0},       {"do", "", 0},        {"!", "", 0},           {"while", "", 0},
    {"poetry", "run", 0},  {"pipenv", "run", 0},  {"uv", "run", 0},     {"pdm", "run", 0},      {"hatch", "run", 0},
    {"rye", "run", 0},     {"bundle", "exec", 0}, {"npx", "", 0},       {"bunx", "", 0},        {"pnpm", "exec", 0},
    {"pnpm", "dlx", 0},    {"yarn", "exec", 0},   {"conda", "run", 0},  {"coverage", "run", 0}, {"dotenv", "run", 0},
    {"docker", "exec", 1}, {"dotnet", "exec", 0}, {"stack", "exec", 0}, {"opam", "exec", 0},    {"nix", "develop", 0},
};

std::string base_name(std::string_view program) { return std::string(program.substr(program.rfind('/') + 1)); }

// /usr/bin/pytest, node_modules/.bin/jest; not bin/test, which is a script of the project and not the shell builtin.
bool is_installed(std::string_view program) {
  const bool in_bin = program.starts_with("/") || program.starts_with("bin/") ||
                      program.find("/bin/") != std::string_view::npos ||
                      program.find("/.bin/") != std::string_view::npos;
  return in_bin && base_name(program) != "test";
}

bool is_python(std::string_view program) {
  return program.starts_with("python") || program == "pypy3" || program == "py";
}

}  // namespace

std::vector<SimpleCommand> simple_commands(std::string_view line) { return ShellReader(line).read(); }

std::vector<std::string> bare_words(const std::vector<std::string>& words) {
  std::size_t at = 0;
  const auto skip_options = [&] {
    while (at < words.size() && words[at].starts_with("-")) ++at;
  };
  for (bool changed = true; changed && at < words.size();) {
    changed = false;
    while (at < words.size() && is_assignment(words[at])) ++at;
    for (const Wrapper& wrapper : wrappers) {
      if (at >= words.size() || base_name(words[at]) != wrapper.first) continue;
      if (!wrapper.second.empty() && (at + 1 >= words.size() || words[at + 1] != wrapper.second)) continue;
      at += std::size_t{wrapper.second.empty() ? 1U : 2U};
      skip_options();
      at = std::min(at + wrapper.own_words, words.size());
      if (at < words.size() && words[at] == "--") ++at;
      changed = true;
      break;
    }
    if (at + 2 < words.size() && is_python(base_name(words[at]))) {
      std::size_t module = at + 1;
      while (module < words.size() && words[module].starts_with("-") && words[module] != "-m" && words[module] != "-c")
        ++module;
      if (module + 1 < words.size() && words[module] == "-m") {
        at = module + 1;
        changed = true;
      }
    }
  }
  std::vector<std::string> bare(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  if (!bare.empty() && is_installed(bare.front())) bare.front() = base_name(bare.front());
  return bare;
}

}  // namespace muniment::evidence::run_judge
