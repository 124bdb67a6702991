// Reads summary lines, exit statuses and marks of omitted output.
#include "evidence/completion/text/summary.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"
#include "evidence/completion/text/command_line.hpp"
#include "evidence/completion/text/sign.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t summary_tokens_max = 24;  // a longer line is prose or data
constexpr std::size_t summary_line_bytes_max = 240;
constexpr std::size_t cut_line_bytes_max = 160;

struct Token {
  std::string_view word;               // in lower case; empty for a number
  std::optional<std::int64_t> number;  // whole
  bool measured = false;               // "0.31s", "98%"
  char sign = 0;                       // the preceding character, without white space
};

enum class Noun : std::uint8_t { none, passed, failed, skipped, ran };

struct NounRow {
  std::string_view word;
  Noun noun;
};
constexpr std::array noun_rows{
    NounRow{"passed", Noun::passed},      NounRow{"passing", Noun::passed},   NounRow{"passes", Noun::passed},
    NounRow{"succeeded", Noun::passed},   NounRow{"successes", Noun::passed}, NounRow{"pass", Noun::passed},
    NounRow{"success", Noun::passed},     NounRow{"failed", Noun::failed},    NounRow{"failing", Noun::failed},
    NounRow{"failures", Noun::failed},    NounRow{"failure", Noun::failed},   NounRow{"errors", Noun::failed},
    NounRow{"error", Noun::failed},       NounRow{"errored", Noun::failed},   NounRow{"fail", Noun::failed},
    NounRow{"skipped", Noun::skipped},    NounRow{"skip", Noun::skipped},     NounRow{"ignored", Noun::skipped},
    NounRow{"pending", Noun::skipped},    NounRow{"disabled", Noun::skipped}, NounRow{"todo", Noun::skipped},
    NounRow{"deselected", Noun::skipped}, NounRow{"skips", Noun::skipped},    NounRow{"ran", Noun::ran},
    NounRow{"tests", Noun::ran},          NounRow{"test", Noun::ran},         NounRow{"specs", Noun::ran},
    NounRow{"examples", Noun::ran},       NounRow{"total", Noun::ran},        NounRow{"run", Noun::ran},
    NounRow{"scenarios", Noun::ran},      NounRow{"items", Noun::ran}};

Noun noun_of(std::string_view word) {
  static const WordTable table = [] {
    WordTable made;
    for (const NounRow& row : noun_rows) made.insert(hash_of(row.word), static_cast<std::uint32_t>(row.noun));
    return made;
  }();
  const std::uint32_t* const found = table.find(hash_of(word));
  return found == nullptr ? Noun::none : static_cast<Noun>(*found);
}

// The integer in the digits: "1,204" is one, "0.31" is not.
std::optional<std::int64_t> number_of(std::string_view digits) {
  bool commas = false;
  for (const char c : digits) {
    if (c == '.') return std::nullopt;
    commas = commas || c == ',';
  }
  if (!commas) return parse_decimal(digits);
  std::string plain(digits);
  std::erase(plain, ',');
  return parse_decimal(plain);
}

// Splits a line into tokens. `line` is in lower case, and the words are views into it.
void read_tokens(std::string_view line, std::vector<Token>& tokens) {
  tokens.clear();
  char sign = 0;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    const std::size_t begin = i;
    if (is_digit(c)) {
      while (i < line.size() && (is_digit(line[i]) || line[i] == '.' || line[i] == ',')) ++i;
      std::string_view digits = line.substr(begin, i - begin);
      while (!is_digit(digits.back())) digits.remove_suffix(1);
      Token token;
      token.sign = sign;
      token.number = number_of(digits);
      token.measured = !token.number || (i < line.size() && (is_letter(line[i]) || line[i] == '%'));
      while (i < line.size() && (is_letter(line[i]) || line[i] == '%')) ++i;
      tokens.push_back(token);
    } else if (is_letter(c)) {
      while (i < line.size() && (is_letter(line[i]) || is_digit(line[i]) || line[i] == '_')) ++i;
      tokens.push_back({line.substr(begin, i - begin), std::nullopt, false, 0});
      sign = 0;
    } else {
      if (!is_blank(c)) sign = c;
      ++i;
    }
    if (tokens.size() > summary_tokens_max) break;
  }
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

class Reader {
 public:
  explicit Reader(Summary& summary) : summary_(summary) {}

  void read_line(std::string_view raw) {
    const std::string_view line = trimmed(raw);
    if (line.empty()) return;
    if (is_test_line(line)) {
      ++summary_.test_lines;
      return;
    }
    ++summary_.other_lines;
    const unsigned kinds = kinds_in(line);
    // An aside is in brackets, or beside an ellipsis.
    const bool aside =
        (kinds & (open_byte | wide_byte)) != 0 || ((kinds & dot_byte) != 0 && contains_any(line, {"..."}));
    if (line.size() <= cut_line_bytes_max && aside) read_cut(line);
    if (line.starts_with("$ ")) read_shell_line(line.substr(2));
    if (line.size() > summary_line_bytes_max) return;
    if (states_failure(line)) summary_.says_failed = true;
    if (line == "OK" || line.starts_with("OK (")) summary_.says_failed = false;
    const bool digits = (kinds & digit_byte) != 0;
    if (!digits && (line.size() > cut_line_bytes_max || line.find("o test") == std::string_view::npos)) return;
    small_.assign(line);
    std::transform(small_.begin(), small_.end(), small_.begin(), lower);
    read_tokens(small_, tokens_);
    const std::vector<Token>& tokens = tokens_;
    if (tokens.empty() || tokens.size() > summary_tokens_max) return;
    read_none(tokens);
    if (digits) {
      read_counts(line, tokens);
      read_exit(tokens);
    }
  }

 private:
  // "make[1]: [Makefile:4: check] Error 1 (ignored)"
  static bool is_fault_of_make(std::string_view line) {
    return line.starts_with("make[") && line.find("] Error ") != std::string_view::npos;
  }

  static bool states_failure(std::string_view line) {
    switch (line[0]) {
      case 'F': return line.starts_with("FAILED (") || line == "FAIL" || line == "FAILED";
      case 'B': return line.starts_with("BUILD FAILED");
      case 'm': return line.starts_with("make: ***") || is_fault_of_make(line);
      case 'E': return line.starts_with("Error: ");
      case 'f': return line.starts_with("fatal: ");
      case 'n': return line.starts_with("npm ERR! ");
      case 'p': return line.starts_with("panic: ");
      default: break;
    }
    return line.starts_with("Segmentation fault") || (line.find("(core dumped)") != std::string_view::npos);
  }

  static bool is_test_line(std::string_view line) {
    if (line.size() > summary_line_bytes_max) return false;
    const char last = line.back();
    if (line[0] != 'P' && line[0] != 'F' && line[0] != '-' && last != 'k' && last != 'L' && last != 'R' &&
        last != 'D' && last != ']')
      return false;  // true of most lines
    if (line.starts_with("PASSED ") || line.starts_with("FAILED ") || line.starts_with("--- PASS"))
      return line.find('(') != 7;
    // pytest prints the progress after each test.
    if (line.ends_with("%]") && line.find("::") != std::string_view::npos) {
      line = trimmed(line.substr(0, line.rfind('[')));
    }
    for (const std::string_view end : {"... ok", "... FAIL", "... ERROR", " PASSED", " FAILED", " SKIPPED", " ok"}) {
      if (line.ends_with(end) && line.size() > end.size() + 3) return line[0] != '=';
    }
    return false;
  }

  // Returns whether the position is within brackets or after an ellipsis: "[12 lines skipped]", "... output truncated".
  static bool is_aside(std::string_view line, std::size_t at) {
    const std::string_view before = line.substr(0, at);
    if (contains_any(before, {"...", "\xE2\x80\xA6"}) || contains_any(line.substr(at), {"..."})) return true;
    const std::size_t open = before.find_last_of("[(<"), shut = before.find_last_of("])>");
    return open != std::string_view::npos && (shut == std::string_view::npos || shut < open);
  }

  void read_cut(std::string_view line) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char first = lower(line[i]);
      const bool may_begin = first == 't' || first == 's' || first == 'l' || first == 'o' || first == 'r';
      if (!may_begin || (i > 0 && is_letter(line[i - 1]))) continue;
      for (const std::string_view note :
           {"truncated", "snip>", "snipped", "snip]", "lines omitted", "output omitted", "lines skipped",
            "rest of output", "output cut", "remaining output", "lines hidden"}) {
        if (note[0] == first && begins(line.substr(i), note) && is_aside(line, i)) summary_.cut = true;
      }
    }
  }

  void read_shell_line(std::string_view command) {
    const CommandKind kind = kind_of_line(command, {});
    const bool prints =
        kind.program == Program::printer || kind.program == Program::reader || kind.program == Program::lister;
    summary_.prints_only = prints && (summary_.shell_lines == 0 || summary_.prints_only);
    ++summary_.shell_lines;
    if (kind.masked && kind.program == Program::runner) summary_.masks_status = true;
  }

  void read_none(const std::vector<Token>& tokens) {
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i].word != "no") continue;
      const bool tests = tokens[i + 1].word == "tests" || tokens[i + 1].word == "test";
      if (!tests) continue;
      if (i + 2 == tokens.size()) summary_.no_tests = tokens.size() <= 3;
      if (i + 2 >= tokens.size()) continue;
      const std::string_view word = tokens[i + 2].word;
      std::string_view verb = word;
      if ((word == "were" || word == "have" || word == "to") && i + 3 < tokens.size()) verb = tokens[i + 3].word;
      for (const std::string_view none :
           {"ran", "run", "found", "collected", "executed", "files", "discovered", "matched", "suites"}) {
        if (verb == none) summary_.no_tests = true;
      }
    }
  }

  // Compares a total with the other counts: "Tests: 1 failed, 6 passed, 9 total".
  void check_total(const std::vector<Token>& tokens, const std::array<std::optional<std::int64_t>, 5>& counts) {
    const auto count = [&](Noun noun) { return counts[static_cast<std::size_t>(noun)]; };
    if (!count(Noun::ran) || !count(Noun::passed) || tokens.back().word != "total" || tokens[0].word != "tests") return;
    std::int64_t sum = 0;
    for (const Noun noun : {Noun::passed, Noun::failed, Noun::skipped}) sum += count(noun).value_or(0);
    // A line may contain both "todo" and "skipped", of which `counts` keeps only one.
    const auto skips = std::count_if(tokens.begin(), tokens.end(),
                                     [](const Token& token) { return noun_of(token.word) == Noun::skipped; });
    if (skips <= 1 && sum != *count(Noun::ran)) summary_.disagrees = true;
  }

  // "Found 2 errors in 1 file": the last line of type and style checkers.
  static bool is_count_of_faults(const std::vector<Token>& tokens) {
    if (tokens.size() < 3 || !tokens[1].number) return false;
    for (const std::string_view fault :
         {"problems", "problem", "issues", "issue", "violations", "violation", "vulnerabilities", "vulnerability"}) {
      if (tokens[2].word == fault) return true;
    }
    return noun_of(tokens[2].word) == Noun::failed;
  }

  // Reads a summary line, in which at least every second word belongs to a count, or which begins like a summary.
  void read_counts(std::string_view line, const std::vector<Token>& tokens) {
    std::array<std::optional<std::int64_t>, 5> counts;
    std::size_t told = 0, noun_used = tokens.size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].measured) {
        ++told;
        continue;
      }
      if (!tokens[i].number) continue;
      const Noun after = i + 1 < tokens.size() ? noun_of(tokens[i + 1].word) : Noun::none;
      const bool is_set = tokens[i].sign == ':' || tokens[i].sign == '=';
      // In "0 errors, 14 files" the noun belongs to the 0.
      const bool used = i > 0 && noun_used == i - 1 && !is_set;
      const Noun before = i > 0 && !used ? noun_of(tokens[i - 1].word) : Noun::none;
      // "12 tests passed": the second noun applies.
      const Noun second = after == Noun::ran && i + 2 < tokens.size() ? noun_of(tokens[i + 2].word) : Noun::none;
      const auto is_assigned = [&](std::size_t at) {
        return at < tokens.size() && tokens[at].number && (tokens[at].sign == ':' || tokens[at].sign == '=');
      };
      // In "Tests run: 5, Failures: 0" the noun after the 5 belongs to the 0.
      const bool taken = is_assigned(i + 2);
      const bool named_before = before != Noun::none && (after == Noun::none || taken || line[0] == '#' ||
                                                         (is_assigned(i) && before != Noun::ran));
      Noun noun = second != Noun::none && !named_before ? second : named_before ? before : after;
      if (noun == Noun::none) continue;
      if (!named_before) noun_used = second != Noun::none ? i + 2 : i + 1;
      counts[static_cast<std::size_t>(noun)] = *tokens[i].number;
      told += 2;
    }
    const std::string_view first = tokens[0].word;
    const bool begins = first == "ran" || first == "tests" || first == "ok" || first == "collected" ||
                        first == "running" || (first == "found" && is_count_of_faults(tokens)) ||
                        line.find("Tests run: ") != std::string_view::npos ||
                        (first == "failed" && line.find('(') < line.size());
    if (told * 2 < tokens.size() && !begins) return;
    // "Snapshots: 0 total" does not count tests.
    const std::size_t colon = position_of(line, [](char c) { return c == ':' || is_digit(c); });
    if (colon < line.size() && line[colon] == ':') {
      std::uint32_t classes = 0;
      each_word(line.substr(0, colon), [&](std::string_view word) { classes |= classes_of(word); });
      if ((classes & (test_word | count_noun | result_name)) == 0) counts[static_cast<std::size_t>(Noun::ran)].reset();
    }
    check_total(tokens, counts);
    if (first == "found" && is_count_of_faults(tokens))
      counts[static_cast<std::size_t>(Noun::failed)] = tokens[1].number;
    const auto take = [&](Noun noun, std::optional<std::int64_t>& into) {
      if (counts[static_cast<std::size_t>(noun)]) into = counts[static_cast<std::size_t>(noun)];
    };
    take(Noun::passed, summary_.passed);
    take(Noun::failed, summary_.failed);
    take(Noun::skipped, summary_.skipped);
    take(Noun::ran, summary_.ran);
  }

  // Reads an exit status at the end of a short line: "exit code: 1", "Process exited with status 2", "Return Code: 0".
  void read_exit(const std::vector<Token>& tokens) {
    if (tokens.size() > 12 || !tokens.back().number) return;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const std::string_view word = tokens[i].word;
      const std::string_view next = tokens[i + 1].word;
      const bool named =
          word == "exit" || word == "exited" || word == "returncode" || word == "rc" || word == "exitcode" ||
          word == "exit_code" || word == "exit_status" || word == "return_code" ||
          ((word == "return" || word == "returned" || word == "status") && (next == "code" || next == "status"));
      if (named && tokens.size() - i <= 6) {
        summary_.exit_status = tokens.back().number;
        return;
      }
    }
    if (tokens[0].word == "make" && tokens[tokens.size() - 2].word == "error")
      summary_.exit_status = tokens.back().number;
  }

  Summary& summary_;
  std::string small_;          // the line in lower case; both members are reused to save allocations
  std::vector<Token> tokens_;  // tokens of the line
};

}  // namespace

Summary summary_of(std::string_view text) {
  Summary summary;
  Reader reader(summary);
  std::string_view last;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty()) last = line;
    reader.read_line(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const bool broken_name = last.find("::") != std::string_view::npos && last.find(' ') == std::string_view::npos;
  const bool broken_bracket =
      last.starts_with("test_") && last.find('(') != std::string_view::npos && last.find(')') == std::string_view::npos;
  summary.open_ended =
      broken_name || broken_bracket || last.ends_with("...") || last.ends_with("\xE2\x80\xA6") || last.ends_with("::");
  return summary;
}

}  // namespace muniment::evidence::completion
