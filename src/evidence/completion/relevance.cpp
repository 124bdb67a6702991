// The check of relevance: evidence names the subject of the task. Terms have weights by how well they distinguish
// tasks: the task's object has the most, its context less, and generic nouns (module, service) little.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/facts.hpp"
#include "evidence/completion/text/siblings.hpp"

namespace muniment::evidence::completion {
namespace {

// In a long run, the words of a task occur by chance, so the names of tests and files count. The unit is that of a
// term's weight.
constexpr int enough_in_report = 4;
constexpr std::size_t subjects_of_long_run = 24;
constexpr std::size_t half_facts_of_answer = 6;
constexpr std::size_t files_of_whole_suite = 3;
constexpr std::size_t words_of_long_text = 10;      // distinct words in no class and not in the task
constexpr std::size_t words_of_other_subject = 4;   // specific words in sentences
constexpr std::size_t words_per_stop_word_max = 6;  // ratio in sentences; the output of tools has fewer stop words
constexpr std::size_t names_of_other_subject = 2;
constexpr std::size_t words_of_other_log = 12;
constexpr std::size_t missing_terms_named_max = 5;
constexpr std::size_t beginning_letters_min = 4;

bool about(const TaskTerms& terms, std::uint32_t classes) { return (terms.classes & classes) != 0; }

bool is_test_task(const TaskTerms& terms) { return about(terms, test_word | runner_name); }

bool shows_tests(const Exhibit& exhibit) {
  const Summary& summary = exhibit.summary;
  return exhibit.report || (summary.test_lines > 0 && !exhibit.structured) || summary.passed || summary.ran;
}

// For a task without a specific subject, such as "Get code reviewed": returns whether the kind of evidence fits.
bool kind_fits(const Case& c, const Exhibit& exhibit) {
  const std::uint32_t shown = exhibit.profile.classes;
  constexpr std::uint32_t kinds = review_word | deploy_word | document_word;
  const std::uint32_t wanted = c.terms.classes & kinds;
  if ((wanted & shown) != 0) return true;
  if (is_test_task(c.terms)) return shows_tests(exhibit) || (shown & test_word) != 0;
  return wanted == 0;
}

// Returns whether the evidence is a review, a design or an analysis, for a task that asks for one.
bool is_answer(const Case& c, const Exhibit& exhibit) {
  std::uint32_t shown = exhibit.profile.classes;
  each_word(exhibit.piece->type, [&](std::string_view word) { shown |= classes_of(word); });
  return (c.terms.classes & shown & (review_word | design_word)) != 0;
}

// Returns whether a member of the JSON names the subject of the figures beside it.
bool names_subject(std::string_view flat) {
  constexpr std::array<std::string_view, 22> names{
      "module",   "suite",    "file",    "path",     "target",  "component",  "service", "page",
      "endpoint", "url",      "package", "function", "project", "repository", "feature", "subject",
      "topic",    "document", "title",   "image",    "app",     "test"};
  while (!flat.empty()) {
    const std::size_t end = std::min(flat.find('\n'), flat.size());
    const std::string_view line = flat.substr(0, end);
    flat.remove_prefix(std::min(end + 1, flat.size()));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    std::string_view name = line.substr(0, colon);
    if (const std::size_t space = name.rfind(' '); space != std::string_view::npos) name.remove_prefix(space + 1);
    if (std::find(names.begin(), names.end(), lowered(name.substr(0, word_bytes_max))) == names.end()) continue;
    const std::string_view value = line.substr(colon + 2);
    if (std::any_of(value.begin(), value.end(), is_letter) && value != "true" && value != "false") return true;
  }
  return false;
}

// Number of test files or modules that a report names. The run of a whole suite is relevant to every task of its
// project.
std::size_t files_of_tests(std::string_view text) {
  WordTable files;
  text = text.substr(0, profiled_bytes_max);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("test ")) line.remove_prefix(5);
    const std::string_view token = line.substr(0, line.find(' '));
    const std::size_t scope = token.find("::");
    if (scope != std::string_view::npos && scope > 0) {
      files.add(hash_of(token.substr(0, scope)));
    } else if (is_identifier(core_of(token)) && token.find('.') != std::string_view::npos) {
      files.add(hash_of(token));
    } else if (const std::size_t number = line.find("Test #"); number != std::string_view::npos) {
      const std::string_view name = line.substr(std::min(line.find(": ", number), line.size()));
      if (name.size() > 2) files.add(hash_of(name.substr(2, name.find(' ', 2) - 2)));
    }
  }
  return files.size();
}

// Returns whether evidence without a term of the task names a different subject: in the names of tests, in identifiers,
// in members of JSON, or in sentences. The few words of a tool ("12 passed in 0.3s", "Finished in 0.7s", "INSERT 0 31")
// name none.
bool names_other_subject(const Case& c, const Exhibit& exhibit) {
  const Profile& profile = exhibit.profile;
  const bool of_tests = !shows_tests(exhibit) && (profile.classes & test_word) != 0;
  if ((exhibit.structured || of_tests) && !kind_fits(c, exhibit)) return true;
  if (exhibit.structured) return names_subject(exhibit.flat);
  // The evidence has the task's kind of thing with another name: "authentication module" for "payment module".
  if (profile.others_of_kind > 0) return true;
  if (profile.others_in_tests >= names_of_other_subject || profile.others_in_names >= names_of_other_subject)
    return true;
  if (!exhibit.flat.empty() && names_subject(exhibit.flat)) return true;
  const bool sentences = profile.stop_words * words_per_stop_word_max >= profile.words;
  // The evidence has the surroundings of the task's object with another object.
  const bool phrases = (profile.stop_words + profile.prepositions) * words_per_stop_word_max >= profile.words;
  if (phrases && profile.covered_specific > 0 && profile.others_in_text >= names_of_other_subject) return true;
  return profile.others_in_text >= (sentences ? words_of_other_subject : words_of_other_log);
}

bool is_relevant(const Case& c, const Exhibit& exhibit) {
  const TaskTerms& terms = c.terms;
  const Profile& profile = exhibit.profile;
  if (exhibit.tells_subject) return true;
  if (terms.specific == 0) {
    if (kind_fits(c, exhibit) || names_number_of(exhibit.text, c.task.content, terms, profile)) return true;
    return profile.covered_weight * 2 >= terms.weight && profile.covered_weight > 0;
  }
  const bool report = shows_tests(exhibit);
  // If it names no subject, the output of a whole suite is relevant to every task of testing.
  if (report && profile.subject_words <= 2 && is_test_task(terms)) return true;
  const bool long_run = report && profile.subject_words >= subjects_of_long_run;
  if (long_run && profile.covered_by_names_specific >= std::min((terms.specific + 1) / 2, enough_in_report))
    return true;
  if (long_run) return files_of_tests(exhibit.text) >= files_of_whole_suite;
  if (profile.covered_specific > 0) {
    // Names of files and tests are specific, and a long text has specific words; a short text without either must name
    // more than the surroundings.
    const bool own_words =
        report || exhibit.structured || profile.covered_by_names_specific > 0 || profile.specific >= words_of_long_text;
    return own_words || profile.covered_specific * 5 > terms.specific * 2;
  }
  if (report) return files_of_tests(exhibit.text) >= files_of_whole_suite;
  // Figures and verdicts without a subject do not name a different one.
  if (exhibit.structured ? !names_subject(exhibit.flat) : profile.subject_words == 0) return kind_fits(c, exhibit);
  if (names_number_of(exhibit.text, c.task.content, terms, profile)) return true;
  // The answer to a question names its findings, and need not repeat the question.
  if (terms.names_code && profile.others_in_names > 0) return false;
  return profile.specific >= words_of_long_text && profile.half_facts >= half_facts_of_answer && is_answer(c, exhibit);
}

std::string sibling_or_kin_in(const Case& c, const Exhibit& exhibit, std::string_view text) {
  std::string other = sibling_in(text, c.task.content, c.terms, exhibit.profile);
  return other.empty() ? kin_in(text.substr(0, profiled_bytes_max), c.task.content.substr(0, task_bytes_read_max))
                       : other;
}

// Returns the subject that the evidence names instead of the task's; empty: none.
std::string sibling_of(const Case& c, const Exhibit& exhibit) {
  if (exhibit.tells_subject) return {};
  if (exhibit.recorded()) {
    std::string words;
    for (const std::string& word : exhibit.subjects) (words += word) += ' ';
    words += exhibit.text;
    return sibling_or_kin_in(c, exhibit, words);
  }
  if (exhibit.structured || exhibit.flat.empty()) return sibling_or_kin_in(c, exhibit, exhibit.text);
  return sibling_or_kin_in(c, exhibit, exhibit.flat + std::string(exhibit.text));
}

// Returns whether the word selects a target: "tests/test_slug.py", "ring::", "TestRetry". A plain word may be a
// subcommand.
bool is_selection(std::string_view word) {
  return word.find_first_of("/._:") != std::string_view::npos || is_identifier(core_of(word));
}

// Returns whether a word of the path begins a term of the task: "test_slug" for "slugify".
bool names_beginning(const TaskTerms& terms, std::string_view path) {
  bool found = false;
  each_word(path, [&](std::string_view part) {
    found = found || (part.size() >= beginning_letters_min && std::ranges::any_of(terms.terms, [&](const Term& term) {
                        return term.word.starts_with(part) && classes_of(part) == 0;
                      }));
  });
  return found;
}

// A recorded command is irrelevant only if it names a target and no term of the task.
bool is_relevant_command(const Case& c, const Exhibit& exhibit) {
  if (c.terms.specific == 0 || exhibit.profile.covered_specific > 0) return true;
  // The check of structure rejects commands that only print; a displayed file is judged by its text.
  const Program program = exhibit.command->program;
  if (program == Program::printer || program == Program::lister) return true;
  if (program == Program::reader)
    return is_test_evidence(exhibit) || is_relevant(c, exhibit) || !names_other_subject(c, exhibit);
  bool target = false;
  for (const std::string& word :
       std::span(exhibit.subjects).subspan(std::min<std::size_t>(1, exhibit.subjects.size()))) {
    if (word.empty() || word[0] == '-' || word[0] == '/' || word.find(' ') != std::string::npos || !is_selection(word))
      continue;
    const std::string_view named = std::string_view(word).substr(0, word.find_last_of('.'));  // "z.zip" has no subject
    each_word(named.empty() ? std::string_view(word) : named,
              [&](std::string_view part) { target = target || (part.size() >= 3 && classes_of(part) == 0); });
    if (names_beginning(c.terms, named)) return true;
  }
  return !target;
}

// "; it does not name "a", "b""; empty if the task has no specific term.
std::string missing_terms(const Case& c, const Exhibit& exhibit) {
  std::string missing;
  std::size_t named = 0;
  for (std::size_t i = 0; i < c.terms.terms.size() && named < missing_terms_named_max; ++i) {
    if (exhibit.profile.covered[i] || (c.terms.specific > 0 && c.terms.terms[i].weight == 1)) continue;
    missing += (missing.empty() ? "; it does not name \"" : ", \"") + c.terms.terms[i].word + "\"";
    ++named;
  }
  return missing;
}

}  // namespace

void check_relevance(Case& c, Findings& findings) {
  for (const Exhibit& exhibit : c.exhibits) {
    if (exhibit.piece->erased || !exhibit.piece->damage.empty() || exhibit.profile.blank_text) continue;
    const std::string& id = exhibit.piece->evidence_id;
    const bool relevant = exhibit.recorded() ? is_relevant_command(c, exhibit) : is_relevant(c, exhibit);
    // Evidence that the task does not require cannot be about the wrong subject.
    if (!c.task.requires_evidence) continue;
    const bool other = !relevant && (c.terms.specific == 0 || exhibit.recorded() || names_other_subject(c, exhibit));
    if (other) {
      findings.add(Code::mismatch, id,
                   "Evidence mismatch: the evidence is not about the task" + missing_terms(c, exhibit) +
                       ". Record evidence of this task that includes the names of its files or tests.");
    } else if (const std::string sibling = sibling_of(c, exhibit); !sibling.empty()) {
      findings.add(Code::mismatch, id,
                   "Evidence mismatch: the evidence names \"" + preview(sibling, 100) +
                       "\" instead of the subject of the task. Record evidence of this task.");
    } else if (!relevant) {
      findings.add(
          Code::unnamed, id,
          "Weak evidence: it names neither the task's subject nor another one. Record it with `muniment exec`, or "
          "include the names of its files or tests.");
    }
  }
}

}  // namespace muniment::evidence::completion
