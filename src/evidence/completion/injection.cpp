// Injection: evidence is data, and text that tries to be more is an attack, unless the task is about such text.
#include <algorithm>
#include <array>

#include "evidence/completion/checks.hpp"
#include "evidence/completion/text/tells.hpp"

namespace muniment::evidence::completion {
namespace {

// Test runs and build logs quote source; a quoted tell there is a test's own data.
constexpr std::size_t test_lines_of_log = 3;
constexpr std::size_t lines_of_long_log = 200;

struct TellRow {
  Tell tell;
  Code code;
  std::string_view what;
  std::string_view subjects;  // words of a task that is about such text, a space around each
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

// In any of its forms: "escaped" for "escape".
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

}  // namespace

void check_injection(Case& c, Findings& findings) {
  for (Exhibit& exhibit : c.exhibits) {
    const Piece& piece = *exhibit.piece;
    for (const std::string_view text :
         {exhibit.text, exhibit.structured ? std::string_view() : std::string_view(exhibit.flat)}) {
      for (const FoundTell& found : tells_in(text)) {
        const TellRow& row = tell_rows[static_cast<std::size_t>(found.tell)];
        const std::string at = std::string(row.what) + " at byte " + std::to_string(found.offset);
        if (const std::string_view subject = subject_of(c.terms, row.subjects); !subject.empty()) {
          exhibit.tells_subject = true;
          findings.note(row.code, piece.evidence_id,
                        "The evidence contains " + at + "; let through, since the task is about \"" +
                            std::string(subject) + "\".");
        } else if (found.quoted && is_log(exhibit)) {
          findings.note(row.code, piece.evidence_id,
                        "The evidence contains " + at + "; let through, since a test's output quotes it.");
        } else if (found.tell == Tell::nul && exhibit.has_whole_report() &&
                   exhibit.profile.lines >= lines_of_long_log) {
          findings.note(row.code, piece.evidence_id,
                        "The evidence contains " + at + "; let through, since the tests of a long run print data.");
        } else if (found.tell == Tell::ansi && exhibit.recorded()) {
          findings.note(row.code, piece.evidence_id,
                        "The evidence contains " + at + "; let through, since the recorded program wrote it.");
        } else {
          findings.add(row.code, piece.evidence_id,
                       "Suspicious content: the evidence contains " + at + ". Remove it, or allow \"" +
                           std::string(row_of(row.code).name) + "\" for this type of task in the policy.");
        }
      }
    }
  }
}

}  // namespace muniment::evidence::completion
