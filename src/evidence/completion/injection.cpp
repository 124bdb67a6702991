// The check of injection: evidence is data, and text that acts on its reader is an attack, unless the task is about
// such text.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/tells.hpp"

namespace muniment::evidence::completion {
namespace {

// Test runs and build logs quote source code. In a text with at least this many lines of tests, a quoted tell is test
// data.
constexpr std::size_t test_lines_of_log = 3;
constexpr std::size_t lines_of_long_log = 200;

struct TellRow {
  Tell tell;
  Code code;
  std::string_view what;
  std::string_view subjects;  // words of a task about such text, each between spaces
};

constexpr std::array<TellRow, tells_count> tell_rows{{
    {Tell::markup, Code::markup, "markup that runs a script",
     " xss html script escaping escape sanitize sanitizer sanitization markup template templates injection xml csp svg php "},
    {Tell::sql, Code::sql, "SQL that breaks out of a value or destroys data",
     " sql injection query queries database db migration migrations migrate schema table tables orm postgres postgresql mysql sqlite queryset "},
    {Tell::lookup, Code::lookup, "a lookup that loads code (JNDI)",
     " jndi log4j log4shell injection lookup lookups cve "},
    {Tell::traversal, Code::traversal, "a path that climbs out of its folder",
     " traversal path paths ssrf upload uploads directory symlink sandbox injection lfi "},
    {Tell::shell, Code::shell, "a shell command in place of a value",
     " shell command commands injection quoting escaping bash sh subprocess sandbox exec install installer "},
    {Tell::code, Code::code, "code in place of a value",
     " template templates injection ssti eval jinja sandbox rce deserialization escaping "},
    {Tell::prompt, Code::prompt, "an instruction to the reader of the evidence",
     " prompt prompts injection jailbreak jailbreaks llm guardrail guardrails chatbot "},
    {Tell::bidi, Code::bidi, "bidirectional control characters",
     " bidi bidirectional unicode rtl trojan homoglyph i18n internationalization "},
    {Tell::zero_width, Code::zero_width, "invisible characters",
     " zero invisible unicode emoji homoglyph i18n internationalization "},
    {Tell::nul, Code::nul, "a NUL byte", " nul null binary byte bytes embedded "},
    {Tell::ansi, Code::ansi, "terminal control sequences other than colour",
     " ansi terminal tty escape escapes cursor console ncurses "},
}};

// Returns whether the task has a form of the word: "escaped" for "escape".
bool is_named(const TaskTerms& task, std::string_view word) {
  if (task.has(word)) return true;
  const std::uint64_t concept_hash = hash_of(concept_of(stem_of(word)));
  return std::any_of(task.terms.begin(), task.terms.end(),
                     [&](const Term& term) { return term.concept_hash == concept_hash; });
}

std::string_view subject_of(const TaskTerms& task, std::string_view subjects) {
  std::string_view rest = subjects;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, std::min(rest.find(' '), rest.size()));
    if (!word.empty() && is_named(task, word)) return word;
    rest.remove_prefix(word.size());
  }
  return {};
}

bool is_log(const Exhibit& exhibit) {
  return exhibit.has_whole_report() || exhibit.summary.test_lines >= test_lines_of_log ||
         (exhibit.recorded() && exhibit.piece->command->report);
}

constexpr std::size_t quoted_bytes_max = 60;

// A part of a piece that is judged separately: no sentence spans two parts.
struct Part {
  std::string_view text;
  std::string_view where;
};

// The parts that a client can influence; the daemon writes the other members of a recorded command.
std::vector<Part> parts_of(const Exhibit& exhibit) {
  std::vector<Part> parts;
  if (!exhibit.recorded() || !exhibit.structured)
    parts.push_back({exhibit.text, exhibit.recorded() ? "the output" : "its content"});
  if (!exhibit.recorded()) {
    if (!exhibit.structured) parts.push_back({exhibit.flat, "the members besides the text"});
    return parts;
  }
  const Command& command = *exhibit.piece->command;
  for (const std::string& word : command.argv) parts.push_back({word, "the command line"});
  parts.push_back({command.cwd, "the folder of the command"});
  for (const std::string& path : command.tests_changed) parts.push_back({path, "the names of the tests that changed"});
  parts.push_back({command.tests_changed_reason, "the reason (--tests-changed)"});
  if (!command.report) return parts;
  for (const std::string& name : command.report->failures)
    parts.push_back({name, "the names of the tests that failed"});
  return parts;
}

// Describes a tell, its words and their place. Invisible characters are not quoted.
std::string place_of(const FoundTell& found, const Part& part) {
  const TellRow& row = tell_rows[static_cast<std::size_t>(found.tell)];
  const std::string_view text = part.text;
  std::string place = std::string(row.what) + " in " + std::string(part.where);
  const auto begin = text.begin();
  if (std::count(begin, text.end(), '\n') > 0)
    place += " (line " +
             std::to_string(std::count(begin, begin + static_cast<std::ptrdiff_t>(found.offset), '\n') + 1) + ")";
  const bool unseen =
      found.tell == Tell::bidi || found.tell == Tell::zero_width || found.tell == Tell::nul || found.tell == Tell::ansi;
  if (unseen) return place;
  const std::string_view rest = text.substr(found.offset);
  return place + ": \"" + preview(rest.substr(0, rest.find('\n')), quoted_bytes_max) + "\"";
}

void check_part(const Case& c, Exhibit& exhibit, const Part& part, Findings& findings) {
  const std::string& id = exhibit.piece->evidence_id;
  for (const FoundTell& found : tells_in(part.text)) {
    const TellRow& row = tell_rows[static_cast<std::size_t>(found.tell)];
    const std::string contains = "The evidence contains " + place_of(found, part);
    if (const std::string_view subject = subject_of(c.terms, row.subjects); !subject.empty()) {
      exhibit.tells_subject = true;
      findings.note(row.code, id, contains + "; accepted because the task is about \"" + std::string(subject) + "\".");
    } else if (found.quoted && is_log(exhibit)) {
      findings.note(row.code, id, contains + "; accepted because a test's output quotes it.");
    } else if (found.tell == Tell::nul && exhibit.has_whole_report() && exhibit.profile.lines >= lines_of_long_log) {
      findings.note(row.code, id, contains + "; accepted because the tests of a long run print data.");
    } else if (found.tell == Tell::ansi && exhibit.recorded()) {
      findings.note(row.code, id, contains + "; accepted because the recorded program wrote it.");
    } else {
      findings.add(row.code, id,
                   "Suspicious content: the evidence contains " + place_of(found, part) + ". Remove it, or allow \"" +
                       std::string(row_of(row.code).name) + "\" for this type of task in the policy.");
    }
  }
}

}  // namespace

void check_injection(Case& c, Findings& findings) {
  for (Exhibit& exhibit : c.exhibits) {
    for (const Part& part : parts_of(exhibit)) check_part(c, exhibit, part, findings);
  }
}

}  // namespace muniment::evidence::completion
