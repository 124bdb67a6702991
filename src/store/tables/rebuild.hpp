// The derived tables made anew from the log, beside those that are there: compared both ways, and
// put right where they differ. Works in spans with rests between them, so that appends go on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "store/append/rows.hpp"
#include "store/logs/log_place.hpp"
#include "store/read/connection.hpp"
#include "store/tables/follower.hpp"

namespace muniment::store {

struct RebuiltTable {
  std::string name;
  std::int64_t rows = 0;        // as they follow from the log
  std::int64_t missing = 0;     // rows that the table lacked, or had otherwise
  std::int64_t unexpected = 0;  // rows that nothing in the log explains
  bool replaced = false;
  bool equal() const { return missing == 0 && unexpected == 0; }
};

// The pointers that an event makes something depend on, given the text of its manifest, if any.
using PointersOf = std::function<std::vector<PointerRow>(const events::Event&, std::string_view manifest)>;

// What an event does to documents; nullopt: nothing.
using CorpusChangeOf = std::function<Result<std::optional<CorpusChange>>(const events::Event&)>;

// They follow from the same events and are made together.
inline constexpr std::array<std::string_view, 4> corpus_tables = {"corpus", "document", "chunk", "feedback"};

// Errors of all of them: conflict when something was erased since the events were collected. Nothing of that is
// written: begin again with another one.
class Rebuild {
 public:
  struct Table;  // rebuild_tables.hpp

  explicit Rebuild(const LogPlace& place)
      : connection_(place.uri, DatabaseRole::writer, place.connections), log_no_(place.log_no) {}

  // Gathers the events before `upto` from which derived rows follow; first of all.
  Status collect(std::int64_t upto);

  // run, claim, evidence, task_change, task_evidence, or artifact, which is compared and never changed. What a
  // follower keeps is taken as far as the follower has read.
  Result<RebuiltTable> rebuild(std::string_view table);
  Result<RebuiltTable> rebuild_pointers(const PointersOf& pointers_of);
  // Those of corpus_tables that are named.
  Result<std::vector<RebuiltTable>> rebuild_corpora(const std::vector<std::string>& tables,
                                                    const CorpusChangeOf& change_of);

 private:
  static const Table& table_named(std::string_view name);

  Status collect_span(std::int64_t from, std::int64_t end);
  struct Work;  // one transaction; throws

  Connection connection_;
  const std::int16_t log_no_;
  std::int64_t collected_ = 0;
};

}  // namespace muniment::store
