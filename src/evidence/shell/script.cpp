#include "evidence/shell/script.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace muniment::evidence::shell {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

struct Operator {
  std::string_view text;
  std::string_view joint;  // as it counts
};
constexpr std::array operators{Operator{"&&", "&&"}, Operator{"||", "||"}, Operator{"|&", "|"},
                               Operator{";", ";"},   Operator{"|", "|"},   Operator{"&", "&"},
                               Operator{"\n", ";"},  Operator{"(", ";"},   Operator{")", ";"}};

class ScriptReader {
 public:
  explicit ScriptReader(std::string_view script) : script_(script) { read_.commands.emplace_back(); }

  ShellScript read() && {
    while (at_ < script_.size() && read_.commands.size() <= script_commands_max) step(script_[at_]);
    if (at_ < script_.size()) read_.substitutes = true;  // the script was not read to its end
    end_word();
    if (current().words.empty() && current().written.empty()) read_.commands.pop_back();
    if (read_.commands.size() > script_commands_max) read_.commands.resize(script_commands_max);
    return std::move(read_);
  }

 private:
  ScriptCommand& current() { return read_.commands.back(); }
  bool follows(std::string_view text) const { return script_.substr(at_).starts_with(text); }

  void step(char c) {
    note_expansion(c);
    if (c == '\'' || c == '"') return quoted(c);
    if (c == '\\' && at_ + 1 < script_.size()) {
      if (script_[at_ + 1] != '\n') put(script_[at_ + 1]);
      word_quoted_ = word_quoted_ || in_word_;
      at_ += 2;
    } else if (c == '#' && !in_word_) {
      at_ = std::min(script_.find('\n', at_), script_.size());
    } else if (follows("<<") && !follows("<<<")) {
      here_document();
    } else if (c == '<') {
      end_descriptor();
      at_ += follows("<<<") ? 3U : 1U;
      skips_word_ = true;
    } else if (c == '>' || follows("&>")) {
      redirection();
    } else if (is_blank(c)) {
      end_word();
      ++at_;
    } else if (!end_command()) {
      put(c);
      ++at_;
    }
  }

  // Notes what a shell would replace. Shells differ in their reading of $'…' and $"…".
  void note_expansion(char c) {
    if (c == '`' || follows("$(") || follows("$'") || follows("$\"") || c == '(' || follows("<<"))
      read_.substitutes = true;
    const bool pattern = c == '*' || c == '?' || c == '[' || c == '{' || (c == '~' && !in_word_);
    if (c == '$' || pattern) word_expands_ = true;
  }

  void put(char c) {
    word_ += c;
    in_word_ = true;
  }

  void quoted(char mark) {
    in_word_ = word_quoted_ = true;
    for (++at_; at_ < script_.size() && script_[at_] != mark; ++at_) {
      if (mark == '"' && script_[at_] == '\\' && at_ + 1 < script_.size()) {
        ++at_;
      } else if (mark == '"' && (script_[at_] == '$' || script_[at_] == '`')) {
        word_expands_ = true;
        if (script_[at_] == '`' || follows("$(")) read_.substitutes = true;
      }
      word_ += script_[at_];
    }
    ++at_;
  }

  // Reads the delimiter of a here document. The text up to it is data, and is skipped at the end of the line.
  void here_document() {
    end_word();
    at_ += follows("<<-") ? 3U : 2U;
    while (at_ < script_.size() && (is_blank(script_[at_]) || is_quote(script_[at_]))) ++at_;
    const std::size_t begin = at_;
    while (at_ < script_.size() && (is_letter(script_[at_]) || is_digit(script_[at_]) || script_[at_] == '_')) ++at_;
    here_mark_ = std::string(script_.substr(begin, at_ - begin));
    while (at_ < script_.size() && is_quote(script_[at_])) ++at_;
  }
  static bool is_quote(char c) { return c == '\'' || c == '"' || c == '\\'; }

  void skip_here_document() {
    const std::string mark = std::exchange(here_mark_, {});
    while (at_ < script_.size()) {
      const std::size_t end = std::min(script_.find('\n', at_), script_.size());
      std::string_view line = script_.substr(at_, end - at_);
      line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      at_ = std::min(end + 1, script_.size());
      if (line == mark) return;
    }
  }

  // The digits before < and > name the redirected descriptor.
  std::string end_descriptor() {
    std::string digits;
    if (in_word_ && !word_quoted_ && std::ranges::all_of(word_, is_digit)) {
      digits = std::exchange(word_, {});
      in_word_ = false;
    }
    end_word();
    return digits;
  }

  // Without digits, or with 1, it is the standard output; 2>&1 only adds to it.
  void redirection() {
    const bool both = script_[at_] == '&';
    const std::string digits = end_descriptor();
    const std::size_t number = std::min(digits.find_first_not_of('0'), digits.size());
    const bool of_output = both || digits.empty() || digits.substr(number) == "1";
    read_.redirects_output = read_.redirects_output || of_output;
    at_ += both ? 1U : 0U;
    while (at_ < script_.size() && (script_[at_] == '>' || script_[at_] == '|')) ++at_;
    if (at_ < script_.size() && script_[at_] == '&') {  // >&2
      ++at_;
      while (at_ < script_.size() && (is_digit(script_[at_]) || script_[at_] == '-')) ++at_;
      return;
    }
    writes_word_ = true;
    if (of_output) current().output_away = true;
  }

  bool end_command() {
    const auto found = std::ranges::find_if(operators, [&](const Operator& one) { return follows(one.text); });
    if (found == operators.end()) return false;
    end_word();
    skips_word_ = writes_word_ = false;
    at_ += found->text.size();
    if (!current().words.empty() || !current().written.empty()) {
      current().after = found->joint;
      read_.commands.emplace_back();
      current().before = found->joint;
    } else if (read_.commands.size() > 1 && found->joint != ";") {  // after the end of a line, or of a subshell
      read_.commands[read_.commands.size() - 2].after = found->joint;
      current().before = found->joint;
    }
    if (found->text == "\n" && !here_mark_.empty()) skip_here_document();
    return true;
  }

  // The word after a redirection is its file.
  void end_word() {
    if (in_word_) {
      if (word_expands_ && read_.expanded.empty()) read_.expanded = word_;
      if (writes_word_) {
        current().written.push_back(std::move(word_));
      } else if (!skips_word_ && current().words.size() < command_words_max) {
        current().words.push_back(std::move(word_));
      } else if (!skips_word_) {
        read_.substitutes = true;
      }
      writes_word_ = skips_word_ = false;
    }
    word_.clear();
    in_word_ = word_quoted_ = word_expands_ = false;
  }

  std::string_view script_;
  ShellScript read_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  bool word_quoted_ = false;   // a part of the word is quoted
  bool word_expands_ = false;  // a shell replaces a part of the word
  bool writes_word_ = false;   // the next word is the target of a redirection
  bool skips_word_ = false;    // the next word is the source of one
  std::string here_mark_;
};

// Returns whether the command writes nothing and runs nothing.
bool only_prepares(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  if (words[0] == "cd" || words[0] == "set") return true;
  if ((words[0] == "source" || words[0] == ".") && words.size() == 2) return is_activation(words[1]);
  const bool exports = words[0] == "export";
  return std::all_of(words.begin() + (exports ? 1 : 0), words.end(),
                     [](const std::string& word) { return is_assignment(word); });
}

}  // namespace

ShellScript read_script(std::string_view script) { return ScriptReader(script).read(); }

bool status_speaks(std::span<const ScriptCommand> commands, std::size_t at) {
  const bool ends_well = commands.empty() || commands.back().after != "&";
  return ends_well && std::ranges::all_of(commands.subspan(at, commands.size() - 1 - at),
                                          [](const ScriptCommand& command) { return command.after == "&&"; });
}

bool is_one_command(const ShellScript& script) {
  if (script.commands.empty() || script.redirects_output || script.substitutes) return false;
  const auto last = std::prev(script.commands.end());
  if (!last->after.empty() && last->after != ";") return false;
  return std::all_of(script.commands.begin(), last, [](const ScriptCommand& command) {
    return (command.after == "&&" || command.after == ";") && only_prepares(command.words);
  });
}

bool is_activation(std::string_view word) { return word.ends_with("/bin/activate"); }

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || is_digit(word[0])) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

}  // namespace muniment::evidence::shell
