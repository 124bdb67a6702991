// A question, its caller, and its plan: everything that the answer depends on. All of
// this is pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "retrieval/engine/engine.hpp"
#include "retrieval/hooks/hooks.hpp"
#include "retrieval/plan/markup.hpp"
#include "retrieval/plan/profile.hpp"

namespace muniment::retrieval {

// Filters besides those in the query's markup: any value of each list, but all tags.
struct Wishes {
  std::vector<std::string> types;
  std::vector<std::string> tags;
  std::vector<std::string> sources;
  std::vector<std::string> trust;  // empty: trusted and untrusted
  std::vector<std::string> documents;
  std::optional<Time> after;
  std::optional<Time> before;
};

// Methods that expand a query and score its best passages. `unsaid` selects the configured default.
enum class Expand : std::uint8_t { unsaid, none, heuristic, hook };
enum class Rerank : std::uint8_t { unsaid, none, local, hook, http };

std::string_view name_of(Mode mode);
std::string_view name_of(Expand expand);
std::string_view name_of(Rerank rerank);
Expand expand_named(std::string_view name);  // returns unsaid for an unknown name
Rerank rerank_named(std::string_view name);

struct Question {
  std::string text;
  std::vector<std::string> corpora;  // requested corpora; empty: all visible ones, without runs unless a run is named
  Mode mode = Mode::hybrid;
  Expand expand = Expand::unsaid;
  Rerank rerank = Rerank::unsaid;
  std::size_t top_k = 10;
  bool by_document = false;  // the best passage of each document
  std::string profile;
  Wishes wishes;
  std::optional<std::int64_t> as_of;
  std::string cursor;
  bool explain = false;
  bool exact = false;
  bool after_questions = false;  // adds the passage after each hit that is a question (next_passage.hpp)
};

// The caller and the corpora that it may see; in the corpus run, its own runs unless it may see all.
struct Scope {
  std::string principal;
  bool sees_all = false;
  std::vector<std::string> corpora;
  std::function<Result<bool>(const std::string& run_id)> sees_run;
};

struct QueryPlan {
  Question question;  // with `expand` and `rerank` decided
  Markup markup;
  const Profile* profile = nullptr;
  std::vector<std::string> corpora;  // corpora to search
  bool unknown_corpus = false;
  bool unknown_run = false;  // a run named by `run:` is unknown
  std::string owner;         // owner of the runs to search; empty: all users
  bool samples = false;      // searches the built-in sample set
  std::optional<std::int64_t> as_of;
  std::size_t from = 0;  // rank of the page's first card
  std::string ranking;   // the ranking that the page belongs to; empty: the first page
  std::int64_t watermark = 0;
  std::string hash;  // hash of the plan without positions
  std::string key;
  bool of_capsule = false;  // documents are named by their aether:// URIs
};

// Begins a plan with what follows from the question: helpers, markup, profile and corpora; as_of only if the question
// has it. Errors: invalid_argument (profile, a hook that is not configured).
Result<QueryPlan> begin_plan(const Question& question, const Scope& scope, const Hooks& hooks);
// Sets the hash, once as_of and the tags of the markup are settled.
void end_plan(QueryPlan& plan, const Scope& scope, const Hooks& hooks);

Filter filter_of(const QueryPlan& plan);
// Returns the filter for everything that this principal may see.
Filter scope_filter(const QueryPlan& plan);
void write_filter(json::Writer& out, const Filter& filter);
void require_any(Filter& filter, std::string_view kind, const std::vector<std::string>& values);

// The position of the next page: "<rank>.<watermark>.<digits of the plan's hash>.<the ranking's name>"
struct Cursor {
  std::size_t from = 0;
  std::int64_t watermark = 0;
  std::string hash;  // its first `hash_digits`
  std::string ranking;
};
inline constexpr std::size_t hash_digits = 16;

std::string text_of(const Cursor& cursor);
Result<Cursor> parse_cursor(std::string_view text);  // Errors: invalid_argument

}  // namespace muniment::retrieval
