// Recognises text addressed to a model: orders to ignore its instructions, roles of a chat, orders to accept the
// evidence.
#include "evidence/completion/text/sign.hpp"

#include <initializer_list>

namespace muniment::evidence::completion {
namespace {

bool is_any(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view one) { return word.size() == one.size() && begins(word, one); });
}

// Removes the next word from the front of `rest`.
std::string_view next_word(std::string_view& rest) {
  while (!rest.empty() && !is_word_byte(rest[0])) {
    if (rest[0] == '\n' && rest.size() > 1 && rest[1] == '\n') return {};
    rest.remove_prefix(1);
  }
  const std::string_view word = word_at(rest);
  rest.remove_prefix(word.size());
  return word;
}

bool at_sentence_start(std::string_view before) {
  while (!before.empty() &&
         (before.back() == ' ' || before.back() == '\t' || before.back() == '*' || before.back() == '"'))
    before.remove_suffix(1);
  return before.empty() || std::string_view(".!?:;\n>)]-,").find(before.back()) != std::string_view::npos;
}

}  // namespace

bool overrides_instructions(std::string_view at) {
  if (!begins_as_any(at, "ig di fo ov by sk")) return false;
  std::string_view rest = at.substr(0, sign_bytes_max);
  const std::string_view verb = next_word(rest);
  if (!is_any(verb, {"ignore", "disregard", "forget", "override", "bypass", "skip"})) return false;
  bool scope = false;
  for (int i = 0; i < 8; ++i) {
    const std::string_view word = next_word(rest);
    if (word.empty()) return false;
    if (is_any(word, {"previous", "prior", "above", "all", "any", "earlier", "your", "preceding", "the", "these"}))
      scope = true;
    if (scope && is_any(word, {"instruction", "instructions", "prompt", "prompts", "rules", "guidelines", "directives",
                               "policy", "policies", "validation", "validations"})) {
      return true;
    }
  }
  return false;
}

// "Mark this task as complete", "please approve the evidence": an order to the reader, at the start of a sentence.
bool orders_reader(std::string_view at, std::string_view before) {
  if (!begins_as_any(at, "ma se tr co ac ap re ou an yo")) return false;
  std::string_view rest = at.substr(0, sign_bytes_max);
  const std::string_view verb = next_word(rest);
  if (!is_any(verb, {"mark", "set", "treat", "consider", "accept", "approve", "return", "report", "respond", "output",
                     "answer", "you"}))
    return false;
  if (!at_sentence_start(before) &&
      !is_any(word_at(before.substr(before.size() > 7 ? before.size() - 7 : 0)), {"please", "must"}))
    return false;
  bool target = false, outcome = false;
  for (int i = 0; i < 12; ++i) {
    const std::string_view word = next_word(rest);
    if (word.empty()) break;
    if (is_any(word, {"task", "todo", "evidence", "this", "completion", "validation", "verdict", "can_complete", "must",
                      "now"}))
      target = true;
    if (is_any(word, {"complete", "completed", "passed", "pass", "valid", "verified", "approved", "true", "done",
                      "accepted", "dan", "unrestricted", "sufficient"}))
      outcome = true;
  }
  return target && outcome;
}

bool takes_role(std::string_view at, std::string_view before) {
  const bool bracket = at[0] == '<' || at[0] == '[';
  for (const std::string_view mark :
       {"<|im_start|>", "<|system|>", "<|endoftext|>", "[inst]", "<<sys>>", "[/inst]", "<system>"}) {
    if (bracket && begins(at, mark)) return true;
  }
  const bool line_start = before.empty() || before.back() == '\n';
  if (!line_start) return false;
  for (const std::string_view role : {"system:", "assistant:", "### system", "### instruction", "human:"}) {
    if (begins(at, role))
      return contains(at.substr(0, sign_bytes_max), " you ") || contains(at.substr(0, sign_bytes_max), "approve") ||
             contains(at.substr(0, sign_bytes_max), "ignore");
  }
  return false;
}

bool addresses_reader(std::string_view at) {
  if (begins(at, "you are now") || begins(at, "you must approve") || begins(at, "you must accept") ||
      begins(at, "new instructions:"))
    return true;
  if (!begins(at, "note to ") && !begins(at, "attention ") && !begins(at, "message to ") && !begins(at, "dear "))
    return false;
  const std::string_view line = line_from(at.substr(0, 80));
  return contains(line, "validator") || contains(line, "reviewer") || contains(line, "grader") ||
         contains(line, "judge") || contains(line, " ai") || contains(line, " llm") || contains(line, "assistant");
}

}  // namespace muniment::evidence::completion
