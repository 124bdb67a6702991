// Context packs: which of the passages found go into a prompt, and how they are written there.
//
// A pack is a preface and one line a passage: its number and a JSON object. What a document says stands in that
// object's strings and nowhere else, escaped so that it can neither end its string nor its line nor a tag that the
// client puts around the pack: no quotation mark, no line break, no `<`, nothing that hides or reorders text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/sha256.hpp"

namespace muniment::retrieval {

// A candidate.
struct Passage {
  std::string pointer;
  std::string corpus;
  std::string document;
  std::string revision;
  std::string title;
  std::vector<std::string> anchors;
  std::string trust;
  std::string origin;  // of an event of a run; empty: a document
  std::string text;
  std::int64_t start = 0;  // its span of the document's text
  std::int64_t end = 0;
  std::optional<std::string> source_url;
  double score = 0;
  std::vector<std::size_t> queries;  // which found it
  std::size_t rank = 0;              // from 1: the best of those that they gave it
};

// The lists of several queries as one: all first ranks in the queries' order, then all second ones. What several found
// stands where it was found first.
std::vector<Passage> merged_by_rank(std::vector<std::vector<Passage>> lists);

enum class BudgetUnit : std::uint8_t { tokens, bytes };
std::string_view name_of(BudgetUnit unit);

// Of the text: of the preface and the lines together.
struct Budget {
  BudgetUnit unit = BudgetUnit::tokens;
  std::size_t amount = 0;
};

// How many tokens a text is at most, near enough, whichever byte-pair tokenizer counts: a word (camelCase is two) one
// for each four letters begun, beyond twelve letters and in capitals one for each two; digits, punctuation and line
// feeds one each; a blank before a word none; any other character one less than its bytes. It is 1.1 to 1.8 times the
// real number for prose, code and data in the usual scripts (docs/retrieval.md); rare scripts and base64 can be more
// than it says.
std::size_t token_bound(std::string_view text);

// A JSON string literal of ASCII line structure: beside what JSON demands, `<`, controls, line separators, and
// characters that reorder or hide text are \u escapes.
std::string quote_for_prompt(std::string_view text);

enum class WhyLeftOut : std::uint8_t {
  over_budget,  // it did not fit into what was left
  same_text,    // a passage of the pack says the same, but for white space
  overlap,      // its bytes are in the pack in part
  full,         // the pack has as many passages, or as long pointers, as its manifest may record
};
std::string_view name_of(WhyLeftOut why);

struct Packed {
  std::size_t candidate = 0;  // its index
  std::size_t number = 0;     // from 1, as it is cited
  Hash hash{};                // of the passage's bytes
  std::size_t cost = 0;       // of its line, in the budget's unit
};

struct LeftOut {
  std::size_t candidate = 0;
  WhyLeftOut why = WhyLeftOut::over_budget;
  std::size_t instead = 0;  // the number of the passage that has it; 0: none
};

struct Pack {
  std::vector<Packed> passages;   // by rank
  std::vector<LeftOut> left_out;  // by rank
  std::size_t used = 0;           // of the budget
  std::string text;               // empty where no passage fits
};

// Greedy, down the ranks: what fits is taken, what does not is passed over and a later one may still fit. So a larger
// budget never loses a passage for the sake of a worse one, though it may for the sake of a better one.
Pack make_pack(const std::vector<Passage>& candidates, const Budget& budget);

}  // namespace muniment::retrieval
