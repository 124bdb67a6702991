// The check of substance: evidence states something. It counts facts, specific words, blanks, repetition and likeness
// to words; no text is compared with a list of texts.
#include <algorithm>

#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/blanks.hpp"
#include "evidence/completion/text/words.hpp"

namespace muniment::evidence::completion {
namespace {

constexpr std::size_t half_facts_min = 3;
constexpr std::size_t half_facts_per_blank = 6;  // half facts that outweigh one blank
constexpr std::size_t half_facts_per_blank_result = 24;
constexpr std::size_t pseudo_latin_distinct_min = 4;
constexpr std::size_t repeated_words_min = 16;  // a shorter text is never repetitive
constexpr std::size_t words_per_distinct_max = 6;
constexpr std::size_t distinct_of_real_output = 40;  // with so many distinct words, repetition is normal output
constexpr std::size_t repeated_lines_min = 5;
constexpr std::size_t half_facts_of_log_line = 4;
constexpr std::size_t bare_numbers_min = 5;

bool is_repetitive(const Profile& profile) {
  if (profile.single_letters * 2 > profile.words && profile.words >= repeated_words_min) return true;
  if (profile.distinct >= distinct_of_real_output) return false;
  // The lines of a log repeat words, but each has its own data.
  if (profile.half_facts >= profile.lines * half_facts_of_log_line && profile.lines >= repeated_lines_min) return false;
  if (profile.words >= repeated_words_min && profile.words > profile.distinct * words_per_distinct_max) return true;
  return profile.repeated_lines >= repeated_lines_min && profile.repeated_lines * 2 > profile.lines;
}

std::optional<std::pair<Code, std::string>> fault_of_blanks(const Profile& profile, std::string_view text) {
  if (text.size() <= 200 && blank_kind(text) != Blank::no) {
    return std::pair(Code::placeholder,
                     std::string("Weak or placeholder evidence: the text is a placeholder. Record the real output."));
  }
  const bool outweighed = profile.half_facts >= profile.blanks * half_facts_per_blank;
  const bool result_open =
      profile.blank_results > 0 && profile.half_facts < profile.blank_results * half_facts_per_blank_result;
  if ((profile.blanks > 0 && !outweighed) || result_open) {
    return std::pair(
        Code::placeholder,
        std::string("Weak or placeholder evidence: it contains an unfilled placeholder (TODO, TBD, [PENDING], ___). "
                    "Fill it in, or record the real output."));
  }
  const bool all_open =
      profile.soft_fields > 0 && profile.soft_fields * 2 >= profile.fields && profile.half_facts < half_facts_min * 2;
  if (all_open ||
      (profile.words > 0 && profile.blank_words * 2 > profile.words && profile.half_facts < half_facts_min)) {
    return std::pair(Code::placeholder,
                     std::string("Weak or placeholder evidence: its values are empty (none, null, n/a). Record the "
                                 "real output."));
  }
  return std::nullopt;
}

// Returns whether each line is a heading of Markdown, without a text below it.
bool has_headings_only(std::string_view text) {
  bool any = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::size_t marks = line.find_first_not_of('#');
    if (marks == 0 || marks == std::string_view::npos || line[marks] != ' ') return false;
    any = true;
  }
  return any;
}

std::optional<std::pair<Code, std::string>> fault_of(const Case& c, const Exhibit& exhibit) {
  const Profile& profile = exhibit.profile;
  const bool empty =
      profile.blank_text || (exhibit.structured && exhibit.outcome.half_facts == 0 && exhibit.flat.empty());
  if (exhibit.recorded()) return std::nullopt;  // the command and its exit status are the evidence
  if (empty)
    return std::pair(Code::empty,
                     std::string("Empty evidence content: the evidence has no text. Record the real output."));
  if (profile.words == 0 && profile.numbers == 0) {
    return std::pair(Code::placeholder,
                     std::string("Weak or placeholder evidence: the text has no words. Record the real output."));
  }
  if (exhibit.has_whole_report()) return std::nullopt;
  if (auto fault = fault_of_blanks(profile, exhibit.text)) return fault;
  if (profile.pseudo_latin_distinct >= pseudo_latin_distinct_min && profile.pseudo_latin * 4 >= profile.words) {
    return std::pair(Code::filler,
                     std::string("Weak or placeholder evidence: filler text (lorem ipsum). Record the real output."));
  }
  // The text consists of numbers that count, name and measure nothing.
  const bool bare = profile.bare_numbers >= bare_numbers_min && profile.bare_numbers * 2 > profile.numbers &&
                    profile.words * 2 <= profile.bare_numbers;
  if (is_mash(profile.likeness) || bare) {
    return std::pair(Code::keyboard_mash,
                     std::string("Weak or placeholder evidence: the letters form no words. Record the real output."));
  }
  if (is_repetitive(profile)) {
    return std::pair(
        Code::padded,
        std::string("Weak or placeholder evidence: the text repeats itself and adds nothing. Record the real output."));
  }
  const std::size_t half_facts = profile.half_facts + (exhibit.structured ? exhibit.outcome.half_facts : 0);
  if (has_headings_only(exhibit.text) || (profile.specific == 0 && half_facts == 0)) {
    return std::pair(
        Code::generic,
        "Weak or placeholder evidence: insufficient detail. The text has no word of its own. Record the output (" +
            exec_line(c.task) + "), or state what was inspected and found.");
  }
  return std::nullopt;
}

}  // namespace

void check_substance(Case& c, Findings& findings) {
  for (const Exhibit& exhibit : c.exhibits) {
    if (exhibit.piece->erased || !exhibit.piece->damage.empty()) continue;
    if (auto fault = fault_of(c, exhibit))
      findings.add(fault->first, exhibit.piece->evidence_id, std::move(fault->second));
  }
}

}  // namespace muniment::evidence::completion
