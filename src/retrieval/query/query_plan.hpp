// What is asked, by whom, and what it is understood as: a plan, which is everything that its answer depends on. The
// helpers here are pure but for `understand`, which asks the log for the seq of a date.
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
#include "store/read/reader.hpp"

namespace muniment::retrieval {

// Filters beside those in the query's markup: any of each list, but all of the tags.
struct Wishes {
  std::vector<std::string> types;
  std::vector<std::string> tags;
  std::vector<std::string> sources;
  std::vector<std::string> trust;  // empty: trusted and untrusted
  std::vector<std::string> documents;
  std::optional<Time> after;
  std::optional<Time> before;
};

// What a query is also asked as, and who scores its best passages. `unsaid` is what the configuration has.
enum class Expand : std::uint8_t { unsaid, none, heuristic, hook };
enum class Rerank : std::uint8_t { unsaid, none, local, hook, http };

std::string_view name_of(Mode mode);
std::string_view name_of(Expand expand);
std::string_view name_of(Rerank rerank);
Expand expand_named(std::string_view name);  // unsaid for what is no name
Rerank rerank_named(std::string_view name);

struct Question {
  std::string text;
  std::vector<std::string>
      corpora;  // asked for by name; empty: all that may be seen, but for runs, unless a run is named
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
};

// Who asks, and which corpora he may see; of the corpus run his own runs, unless he sees everybody's.
struct Scope {
  std::string principal;
  bool sees_all = false;
  std::vector<std::string> corpora;
  std::function<Result<bool>(const std::string& run_id)> sees_run;
};

struct QueryPlan {
  Question question;  // of which `expand` and `rerank` are settled
  Markup markup;
  const Profile* profile = nullptr;
  std::vector<std::string> corpora;  // that are looked in
  bool unknown_corpus = false;
  bool unknown_run = false;  // of those that `run:` names
  std::string owner;         // whose runs are looked in; empty: everybody's
  bool samples = false;      // the sample set is asked, which is built in
  std::optional<std::int64_t> as_of;
  std::size_t from = 0;  // the rank that the page begins at
  std::string ranking;   // that the page is one of; empty: the first page
  std::int64_t watermark = 0;
  std::string hash;  // of the plan but for positions
  std::string key;
};

// All but the positions: `from` and what stands behind it, but for `hash`. Errors: invalid_argument (markup, profile, a
// hook that is not there); unavailable, for a time of which it is not known yet what is recorded by then.
Result<QueryPlan> understand(const Question& question, const Scope& scope, const Hooks& hooks, store::Reader& reader,
                             const store::Tail& tail, Deadline deadline);

Filter filter_of(const QueryPlan& plan);
// Where everything that this principal may see lies.
Filter scope_filter(const QueryPlan& plan);
void write_filter(json::Writer& out, const Filter& filter);
void require_any(Filter& filter, std::string_view kind, const std::vector<std::string>& values);

// Where a next page begins: "<rank>.<watermark>.<digits of the plan's hash>.<the ranking's name>"
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
