// Splits a shell script into simple commands, and decides whether it is one command.
#include "evidence/completion/shell_script.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::array<std::string_view, 6> operators{"&&", "||", ";", "|", "&", "\n"};

class ScriptReader {
 public:
  explicit ScriptReader(std::string_view script) : script_(script), read_{{ScriptCommand{}}, false, false, {}} {}

  ShellScript read() && {
    for (; at_ < script_.size() && read_.commands.size() < script_commands_max; ++at_) {
      const bool redirected = std::exchange(redirects_, false);
      step(script_[at_], redirected);
    }
    if (at_ < script_.size()) read_.substitutes = true;  // the script was not read to its end
    end_word();
    std::erase_if(read_.commands, [](const ScriptCommand& command) { return command.words.empty(); });
    return std::move(read_);
  }

 private:
  bool follows(std::string_view text) const { return script_.substr(at_).starts_with(text); }

  // `redirected`: the previous character is the > of a redirection.
  void step(char c, bool redirected) {
    if (quote_ != '\'' && (c == '`' || follows("$("))) read_.substitutes = true;
    if ((quote_ != '\'' && c == '$') || (quote_ == 0 && is_pattern(c))) word_expands_ = true;
    if (quote_ != 0) return quoted(c);
    if (c == '\'' || c == '"') {
      quote_ = c;
      in_word_ = word_quoted_ = true;
      return;
    }
    if (c == '\\' && at_ + 1 < script_.size()) {
      word_ += script_[++at_];
      in_word_ = word_quoted_ = true;
      return;
    }
    if (c == '#' && !in_word_) {
      at_ = std::min(script_.find('\n', at_), script_.size()) - 1;
      return;
    }
    // Shells differ in their reading of $'…' and $"…".
    if (c == '(' || follows("$'") || follows("$\"") || follows("<<")) read_.substitutes = true;
    if (c == '>' && !redirected) note_redirection();
    if (c == '>') redirects_ = true;
    if (c == '>' || c == '<') word_redirects_ = true;
    if (!end_command(redirected)) put(c);
  }

  void quoted(char c) {
    if (c == quote_) {
      quote_ = 0;
    } else if (c == '\\' && quote_ == '"' && at_ + 1 < script_.size()) {
      word_ += script_[++at_];
    } else {
      word_ += c;
    }
  }

  // The digits before > name the redirected descriptor; without digits it is standard output. 2>&1 only adds to it.
  void note_redirection() {
    const bool digits = in_word_ && !word_quoted_ && std::all_of(word_.begin(), word_.end(), is_digit);
    const std::string_view number =
        std::string_view(word_).substr(std::min(word_.find_first_not_of('0'), word_.size()));
    if (!digits || number == "1") read_.redirects_output = true;
  }

  bool end_command(bool redirected) {
    const char c = script_[at_];
    const auto found =
        std::find_if(operators.begin(), operators.end(), [&](std::string_view op) { return follows(op); });
    const bool redirection = c == '&' && (redirected || follows("&>"));
    if (found == operators.end() || redirection) return false;
    end_word();
    const std::string_view joint = *found == "\n" ? ";" : *found;
    read_.commands.back().after = joint;
    read_.commands.emplace_back();
    read_.commands.back().before = joint;
    at_ += found->size() - 1;
    return true;
  }

  void put(char c) {
    if (is_blank(c)) return end_word();
    word_ += c;
    in_word_ = true;
  }

  // The word after a lone `<` or `2>` names the file of the redirection.
  void end_word() {
    const bool is_file = std::exchange(file_follows_, false) && in_word_;
    if (in_word_ && word_redirects_) {
      file_follows_ = word_.ends_with('>') || word_.ends_with('<');
    } else if (in_word_ && !is_file) {
      if (word_expands_ && read_.expanded.empty()) read_.expanded = word_;
      read_.commands.back().words.push_back(std::move(word_));
    }
    word_.clear();
    in_word_ = word_quoted_ = word_expands_ = word_redirects_ = false;
  }

  bool is_pattern(char c) const { return c == '*' || c == '?' || c == '[' || c == '{' || (c == '~' && !in_word_); }

  std::string_view script_;
  ShellScript read_;
  std::size_t at_ = 0;
  std::string word_;
  bool redirects_ = false;
  bool in_word_ = false;
  bool word_quoted_ = false;     // a part of the word is quoted
  bool word_expands_ = false;    // a shell replaces a part of the word
  bool word_redirects_ = false;  // the word is a redirection
  bool file_follows_ = false;    // the next word is the file of a redirection
  char quote_ = 0;
};

// Returns whether the command writes nothing and runs nothing.
bool only_prepares(const std::vector<std::string>& words) {
  if (words[0] == "cd" || words[0] == "set") return true;
  if ((words[0] == "source" || words[0] == ".") && words.size() == 2) return is_activation(words[1]);
  const bool exports = words[0] == "export";
  return std::all_of(words.begin() + (exports ? 1 : 0), words.end(),
                     [](const std::string& word) { return is_assignment(word); });
}

}  // namespace

ShellScript read_script(std::string_view script) { return ScriptReader(script).read(); }

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

}  // namespace muniment::evidence::completion
